"""When can an answer be trusted? Whether a model is right more often where it is surer.

How sure a model is follows from the predictions alone, by a signal, larger where it is surer:

- `entropy`: minus the entropy over the concepts among a query's predictions. Names of one concept,
  by their identifier or equal by the benchmark's rule (letter case ignored), are one meaning.
- `margin`: the logarithm of the first concept's probability less that of the second.
- `p_true`: of judgments, the distance of P(true) from one half.

Probabilities are of the predictions that a table holds. Scores in (0, 1] whose sum is at most 1 in
every query are shares (of draws, of counted queries), and are divided by their sum. All others are
logarithms up to a constant, such as log-probabilities, their means over tokens, or negative
distances, and go through the softmax. Equal values of a signal are in random order, exactly: each
metric is the expectation. A query without a prediction is the least sure one, and wrong.

Few right answers carry much of these numbers, however many queries there are. So intervals are of
the clusters that carry a metric, not of all, and five right and five wrong answers are the fewest
that have an AUROC, or an interval of a gain.

Sources: Farquhar et al. 2024, discrete semantic entropy; Scheffer et al. 2001, margins; Geifman and
El-Yaniv 2017, risk and coverage.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.answers import find_rule, uncased
from medprobe.core.tables import CANDIDATE_COLUMNS, are_ahead, read_about, read_table
from medprobe.extensions.chat.metrics.judgment import auroc, judged_right
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.accuracy import values
from medprobe.metrics.resampling import summarise_statistic
from medprobe.metrics.results import is_compared
from medprobe.metrics.summary import KEYS, QUERY_KEYS, read_queries

SIGNAL: Final = "signal"  # of a part's name
COVERAGES: Final = (20, 50, 80, 100)  # per cent of the queries that are answered
SIGNALS: Final = ("entropy", "margin", "p_true")
MEANS: Final = ("macro", "micro")
COUNTS: Final = ("trust_right", "trust_relations")  # the last metrics, which are no estimates
ROUNDING: Final = 1e-9  # of a sum of shares
FEWEST: Final = 5  # clusters with a right answer, and with a wrong one, that have an AUROC
DECIMALS: Final = 10  # of a signal: what differs by less is equal
_HANLEY: Final = "the signal of right against wrong answers; Hanley and McNeil 1982"
_AT: Final = "share right of the surest queries; Geifman and El-Yaniv 2017"
_AREA: Final = "mean share wrong over all coverages; Geifman et al. 2019"
_RIGHT: Final = "the mean over replicates; what the AUROC and the gains rest on"
_HAVE: Final = f"with {FEWEST} right and {FEWEST} wrong answers: what its macro mean is over"
_GAIN: Final = "against the same queries in random order, exactly"


Signals = Callable[[pd.DataFrame, pd.DataFrame, Path], pd.DataFrame]


class Trust(Scorer):
    """How far the surest answers are right more often than the others.

    In random order the AUROC is one half, every `right_at_<coverage>` is `right_at_100`, and the
    area is the share wrong: the `_gain` metrics are the differences from that.
    """

    ALSO_OF = ("accuracy",)
    METRICS = (
        Metric("trust_auroc", "AUROC of being right", "higher", 0.0, 1.0, _HANLEY, guessing=0.5),
        *(
            Metric(f"right_at_{coverage}", f"right of the surest {coverage} %", "higher", 0, 1, _AT)
            for coverage in COVERAGES
        ),
        Metric("risk_area", "area under risk-coverage", "lower", 0.0, 1.0, _AREA),
        Metric("right_at_50_gain", "gain, surest 50 %", "higher", -1.0, 1.0, _GAIN),
        Metric("right_at_80_gain", "gain, surest 80 %", "higher", -1.0, 1.0, _GAIN),
        Metric("risk_area_gain", "gain in risk area", "higher", -1.0, 1.0, _GAIN),
        Metric("trust_right", "right answers", "neither", 0.0, float("inf"), _RIGHT),
        Metric("trust_relations", "relations with an AUROC", "neither", 0.0, float("inf"), _HAVE),
    )

    def __init__(self, signals: Signals) -> None:
        """Score by signals of how sure a model is.

        Args:
            signals: makes the table that is scored, of predictions and their benchmark's queries.
        """
        self.signals = signals

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Score each signal as a part `<subset>/signal:<name>`, which has means only.

        Settings of sweeps are not scored: the page shows no signals of theirs. Nor are tables that
        do not list the best names, whose scores say nothing of how sure a model is.
        """
        if are_ahead(predictions):
            return {}
        predictions = predictions[predictions["variant"].map(is_compared).astype(bool)]
        rows = self.signals(predictions, read_queries(benchmark, scoring.cluster), benchmark)
        scores: Scores = {}
        for (variant, subset), part in rows.groupby(["variant", "subset"], sort=True):
            subsets = scores.setdefault(variant or "default", {})
            for signal in [name for name in SIGNALS if name in rows]:
                numbers = summarise(part.assign(sure=part[signal].round(DECIMALS)), scoring)
                subsets[f"{subset}/{SIGNAL}:{signal}"] = {mean: numbers[mean] for mean in MEANS}
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """Return no rows: no metric of the family is a mean of queries' values."""
        return pd.DataFrame(columns=[*KEYS, "subset", "cluster", "answer", "weight"])


def rankings(predictions: pd.DataFrame, queries: pd.DataFrame, benchmark: Path) -> pd.DataFrame:
    """One row per variant, replicate and query, with both signals of its predictions.

    Args:
        predictions: a prediction table of answers.
        queries: as `read_queries` gives them.
        benchmark: its folder.

    Returns:
        The columns of `accuracy.values`, `right` (0 or 1), `entropy` and `margin`.
    """
    candidates = read_table(benchmark / "candidates.parquet", CANDIDATE_COLUMNS)
    rule = uncased(find_rule(read_about(benchmark)["normalise"]))
    ids = {rule(name): id_ for name, id_ in zip(candidates["name"], candidates["id"], strict=True)}
    names = zip(predictions["prediction_id"], predictions["prediction"], strict=True)
    meanings = [id_ or ids.get(rule(name)) or f"text {rule(name)}" for id_, name in names]
    of_query = signals_by_query(predictions.assign(meaning=meanings))
    table = values(predictions, queries, ties=False).rename(columns={"acc_at_1": "right"})
    return table.merge(of_query, how="left", on=KEYS).fillna(
        {"entropy": -np.inf, "margin": -np.inf}
    )


def judgments(predictions: pd.DataFrame, queries: pd.DataFrame, benchmark: Path) -> pd.DataFrame:
    """One row per variant, replicate and statement, `right` where it was judged right."""
    score, true = predictions["score"].to_numpy(float), predictions["hit"].to_numpy(bool)
    table = predictions.assign(right=judged_right(score, true), p_true=np.abs(score - 0.5))
    return table.merge(queries[QUERY_KEYS], on="query_id")


def signals_by_query(predictions: pd.DataFrame) -> pd.DataFrame:
    """The entropy over meanings, negated, and the margin of each query's predictions.

    Args:
        predictions: a prediction table with a column `meaning`.

    Returns:
        Columns `variant, replicate, query_id, entropy, margin`. The margin of a query with one
        meaning is infinite.
    """
    rows = predictions[[*KEYS, "meaning", "score"]]
    parts = [_log_probabilities(part) for _, part in rows.groupby("variant", sort=True)]
    table = pd.concat(parts) if parts else rows.assign(log=0.0)
    top = table.groupby(KEYS, sort=True)["log"].transform("max")
    by_meaning = table.assign(mass=np.exp(table["log"] - top)).groupby([*KEYS, "meaning"])["mass"]
    mass = by_meaning.sum().reset_index()
    keys = [mass[key] for key in KEYS]
    share = mass["mass"] / mass.groupby(keys)["mass"].transform("sum")
    mass["entropy"] = np.where(share > 0, share * np.log(share.where(share > 0, 1.0)), 0.0)
    ordered = mass.sort_values("mass", ascending=False)
    place = ordered.groupby(KEYS).cumcount()
    first, second = (ordered[place == n].set_index(KEYS)["mass"] for n in (0, 1))
    second = second.reindex(first.index, fill_value=0.0)
    with np.errstate(divide="ignore"):
        margin = np.log(first) - np.log(second)
    entropy = mass.groupby(KEYS, sort=True)["entropy"].sum()
    return pd.DataFrame({"entropy": entropy, "margin": margin}).reset_index()


def _log_probabilities(rows: pd.DataFrame) -> pd.DataFrame:
    """A variant's scores as logarithms of probabilities, up to a constant of each query."""
    score = rows["score"].astype(float)
    sums = score.groupby([rows[key] for key in KEYS]).sum()
    shares = bool((score > 0).all() and (sums <= 1 + ROUNDING).all())
    return rows.assign(log=np.log(score) if shares else score)


def summarise(rows: pd.DataFrame, scoring: Scoring) -> dict[str, dict[str, Any]]:
    """The numbers of one system by one signal, by relation, macro and micro.

    Args:
        rows: the columns `cluster, relation, replicate, sure` and `right`.
        scoring: resamples, confidence and seed.

    Returns:
        Relation, `macro` or `micro` -> metric -> its numbers. A value that no interval belongs to
        has none, and so few right or wrong answers have no AUROC (`FEWEST`).
    """
    estimates = [metric for metric in Trust.METRICS if metric.name not in COUNTS]
    numbers = summarise_statistic(
        rows, scoring, estimates, _estimate_found, by_relation=True, units=_units
    )
    replicates = rows["replicate"].nunique()
    relations = [name for name in numbers if name not in MEANS]
    have = sum("value" in numbers[name]["trust_auroc"] for name in relations)
    right = float(rows["right"].sum() / replicates)
    for mean in MEANS:
        counts = {"trust_right": right, "trust_relations": float(have)}
        n = numbers[mean]["right_at_100"]["n"]
        numbers[mean] |= {name: {"value": count, "n": n} for name, count in counts.items()}
    return numbers


def _carriers(rows: pd.DataFrame) -> int:
    """The clusters with a right answer, or with a wrong one, whichever are fewer."""
    kinds = (rows["right"] > 0, rows["right"] < 1)
    return min(rows.loc[kind, "cluster"].nunique() for kind in kinds)


def _units(rows: pd.DataFrame) -> list[int]:
    """The clusters that carry each estimate: of `right_at_<k>`, k per cent of all."""
    carriers, clusters = _carriers(rows), rows["cluster"].nunique()
    carriers = carriers if carriers >= FEWEST else 0
    surest = [round(clusters * coverage / 100) for coverage in COVERAGES]
    return [carriers, *surest, *[carriers] * 4]


def _estimate_found(rows: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """`estimate`, without an AUROC where too few answers are right, or wrong."""
    values = estimate(rows, weights)
    if _carriers(rows) < FEWEST:
        values[:, 0] = np.nan
    return values


def estimate(rows: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """The metrics of weighted rows, [resamples, metrics]; NaN for a resample without a row.

    Args:
        rows: the columns `sure`, larger where a model is surer, and `right`, from 0 to 1.
        weights: whole numbers, how often each resample holds each row, [resamples, rows].
    """
    sure, right = rows["sure"].to_numpy(float), rows["right"].to_numpy(float)
    order = np.argsort(-sure, kind="stable")
    ordered = sure[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))  # of equal signals
    size = np.cumsum(np.add.reduceat(weights[:, order], starts, axis=1), axis=1)
    hits = np.cumsum(np.add.reduceat(weights[:, order] * right[order], starts, axis=1), axis=1)
    size, hits = (np.pad(table, ((0, 0), (1, 0))) for table in (size, hits))
    with np.errstate(divide="ignore", invalid="ignore"):
        at = [_right_at(size, hits, coverage / 100) for coverage in COVERAGES]
        area = 1 - _mean_right(size, hits)
    whole = at[-1]
    gains = [at[COVERAGES.index(50)] - whole, at[COVERAGES.index(80)] - whole, 1 - whole - area]
    return np.stack([auroc(sure, right, weights), *at, area, *gains], axis=1)


def _right_at(size: np.ndarray, hits: np.ndarray, coverage: float) -> np.ndarray:
    """The expected share right of the surest part, [resamples].

    `size` and `hits` [resamples, 1 + groups] count rows, and right ones, up to each group.
    """
    total = coverage * size[:, -1]
    lines = zip(total, size, hits, strict=True)
    return np.array([np.interp(*line) for line in lines]) / total


def _mean_right(size: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """The mean over n of the expected share right of the surest n rows, [resamples]."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(size.max()) + 1))])
    at = harmonic[size.astype(int)]
    step, gained = np.diff(size, axis=1), np.diff(hits, axis=1)
    slope = np.divide(gained, step, out=np.zeros_like(step), where=step > 0)
    offset = hits[:, :-1] - slope * size[:, :-1]
    return (slope * step + offset * np.diff(at, axis=1)).sum(axis=1) / size[:, -1]


SCORER = Trust(rankings)
