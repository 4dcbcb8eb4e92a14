"""What experts say of predictions.

Accuracy by their ratings, and the benchmark's accuracy corrected by them.

It scores no table by itself: wherever a benchmark's predictions were rated (the builder `ratings`),
their scores are added to those of accuracy, as a part `<subset>/rated:<name>` that has a micro
value only. A prediction is right where more than half of those who rated it say so. A query counts
at k where all its first k predictions are rated, so that a sheet filled to the middle biases
nothing. A system counts where nearly all its predictions of the drawn queries are among the items:
of one that was not asked about, only what others had predicted too would be rated.

Sources: Meng et al., ACL 2022, section 5.3; the correction is the difference estimator of two-phase
sampling (Särndal et al. 1992, section 9.7), as in Angelopoulos et al. 2023 (prediction-powered
inference).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.tables import (
    QUERY_COLUMNS,
    metric_of_predictions,
    read_predictions,
    read_table,
)
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.accuracy import KS, values
from medprobe.metrics.intervals import interval, resampled_means
from medprobe.metrics.summary import DIGITS, KEYS, read_queries

RATED: Final = "rated"  # of a part's name
AMONG: Final = 0.9  # of a system's first predictions must be among the items
CONFUSION: Final = ["model", "method", "k", "rating", "gold", "count"]
_BY: Final = "queries with a prediction that experts call right; Meng et al. 2022, section 5.3"
_CORRECTED: Final = "acc@k of all queries, plus the mean difference on those rated; see expert.py"
_SHARE: Final = "predictions, of the first ten; Meng et al. 2022, section 5.3 and Figure 8"


class Expert(Scorer):
    """acc@k by experts' ratings. Columns read: those of accuracy."""

    METRICS = (
        Metric("expert_acc_at_1", "acc@1 by experts", "higher", 0.0, 1.0, _BY),
        Metric("expert_acc_at_10", "acc@10 by experts", "higher", 0.0, 1.0, _BY),
        Metric("corrected_acc_at_1", "acc@1, corrected", "higher", 0.0, 1.0, _CORRECTED),
        Metric("corrected_acc_at_10", "acc@10, corrected", "higher", 0.0, 1.0, _CORRECTED),
        Metric("hits_of_10", "hits", "higher", 0.0, 1.0, _SHARE),
        Metric("rated_right_of_10", "rated right", "higher", 0.0, 1.0, _SHARE),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        scores: Scores = {}
        for one in of_predictions(benchmark):
            for variant, rows in predictions.groupby("variant", sort=True):
                if found := _scores(one, rows, benchmark, scoring):
                    part = f"{one.subset}/{RATED}:{one.name}"
                    scores.setdefault(str(variant) or "default", {})[part] = {"micro": found}
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """One row a rated query, a cluster of its own: the queries were drawn at random."""
        rated = of_predictions(benchmark)
        parts = [judged(one, predictions).assign(subset=one.subset) for one in rated]
        table = pd.concat(parts) if parts else pd.DataFrame(columns=[*KEYS, "subset"])
        return table.assign(cluster=table["query_id"], weight=1.0)


@dataclass(frozen=True)
class Evaluation:
    """The ratings of a benchmark's predictions, or prompts, as the builder `ratings` made them."""

    name: str
    asked: str  # predictions or prompts
    queries: pd.DataFrame
    items: pd.DataFrame
    ratings: pd.DataFrame
    agreement: pd.DataFrame
    rated: pd.DataFrame

    @property
    def subset(self) -> str:
        """The subset that the queries are of."""
        return str(self.queries["subset"].iloc[0])


def folders(benchmark: Path) -> list[Path]:
    """The folders that hold ratings of the benchmark in this folder."""
    tables = sorted(benchmark.parent.glob("*/ratings.parquet"))
    return [
        path.parent
        for path in tables
        if set(read_table(path, ["benchmark"])["benchmark"]) == {benchmark.name}
    ]


def evaluations(benchmark: Path) -> list[Evaluation]:
    """What was rated of the benchmark in this folder."""
    return [_read(folder) for folder in folders(benchmark)]


def _read(folder: Path) -> Evaluation:
    items = read_table(folder / "items.parquet", ["item", "asked", "query_id", "prediction"])
    return Evaluation(
        folder.name,
        str(items["asked"].iloc[0]),
        read_table(folder / "queries.parquet", QUERY_COLUMNS),
        items,
        read_table(folder / "ratings.parquet", ["rater", "item", "rating", "right"]),
        pd.read_csv(folder / "agreement.csv", keep_default_na=False, na_values={"value": [""]}),
        pd.read_csv(folder / "rated.csv", dtype={"rater": str}, keep_default_na=False),
    )


def of_predictions(benchmark: Path) -> Iterator[Evaluation]:
    """Those of predictions: what systems are scored by."""
    return (one for one in evaluations(benchmark) if one.asked == "predictions")


def asked_about(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """The predictions of the drawn queries, of those variants and replicates whose predictions are
    among the items, with `verdict`: 1 right, 0 wrong, not a number where nobody rated it.
    """
    drawn = predictions[
        predictions["query_id"].isin(evaluation.queries["query_id"])
        & (predictions["rank"] <= KS[-1])
    ]
    names = pd.MultiIndex.from_frame(evaluation.items[["query_id", "prediction"]])
    keys = pd.MultiIndex.from_frame(drawn[["query_id", "prediction"]])
    among = pd.Series(keys.isin(names), index=drawn.index)
    share = among.groupby([drawn["variant"], drawn["replicate"]]).transform("mean")
    verdicts = evaluation.ratings.groupby(["query_id", "prediction"])["right"].mean() > 0.5
    found = verdicts.astype(float).reindex(keys).to_numpy()
    return drawn.assign(verdict=found)[share >= AMONG]


def judged(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, replicate and drawn query.

    `expert_acc_at_<k>`, `hits_of_10` and `rated_right_of_10`, not a number where one of the
    predictions that count is not rated.
    """
    table = asked_about(evaluation, predictions)
    groups = table.groupby(KEYS, sort=True)
    found = groups.size().rename("n").to_frame()
    for k in (KS[0], KS[-1]):
        first = table[table["rank"] <= k].groupby(KEYS, sort=True)["verdict"]
        whole = first.count() == first.size()
        found[f"expert_acc_at_{k}"] = first.max().where(whole)
    whole = groups["verdict"].count() == groups.size()
    found["hits_of_10"] = groups["hit"].mean().astype(float).where(whole)
    found["rated_right_of_10"] = groups["verdict"].mean().where(whole)
    return found.drop(columns="n").reset_index()


def _scores(
    evaluation: Evaluation, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring
) -> dict[str, dict[str, float]]:
    """Each metric's value, interval and number of queries, of one variant."""
    table = judged(evaluation, predictions)
    gold = values(predictions, read_queries(benchmark, "query_id"))
    gold = gold[gold["subset"] == evaluation.subset]
    keys = ["replicate", "query_id"]
    table = table.merge(gold[[*keys, *(f"acc_at_{k}" for k in KS)]], on=keys)
    found: dict[str, dict[str, float]] = {}
    for k in (KS[0], KS[-1]):
        rows = table.dropna(subset=f"expert_acc_at_{k}")
        if rows.empty:
            continue
        for name in (f"acc_at_{k}", f"expert_acc_at_{k}"):
            found[name] = _mean(rows, name, scoring)
        difference = rows[f"expert_acc_at_{k}"] - rows[f"acc_at_{k}"]
        every = gold.groupby("query_id", sort=True)[f"acc_at_{k}"].mean()
        found[f"corrected_acc_at_{k}"] = _corrected(
            every.to_numpy(), _by_query(rows.assign(difference=difference), "difference"), scoring
        )
    whole = table.dropna(subset="rated_right_of_10")
    if len(whole):
        for name in ("hits_of_10", "rated_right_of_10"):
            found[name] = _mean(whole, name, scoring)
    return found


def _by_query(rows: pd.DataFrame, name: str) -> np.ndarray[Any, Any]:
    """Replicates averaged."""
    return rows.groupby("query_id", sort=True)[name].mean().to_numpy(float)


def _mean(rows: pd.DataFrame, name: str, scoring: Scoring) -> dict[str, float]:
    numbers = _by_query(rows, name)
    draws = _draws(numbers, scoring, scoring.seed)
    return _numbers(numbers.mean(), draws, len(numbers), scoring)


def _corrected(
    every: np.ndarray[Any, Any], differences: np.ndarray[Any, Any], scoring: Scoring
) -> dict[str, float]:
    """acc@k of `every` query, plus the mean of the `differences` on those that were rated, each
    resampled by itself: the rated ones were drawn at random.
    """
    draws = _draws(every, scoring, scoring.seed) + _draws(differences, scoring, scoring.seed + 1)
    value = every.mean() + differences.mean()
    return _numbers(np.clip(value, 0, 1), draws.clip(0, 1), len(differences), scoring)


def _draws(numbers: np.ndarray[Any, Any], scoring: Scoring, seed: int) -> np.ndarray[Any, Any]:
    sizes = np.ones(len(numbers))
    return resampled_means(numbers[:, None], sizes, scoring.params.bootstrap, seed)


def _numbers(
    value: float, draws: np.ndarray[Any, Any], n: int, scoring: Scoring
) -> dict[str, float]:
    low, high = interval(np.array([value]), draws, scoring.params.confidence, n)
    edges = {"value": float(value), "low": float(low[0]), "high": float(high[0])}
    known = {name: number for name, number in edges.items() if not np.isnan(number)}
    return {name: round(number, DIGITS) for name, number in known.items()} | {"n": n}


def confusions(evaluation: Evaluation, paths: Iterable[Path]) -> pd.DataFrame:
    """The confusion tables of the systems whose prediction tables these are, columns CONFUSION."""
    parts = [pd.DataFrame(columns=CONFUSION)]
    for path in paths if evaluation.asked == "predictions" else ():
        if metric_of_predictions(path) == "accuracy":
            table = confusion(evaluation, next(read_predictions(path)))
            about = {"model": path.parent.parent.name, "method": path.parent.name}
            parts.append(table.assign(**about)[CONFUSION])
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def confusion(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """Ratings against the benchmark's answers.

    Columns `k, rating, gold, count`, how many ratings of a variant's predictions at ranks up to k =
    1 and 10, by rating and by whether the prediction is a hit (`gold`). With one rater it is the
    paper's Figure 8; of several each rating counts.
    """
    table = asked_about(evaluation, predictions)
    said = evaluation.ratings[["query_id", "prediction", "rating"]]
    both = table.merge(said, on=["query_id", "prediction"])
    rows = [
        (k, rating, bool(gold), len(part))
        for k in (KS[0], KS[-1])
        for (rating, gold), part in both[both["rank"] <= k].groupby(["rating", "hit"], sort=True)
    ]
    return pd.DataFrame(rows, columns=CONFUSION[2:])


SCORER = Expert()
