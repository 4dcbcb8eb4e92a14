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

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.spreadsheets import read_csv
from medprobe.core.tables import (
    QUERY_COLUMNS,
    BenchmarkTables,
    lists_outranking,
    metric_of_predictions,
    read_predictions,
    read_table,
)
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.accuracy import KS, values
from medprobe.metrics.resampling import resampled_interval, resampled_means
from medprobe.metrics.summary import KEYS, cluster_queries, number_table

RATED: Final = "rated"  # of a part's name
AMONG: Final = 0.9  # of a system's first predictions must be among the items
LEVELS: Final = ("1", "2", "3", "4", "5")  # of a rating; Meng et al. 2022, section 5.3
CONFUSION: Final = ["model", "method", "k", "rating", "gold", "count"]
_BY: Final = "queries with a prediction that experts call right; Meng et al. 2022, section 5.3"
_CORRECTED: Final = "acc@k of all queries, plus the mean difference on those rated; see expert.py"
_SHARE: Final = "predictions, of the first ten; Meng et al. 2022, section 5.3 and Figure 8"


class Expert(Scorer):
    """acc@k by experts' ratings. Columns read: those of accuracy."""

    ALSO_OF = ("accuracy",)
    METRICS = (
        Metric("expert_acc_at_1", "acc@1 by experts", "higher", 0.0, 1.0, _BY),
        Metric("expert_acc_at_10", "acc@10 by experts", "higher", 0.0, 1.0, _BY),
        Metric("corrected_acc_at_1", "acc@1, corrected", "higher", 0.0, 1.0, _CORRECTED),
        Metric("corrected_acc_at_10", "acc@10, corrected", "higher", 0.0, 1.0, _CORRECTED),
        Metric("hits_of_10", "hits", "higher", 0.0, 1.0, _SHARE),
        Metric("rated_right_of_10", "rated right", "higher", 0.0, 1.0, _SHARE),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score each variant by each evaluation of the benchmark, named as a part of its subset.

        Tables that do not list the best names are not scored.
        """
        scores: Scores = {}
        for evaluation in _scored_by(predictions, tables, scoring):
            for variant, rows in predictions.groupby("variant", sort=True):
                if numbers := _scores(evaluation, rows, tables, scoring):
                    part = f"{evaluation.subset}/{RATED}:{evaluation.name}"
                    scores.setdefault(str(variant) or "default", {})[part] = {"micro": numbers}
        return scores

    def reads(self, benchmark: Path, scoring: Scoring) -> list[Path]:
        """The benchmarks that hold experts' ratings of this one."""
        return folders(benchmark, scoring.benchmarks)

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """One row a rated query, a cluster of its own: the queries were drawn at random."""
        parts = [
            judge_queries(evaluation, predictions).assign(subset=evaluation.subset)
            for evaluation in _scored_by(predictions, tables, scoring)
        ]
        table = pd.concat(parts) if parts else pd.DataFrame(columns=[*KEYS, "subset"])
        return table.assign(cluster=table["query_id"], weight=1.0)


@dataclass(frozen=True)
class Evaluation:
    """The ratings of a benchmark's predictions, or prompts, as the builder `ratings` made them."""

    name: str
    target: str  # predictions or prompts
    queries: pd.DataFrame
    items: pd.DataFrame
    ratings: pd.DataFrame
    agreement: pd.DataFrame
    rated: pd.DataFrame

    @property
    def subset(self) -> str:
        """The subset that the queries are of."""
        return str(self.queries["subset"].iloc[0])


def folders(benchmark: Path, names: Iterable[str]) -> list[Path]:
    """List the folders that hold ratings of a benchmark."""
    tables = [benchmark.parent / name / "ratings.parquet" for name in sorted(names)]
    return [
        path.parent
        for path in tables
        if path.is_file() and set(read_table(path, ["benchmark"])["benchmark"]) == {benchmark.name}
    ]


def evaluations(benchmark: Path, names: Iterable[str]) -> list[Evaluation]:
    """What was rated of a benchmark; `folders` says what the arguments are."""
    return [_read_evaluation(folder) for folder in folders(benchmark, names)]


def _read_evaluation(folder: Path) -> Evaluation:
    items = read_table(folder / "items.parquet", ["item", "asked", "query_id", "prediction"])
    return Evaluation(
        folder.name,
        str(items["asked"].iloc[0]),
        read_table(folder / "queries.parquet", QUERY_COLUMNS),
        items,
        read_table(folder / "ratings.parquet", ["rater", "item", "rating", "right"]),
        read_csv(folder / "agreement.csv", keep_default_na=False, na_values={"value": [""]}),
        read_csv(folder / "rated.csv", dtype={"rater": str}, keep_default_na=False),
    )


def _scored_by(
    predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
) -> list[Evaluation]:
    """The evaluations that score a system: none where its table does not list its best names."""
    if tables.folder is None or lists_outranking(predictions):
        return []
    found = evaluations(tables.folder, scoring.benchmarks)
    return [evaluation for evaluation in found if evaluation.target == "predictions"]


def add_verdicts(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """The predictions of the drawn queries with a column `verdict`: 1 right, 0 wrong, NaN unrated.

    Only variants and replicates whose predictions are among the items are returned.
    """
    is_drawn = predictions["query_id"].isin(evaluation.queries["query_id"])
    drawn = predictions[is_drawn & (predictions["rank"] <= KS[-1])]
    names = pd.MultiIndex.from_frame(evaluation.items[["query_id", "prediction"]])
    keys = pd.MultiIndex.from_frame(drawn[["query_id", "prediction"]])
    is_item = pd.Series(keys.isin(names), index=drawn.index)
    share = is_item.groupby([drawn["variant"], drawn["replicate"]]).transform("mean")
    verdicts = evaluation.ratings.groupby(["query_id", "prediction"])["right"].mean() > 0.5
    verdict_values = verdicts.astype(float).reindex(keys).to_numpy()
    return drawn.assign(verdict=verdict_values)[share >= AMONG]


def judge_queries(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, replicate and drawn query.

    `expert_acc_at_<k>`, `hits_of_10` and `rated_right_of_10`, not a number where one of the
    predictions that count is not rated.
    """
    table = add_verdicts(evaluation, predictions)
    groups = table.groupby(KEYS, sort=True)
    judgments = pd.DataFrame(index=groups.size().index)
    for k in (KS[0], KS[-1]):
        first_verdicts = table[table["rank"] <= k].groupby(KEYS, sort=True)["verdict"]
        is_complete = first_verdicts.count() == first_verdicts.size()
        judgments[f"expert_acc_at_{k}"] = first_verdicts.max().where(is_complete)
    is_complete = groups["verdict"].count() == groups.size()
    judgments["hits_of_10"] = groups["hit"].mean().astype(float).where(is_complete)
    judgments["rated_right_of_10"] = groups["verdict"].mean().where(is_complete)
    return judgments.reset_index()


def _scores(
    evaluation: Evaluation, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
) -> dict[str, dict[str, float]]:
    """Each metric's value, interval and number of queries, of one variant."""
    table = judge_queries(evaluation, predictions)
    gold = values(predictions, cluster_queries(tables, "query_id"))
    gold = gold[gold["subset"] == evaluation.subset]
    keys = ["replicate", "query_id"]
    table = table.merge(gold[[*keys, *(f"acc_at_{k}" for k in KS)]], on=keys)
    numbers: dict[str, dict[str, float]] = {}
    for k in (KS[0], KS[-1]):
        rows = table.dropna(subset=f"expert_acc_at_{k}")
        if rows.empty:
            continue
        for name in (f"acc_at_{k}", f"expert_acc_at_{k}"):
            numbers[name] = _mean_with_interval(rows, name, scoring)
        difference = rows[f"expert_acc_at_{k}"] - rows[f"acc_at_{k}"]
        numbers[f"corrected_acc_at_{k}"] = _corrected(
            _by_query(gold, f"acc_at_{k}"),
            _by_query(rows.assign(difference=difference), "difference"),
            scoring,
        )
    complete_rows = table.dropna(subset="rated_right_of_10")
    if len(complete_rows):
        for name in ("hits_of_10", "rated_right_of_10"):
            numbers[name] = _mean_with_interval(complete_rows, name, scoring)
    return numbers


def _by_query(rows: pd.DataFrame, name: str) -> np.ndarray:
    """The value of each query in a column, replicates averaged."""
    return rows.groupby("query_id", sort=True)[name].mean().to_numpy(float)


def _mean_with_interval(rows: pd.DataFrame, name: str, scoring: Scoring) -> dict[str, float]:
    """The mean of a column over queries, with its bootstrap interval and the number of queries."""
    numbers = _by_query(rows, name)
    draws = _draws(numbers, scoring, scoring.seed)
    return _numbers(numbers.mean(), draws, len(numbers), scoring)


def _corrected(accuracy: np.ndarray, differences: np.ndarray, scoring: Scoring) -> dict[str, float]:
    """acc@k of all queries plus the mean difference of experts' ratings on the rated queries.

    Both are resampled independently, because the rated queries were drawn at random.
    """
    draws = _draws(accuracy, scoring, scoring.seed) + _draws(differences, scoring, scoring.seed + 1)
    value = accuracy.mean() + differences.mean()
    return _numbers(np.clip(value, 0, 1), draws.clip(0, 1), len(differences), scoring)


def _draws(numbers: np.ndarray, scoring: Scoring, seed: int) -> np.ndarray:
    sizes = np.ones(len(numbers))
    return resampled_means(numbers[:, None], sizes, scoring.params.bootstrap, seed)


def _numbers(value: float, draws: np.ndarray, n: int, scoring: Scoring) -> dict[str, float]:
    values = np.array([value])
    low, high = resampled_interval(values, draws, scoring.params.confidence, n)
    return number_table([RATED], n, value=values, low=low, high=high)[RATED]


def confusions(evaluation: Evaluation, paths: Iterable[Path]) -> pd.DataFrame:
    """The confusion tables of the systems whose prediction tables these are, columns CONFUSION.

    They count what the sheets are drawn from: the first replicate.
    """
    parts = [pd.DataFrame(columns=CONFUSION)]
    for path in paths if evaluation.target == "predictions" else ():
        if metric_of_predictions(path) == "accuracy":
            table = confusion(evaluation, next(read_predictions(path, first=True)))
            columns = {"model": path.parent.parent.name, "method": path.parent.name}
            parts.append(table.assign(**columns)[CONFUSION])
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def confusion(evaluation: Evaluation, predictions: pd.DataFrame) -> pd.DataFrame:
    """Ratings against the benchmark's answers.

    Columns `k, rating, gold, count`, how many ratings of a variant's predictions at ranks up to k =
    1 and 10, by rating and by whether the prediction is a hit (`gold`). With one rater it is the
    paper's Figure 8; of several each rating counts. Every level of the scale has its rows.
    """
    table = add_verdicts(evaluation, predictions)
    ratings = evaluation.ratings[["query_id", "prediction", "rating"]]
    rated_predictions = table.merge(ratings, on=["query_id", "prediction"])
    rows = []
    for k in (KS[0], KS[-1]):
        within_k = rated_predictions[rated_predictions["rank"] <= k]
        counts = within_k.groupby(["rating", "hit"]).size()
        for rating, gold in product(LEVELS, (False, True)) if len(within_k) else ():
            rows.append((k, rating, gold, int(counts.get((rating, gold), 0))))
    return pd.DataFrame(rows, columns=CONFUSION[2:])


SCORER = Expert()
