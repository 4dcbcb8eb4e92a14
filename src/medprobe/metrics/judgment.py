"""Judgment: how well a model tells true statements from wrong ones, and how sure it rightly is.

A statement counts as judged right where P(true) is above one half and it is true, or below and it
is not; at one half it counts half. AUROC is the chance that a true statement gets a higher P(true)
than a wrong one, ties one half (Hanley and McNeil 1982). The expected calibration error is the mean
distance, over ten bins of P(true), between its mean and the share of true statements (Guo et al.
2017, section 2).
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.intervals import drawn, interval
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import DIGITS, KEYS, read_queries, weighted

BINS: Final = 10  # of P(true), of one width
_HANLEY: Final = "of P(true); Hanley and McNeil 1982"
_GUO: Final = f"Guo et al. 2017, section 2; {BINS} bins of P(true)"


class Judgment(Scorer):
    """Accuracy, AUROC and calibration of a column `score`, P(true); `hit` says what is true."""

    METRICS = (
        Metric(
            *("judged_right", "judged right", "higher", 0.0, 1.0),
            source="Li et al. 2025: share of statements, as many true as wrong",
            tested=True,
            guessing=0.5,
        ),
        Metric("auroc", "AUROC", "higher", 0.0, 1.0, _HANLEY, guessing=0.5),
        Metric("calibration_error", "expected calibration error", "lower", 0.0, 1.0, _GUO),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        queries = read_queries(benchmark, scoring.cluster)
        asked = queries[["query_id", "subset", "relation", "cluster"]]
        rows = with_parts(predictions.merge(asked, on="query_id"), queries, scoring.facts)
        scores: Scores = {}
        for (variant, subset), part in rows.groupby(["variant", "subset"], sort=True):
            table = _numbers(part, scoring, by_relation="/" not in subset)
            scores.setdefault(variant or "default", {})[subset] = table
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        queries = read_queries(benchmark, scoring.cluster)
        right = judged_right(predictions["score"].to_numpy(), predictions["hit"].to_numpy(bool))
        values = predictions.assign(judged_right=right).groupby(KEYS, as_index=False)
        means = values["judged_right"].mean()
        asked = queries[["query_id", "subset", "relation", "cluster"]]
        return weighted(means.merge(asked, on="query_id"))


def judged_right(score: np.ndarray, true: np.ndarray) -> np.ndarray:
    """1 where a statement was judged right, 1/2 where it was not judged, [statements].

    >>> judged_right(np.array([0.9, 0.9, 0.5]), np.array([True, False, True]))
    array([1. , 0. , 0.5])
    """
    return np.where(score == 0.5, 0.5, (score > 0.5) == true)


def auroc(score: np.ndarray, true: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The area under the ROC curve for each row of weights, [resamples, statements]; nan where
    either kind has no weight.

    >>> auroc(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]), np.ones((1, 3)))
    array([0.75])
    """
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-np.inf))  # of equal scores
    of_true, of_wrong = (
        np.add.reduceat(weights[:, order] * kind[order], starts, axis=1) for kind in (true, ~true)
    )
    below = np.cumsum(of_wrong, axis=1) - of_wrong / 2
    pairs = of_true.sum(axis=1) * of_wrong.sum(axis=1)
    won = (of_true * below).sum(axis=1)
    return np.divide(won, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def bins(score: np.ndarray) -> np.ndarray:
    """The bin of each P(true), from 0; the last holds 1, too."""
    return np.minimum((score * BINS).astype(int), BINS - 1)


def calibration_error(score: np.ndarray, true: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The expected calibration error for each row of weights, [resamples, statements].

    >>> calibration_error(np.array([0.8, 0.9]), np.array([True, False]), np.ones((1, 2))).round(2)
    array([0.55])
    """
    off = np.eye(BINS)[bins(score)] * (true - score)[:, None]
    return np.abs(weights @ off).sum(axis=1) / weights.sum(axis=1)


def reliability(predictions: pd.DataFrame) -> pd.DataFrame:
    """A row a variant and bin of P(true) that any statement is in: `variant, said` (the mean of
    P(true)), `true` (the share of true statements), `n`."""
    rows = predictions.assign(bin=bins(predictions["score"].to_numpy()))
    by = rows.groupby(["variant", "bin"], sort=True)
    table = by.agg(said=("score", "mean"), true=("hit", "mean"), n=("hit", "size"))
    return table.reset_index().drop(columns="bin")


def _numbers(rows: pd.DataFrame, scoring: Scoring, by_relation: bool) -> dict[str, Any]:
    """Each metric of each relation, macro and micro, with intervals over clusters."""
    cluster, clusters = pd.factorize(rows["cluster"], sort=True)
    names = sorted(rows["relation"].unique()) if by_relation else []
    chosen = [rows["relation"].to_numpy() == name for name in names]
    chosen.append(np.ones(len(rows), dtype=bool))
    score, true = rows["score"].to_numpy(float), rows["hit"].to_numpy(bool)
    itself = [np.ones((1, len(clusters)))]
    parts = []
    for counts in [*itself, *drawn(len(clusters), scoring.params.bootstrap, scoring.seed)]:
        weights = counts[:, cluster]
        parts.append(np.stack([_estimates(score[i], true[i], weights[:, i]) for i in chosen]))
    values = np.concatenate(parts, axis=1)  # [relations and all, itself and resamples, metrics]
    sizes = [len(np.unique(cluster[i])) for i in chosen]
    counted = [int(i.sum()) for i in chosen]
    confidence = scoring.params.confidence
    result = {
        name: _numbered(of_one, size, n, confidence)
        for name, of_one, size, n in zip([*names, "micro"], values, sizes, counted, strict=True)
    }
    if by_relation:
        macro = np.nanmean(values[:-1], axis=0)
        result["macro"] = _numbered(macro, sizes[-1], counted[-1], confidence)
    return result


def _estimates(score: np.ndarray, true: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The metrics, [resamples, metrics]; nan for a resample without a statement."""
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        right = weights @ judged_right(score, true) / total
        return np.stack(
            [right, auroc(score, true, weights), calibration_error(score, true, weights)], axis=1
        )


def _numbered(values: np.ndarray, clusters: int, n: int, confidence: float) -> dict[str, Any]:
    low, high = interval(values[0], values[1:], confidence, clusters)
    table = {}
    for place, metric in enumerate(Judgment.METRICS):
        numbers = {"value": values[0, place], "low": low[place], "high": high[place]}
        rounded = {k: round(float(v), DIGITS) for k, v in numbers.items() if not np.isnan(v)}
        table[metric.name] = {**rounded, "n": n}
    return table


SCORER = Judgment()
