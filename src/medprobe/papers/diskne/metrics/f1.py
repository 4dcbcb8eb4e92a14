"""F1 of the positive class, by disease and category, from predictions on disk.

Source: Alghanmi et al. 2021, section 4.1: the harmonic mean of precision and recall over the whole
test split of a disease; macro is the mean over diseases, weighted the mean weighted by positives.
Seeds are averaged, and their sample standard deviation is kept. `f1_as_released` is what the
authors' released code computes: over positive examples alone, macro-averaged over the two labels.

F1 needs a threshold, and is 0 where no example reaches it. Two numbers ask only for the order of
the scores: `top_1` of a positive and the negatives made from it, `auc` of all of a disease.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.resampling import draw_multiplicities, resampled_interval
from medprobe.metrics.splits import bins
from medprobe.metrics.summary import number_table

ALL: Final = "full"  # the subset of all categories
PARTS: Final = "parts"  # the benchmark's table of further means: `part, category, target`
MEANS: Final = ("macro", "weighted")
POSITIVES: Final = (0, 1, 2, 5, 10)  # of a disease: rare ones and common ones
ESTIMATES: Final = ("f1", "f1_as_released", "top_1", "auc")
READ: Final = ["query_id", "replicate", "prediction", "label", "score"]  # of a disease's rows
_F1: Final = "of the positive class; Alghanmi et al. 2021"
_RELEASED: Final = "the authors' code: over positive examples alone"
_TOP: Final = "share of positives that score above the negatives made from them, ties shared"
_AUC: Final = "chance that a positive of a disease scores above a negative, ties one half"

Floats = NDArray[np.float64]


class F1(Scorer):
    """F1 of diseases, which go by their CUIs.

    Columns read: `variant, replicate, query_id, target, category, label, prediction, score`, and
    `fewest`: how many positives a disease needs in a subset. A query's id is that of the positive
    it was made from, a `-`, and more. A subset is a category, or `full`, all of them.
    """

    METRICS = (
        Metric("f1", "F1", "higher", 0.0, 1.0, _F1, tested=True),
        Metric("f1_as_released", "F1 as released", "higher", 0.0, 1.0, _RELEASED),
        Metric("top_1", "top-1", "higher", 0.0, 1.0, _TOP, tested=True),
        Metric("auc", "AUC", "higher", 0.0, 1.0, _AUC, guessing=0.5),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Scores by disease, macro and weighted.

        Intervals are bootstrap intervals: of a mean over its diseases, of a disease over its
        positives, each with its negatives; and of both over seeds. Parts of `full`, such as
        `full/positives:3-5`, hold the means over the diseases with so many positives: rare ones and
        common ones. A category's part such as `terminological/diseases:24` has the diseases that
        the benchmark's table `parts` lists.
        """
        further = tables.others.get(PARTS)
        parts = [] if further is None else [*further.groupby(["category", "part"])]
        scores: Scores = {}
        for (variant, category), rows in group_by_subset(predictions):
            if table := _category(rows, scoring):
                subsets = scores.setdefault(variant or "default", {})
                subsets[category] = table
                if category == ALL:
                    subsets |= _by_positives(rows, scoring)
                for (of_category, part), listed in parts:
                    chosen = rows[rows["target"].isin(listed["target"])]
                    if of_category == category and len(chosen):
                        subsets[f"{category}/diseases:{part}"] = _category(chosen, scoring)
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return one row per variant, subset and disease: its F1 and `top_1`, averaged over seeds.

        A disease is its own cluster. The mean of either column is the macro mean.
        """
        rows = []
        for (variant, subset), part in group_by_subset(predictions):
            for target, values in group_by_disease(part).items():
                means = dict(zip(ESTIMATES, estimate(values)[0].mean(axis=0), strict=True))
                keys = (variant, "", target, subset, target, 1.0)
                rows.append((*keys, means["f1"], means["top_1"]))
        key_columns = ["variant", "replicate", "query_id", "subset", "cluster", "weight"]
        names = [*key_columns, "f1", "top_1"]
        return pd.DataFrame(rows, columns=names)


def group_by_subset(predictions: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """`((variant, subset), rows)` of each variant and category, and of all its categories."""
    rows_with_all = pd.concat([predictions, predictions.assign(category=ALL)], ignore_index=True)
    groups = rows_with_all.groupby(["variant", "category"], sort=True)
    return [((str(variant), str(category)), rows) for (variant, category), rows in groups]


def group_by_disease(rows: pd.DataFrame) -> dict[str, "Outcomes"]:
    """The outcomes of each disease that has the `fewest` positives in these rows."""
    groups = rows[["target", *READ]].groupby("target", sort=True)
    diseases = {str(name): count_outcomes(part) for name, part in groups}
    fewest = int(rows["fewest"].iloc[0])
    return {name: found for name, found in diseases.items() if found.positives >= fewest}


@dataclass(frozen=True)
class Outcomes:
    """What was said of a disease, by seed and group: a positive and the negatives made from it."""

    counts: Floats  # [seeds, groups, (true positives, false positives, false negatives)]
    top: Floats  # [seeds, groups]: is the positive above its negatives? ties shared; else nan
    above: Floats  # [seeds, groups, groups]: the second's negatives below the first's positive
    positive: NDArray[np.bool_]  # [groups]: is the positive there?
    negatives: Floats  # [groups]: how many

    @property
    def positives(self) -> int:
        """How many there are."""
        return int(self.positive.sum())


def count_outcomes(rows: pd.DataFrame) -> Outcomes:
    """The outcomes of one disease's rows; the seeds must be of the same examples."""
    query, seed, is_predicted, label, score = (rows[name].to_numpy(object) for name in READ)
    names, group = np.unique([str(value).partition("-")[0] for value in query], return_inverse=True)
    is_predicted, true, score = is_predicted.astype(int) == 1, label == 1, score.astype(float)
    size, seeds = len(names), [seed == value for value in sorted(set(seed))]
    of_seeds = [
        _count_seed(is_predicted[is_of], true[is_of], group[is_of], score[is_of], size)
        for is_of in seeds
    ]
    counts, top, above = (np.stack(values) for values in zip(*of_seeds, strict=True))
    return Outcomes(
        counts,
        top,
        above,
        positive=np.isin(np.arange(size), group[seeds[0] & true]),
        negatives=np.bincount(group[seeds[0] & ~true], minlength=size).astype(float),
    )


def _count_seed(
    is_predicted: NDArray[np.bool_],
    true: NDArray[np.bool_],
    group: NDArray[Any],
    score: Floats,
    size: int,
) -> tuple[Floats, Floats, Floats]:
    """Count one seed's `counts`, `top` and `above`; all arguments are [examples], `size` groups."""
    kinds = (is_predicted & true, is_predicted & ~true, ~is_predicted & true)
    counts = np.stack([np.bincount(group, kind, size) for kind in kinds], axis=-1).astype(float)
    positive_scores = np.full(size, np.nan)  # NaN where a group has no positive
    positive_scores[group[true]] = score[true]
    group_of_negative = np.eye(size)[group[~true]]  # [negatives, groups], one-hot
    # How many negatives of each group (column) are below, or equal to, each positive (row).
    below = (positive_scores[:, None] > score[~true]) @ group_of_negative
    equal = (positive_scores[:, None] == score[~true]) @ group_of_negative
    own_below, own_equal = np.diagonal(below), np.diagonal(equal)
    negatives = group_of_negative.sum(axis=0)
    top = np.where(own_below + own_equal == negatives, 1 / (1 + own_equal), 0.0)
    top[(negatives == 0) | np.isnan(positive_scores)] = np.nan
    return counts, top, np.asarray(below + equal / 2)


def f1(counts: Floats) -> Floats:
    """F1 and F1 as released, [..., 2], from counts of outcomes [..., 3].

    Always saying yes to one positive and ten negatives:

    >>> f1(np.array([1.0, 10.0, 0.0])).round(3)
    array([0.167, 1.   ])
    """
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore"):  # without a positive there is no recall
        recall = tp / (tp + fn)
        labels = np.where(fn > 0, 2, 1)  # among the positives the released code sees no other label
        return np.stack([2 * tp / (2 * tp + fp + fn), 2 * recall / (1 + recall) / labels], axis=-1)


def estimate(outcomes: Outcomes, times: Floats | None = None) -> Floats:
    """Compute ESTIMATES over resamples of the groups.

    Args:
        outcomes: of one disease.
        times: how often each group is taken, [resamples, groups]; once each by default.

    Returns:
        [resamples, seeds, 4]; NaN where a value is undefined, as `auc` without negatives.
    """
    times = np.ones((1, len(outcomes.positive))) if times is None else times
    f1_values = f1(np.einsum("rp,spc->rsc", times, outcomes.counts))
    has_top = ~np.isnan(outcomes.top[0])
    top = np.einsum("rp,sp->rs", times[:, has_top], outcomes.top[:, has_top])
    ordered_pairs = np.einsum("ri,rj,sij->rs", times, times, outcomes.above, optimize=True)
    pairs = (times @ outcomes.positive) * (times @ outcomes.negatives)
    with np.errstate(invalid="ignore"):
        top, auc = top / times[:, has_top].sum(axis=1)[:, None], ordered_pairs / pairs[:, None]
    return np.concatenate([f1_values, top[..., None], auc[..., None]], axis=-1)


def _by_positives(rows: pd.DataFrame, scoring: Scoring) -> dict[str, dict[str, Any]]:
    """The means over diseases by their number of positives, where there are several bins."""
    diseases = group_by_disease(rows)
    sizes = bins([outcomes.positives for outcomes in diseases.values()], POSITIVES)
    names_by_bin = pd.Series([*diseases]).groupby([*sizes], sort=False).agg(list)
    if len(names_by_bin) < 2:
        return {}
    tables = {}
    for size, names in names_by_bin.items():
        table = _category(rows[rows["target"].isin(names)], scoring)
        tables[f"{ALL}/positives:{size}"] = {name: table[name] for name in MEANS}
    return tables


def _category(rows: pd.DataFrame, scoring: Scoring) -> dict[str, Any]:
    """The numbers of each disease, and of their means."""
    generator, resamples = np.random.default_rng(scoring.seed), scoring.params.bootstrap
    diseases = group_by_disease(rows)
    if not diseases:
        return {}
    result: dict[str, Any] = {}
    values = np.stack([estimate(outcomes)[0] for outcomes in diseases.values()])
    sizes = np.array([outcomes.positives for outcomes in diseases.values()], float)
    seeds = draw_multiplicities(generator, resamples, values.shape[1])
    for (name, outcomes), value in zip(diseases.items(), values, strict=True):
        groups = draw_multiplicities(generator, resamples, len(outcomes.positive))
        draws = np.einsum("rs,rsm->rm", seeds, estimate(outcomes, groups)) / len(value)
        n = outcomes.positives
        result[name] = _numbers(value, draws, scoring.params.confidence, n, n)
    if len(diseases) == 1:
        return result | {name: result[next(iter(diseases))] for name in MEANS}
    disease_draws = draw_multiplicities(generator, resamples, len(values))
    for name, weights in zip(MEANS, (np.ones_like(sizes), sizes), strict=True):
        value = np.stack([_mean(values[:, [s]], weights[None])[0] for s in range(values.shape[1])])
        draws = _mean(values, disease_draws * weights, seeds)
        n = int(sizes.sum())
        result[name] = _numbers(value, draws, scoring.params.confidence, n, len(values))
    return result


def _mean(values: Floats, weights: Floats, seeds: Floats | None = None) -> Floats:
    """Means [resamples, 4] of the defined values among `values` [diseases, seeds, 4].

    Each disease and seed has the weight that it has in a resample.
    """
    seeds = np.ones((len(weights), values.shape[1])) if seeds is None else seeds
    is_defined = ~np.isnan(values)
    sums = [
        np.einsum("rd,rs,dsm->rm", weights, seeds, x) for x in (np.nan_to_num(values), is_defined)
    ]
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[0] / sums[1])


def _numbers(
    seeds: Floats, draws: Floats, confidence: float, n: int, units: int
) -> dict[str, dict[str, float]]:
    """The numbers of each of ESTIMATES from its value by seed [seeds, 4] and resamples [., 4].

    `n` positives are counted, `units` were drawn.
    """
    value = seeds.mean(axis=0)
    draws = np.where(np.isnan(draws), value, draws)
    low, high = resampled_interval(value, draws, confidence, units)
    std = seeds.std(axis=0, ddof=1) if len(seeds) > 1 else np.full(len(value), np.nan)
    table = number_table(ESTIMATES, n, value=value, low=low, high=high, std=std)
    return {metric: numbers for metric, numbers in table.items() if "value" in numbers}


SCORER = F1()
