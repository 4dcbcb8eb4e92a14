"""F1 of the positive class, by disease and category, from predictions on disk.

Source: Alghanmi et al. 2021, section 4.1: the harmonic mean of precision and recall over the whole
test split of a disease; macro is the mean over diseases, weighted the mean weighted by positives.
Seeds are averaged, and their sample standard deviation is kept. `f1_as_released` is what the
authors' released code computes: over positive examples alone, macro-averaged over the two labels.

F1 needs a threshold, and is 0 where no example reaches it. Two numbers ask only for the order of
the scores: `top_1` of a positive and the negatives made from it, `auc` of all of a disease.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.intervals import interval, multiplicities
from medprobe.metrics.summary import DIGITS

FEWEST: Final = 2  # positives of a disease in a category, for it to be reported
ALL: Final = "full"  # the subset of all categories
MEANS: Final = ("macro", "weighted")
ESTIMATES: Final = ("f1", "f1_as_released", "top_1", "auc")
READ: Final = ["query_id", "replicate", "prediction", "label", "score"]  # of a disease's rows

Floats = NDArray[np.float64]


class F1(Scorer):
    """F1 of diseases, which go by their CUIs.

    Columns read: `variant, replicate, query_id, target, category, label, prediction, score`; a
    query's id is that of the positive it was made from, a `-`, and more. A subset is a category, or
    `full`, all of them.
    """

    METRICS = (
        Metric("f1", "F1", "higher", 0.0, 1.0, "of the positive class; Alghanmi et al. 2021", True),
        Metric(
            "f1_as_released",
            "F1 as released",
            "higher",
            0.0,
            1.0,
            "the authors' code: over positive examples alone",
        ),
        Metric(
            "top_1",
            "top-1",
            "higher",
            0.0,
            1.0,
            "share of positives that score above the negatives made from them, ties shared",
            tested=True,
        ),
        Metric(
            "auc",
            "AUC",
            "higher",
            0.0,
            1.0,
            "chance that a positive of a disease scores above a negative, ties one half",
            guessing=0.5,
        ),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Scores by disease, macro and weighted.

        Intervals are bootstrap intervals: of a mean over its diseases, of a disease over its
        positives, each with its negatives; and of both over seeds.
        """
        scores: Scores = {}
        for (variant, category), rows in by_subset(predictions):
            if table := _category(rows, scoring):
                scores.setdefault(variant or "default", {})[category] = table
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """One row a variant, subset and disease, which is its own cluster, with its F1 and `top_1`,
        averaged over seeds: the mean of either is the macro mean.
        """
        rows = []
        for (variant, subset), part in by_subset(predictions):
            for target, values in by_disease(part).items():
                means = dict(zip(ESTIMATES, estimates(values)[0].mean(axis=0), strict=True))
                keys = (variant, "", target, subset, target, 1.0)
                rows.append((*keys, means["f1"], means["top_1"]))
        about = ["variant", "replicate", "query_id", "subset", "cluster", "weight"]
        names = [*about, "f1", "top_1"]
        return pd.DataFrame(rows, columns=names)


def by_subset(predictions: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """`((variant, subset), rows)` of each variant and category, and of all its categories."""
    every = pd.concat([predictions, predictions.assign(category=ALL)], ignore_index=True)
    groups = every.groupby(["variant", "category"], sort=True)
    return [((str(variant), str(category)), rows) for (variant, category), rows in groups]


def by_disease(rows: pd.DataFrame) -> dict[str, "Outcomes"]:
    """The outcomes of each disease that has FEWEST positives in these rows."""
    groups = rows[["target", *READ]].groupby("target", sort=True)
    every = {str(name): outcomes(part) for name, part in groups}
    return {name: found for name, found in every.items() if found.positives >= FEWEST}


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


def outcomes(rows: pd.DataFrame) -> Outcomes:
    """The outcomes of one disease's rows; the seeds must be of the same examples."""
    query, seed, said, label, score = (rows[name].to_numpy(object) for name in READ)
    names, group = np.unique([str(one).partition("-")[0] for one in query], return_inverse=True)
    said, true, score = said.astype(int) == 1, label == 1, score.astype(float)
    of_seeds = [seed == one for one in sorted(set(seed))]
    seeds = [_of_seed(said[at], true[at], group[at], score[at], len(names)) for at in of_seeds]
    counts, top, above = (np.stack(values) for values in zip(*seeds, strict=True))
    first = of_seeds[0]
    return Outcomes(
        counts,
        top,
        above,
        positive=np.isin(np.arange(len(names)), group[first & true]),
        negatives=np.bincount(group[first & ~true], minlength=len(names)).astype(float),
    )


def _of_seed(
    said: NDArray[np.bool_], true: NDArray[np.bool_], group: NDArray[Any], score: Floats, size: int
) -> tuple[Floats, Floats, Floats]:
    """`counts`, `top` and `above` of one seed."""
    kinds = (said & true, said & ~true, ~said & true)
    counts = np.stack([np.bincount(group, kind, size) for kind in kinds], axis=-1).astype(float)
    best = np.full(size, np.nan)
    best[group[true]] = score[true]
    owner = np.eye(size)[group[~true]]  # [negatives, groups]
    below = (best[:, None] > score[~true]) @ owner
    ties = (best[:, None] == score[~true]) @ owner
    own, tied = np.diagonal(below), np.diagonal(ties)
    total = owner.sum(axis=0)
    top = np.where(own + tied == total, 1 / (1 + tied), 0.0)
    top[(total == 0) | np.isnan(best)] = np.nan
    return counts, top, np.asarray(below + ties / 2)


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


def estimates(found: Outcomes, times: Floats | None = None) -> Floats:
    """ESTIMATES [resamples, seeds, 4] of the groups taken so many times each, [resamples, groups];
    once each, where nothing is said. nan where they are not defined, as `auc` without negatives.
    """
    times = np.ones((1, len(found.positive))) if times is None else times
    both = f1(np.einsum("rp,spc->rsc", times, found.counts))
    judged = ~np.isnan(found.top[0])
    top = np.einsum("rp,sp->rs", times[:, judged], found.top[:, judged])
    above = np.einsum("ri,rj,sij->rs", times, times, found.above, optimize=True)
    pairs = (times @ found.positive) * (times @ found.negatives)
    with np.errstate(invalid="ignore"):
        top, auc = top / times[:, judged].sum(axis=1)[:, None], above / pairs[:, None]
    return np.concatenate([both, top[..., None], auc[..., None]], axis=-1)


def _category(rows: pd.DataFrame, scoring: Scoring) -> dict[str, Any]:
    """The numbers of each disease, and of their means."""
    generator, resamples = np.random.default_rng(scoring.seed), scoring.params.bootstrap
    diseases = by_disease(rows)
    if not diseases:
        return {}
    result: dict[str, Any] = {}
    values = np.stack([estimates(found)[0] for found in diseases.values()])
    sizes = np.array([found.positives for found in diseases.values()], float)
    seeds = multiplicities(generator, resamples, values.shape[1])
    for (name, found), value in zip(diseases.items(), values, strict=True):
        groups = multiplicities(generator, resamples, len(found.positive))
        draws = np.einsum("rs,rsm->rm", seeds, estimates(found, groups)) / len(value)
        n = found.positives
        result[name] = _numbers(value, draws, scoring.params.confidence, n, n)
    if len(diseases) == 1:
        return result | {name: result[next(iter(diseases))] for name in MEANS}
    drawn = multiplicities(generator, resamples, len(values))
    for name, weights in zip(MEANS, (np.ones_like(sizes), sizes), strict=True):
        value = np.stack([_mean(values[:, [s]], weights[None])[0] for s in range(values.shape[1])])
        draws = _mean(values, drawn * weights, seeds)
        n = int(sizes.sum())
        result[name] = _numbers(value, draws, scoring.params.confidence, n, len(values))
    return result


def _mean(values: Floats, weights: Floats, seeds: Floats | None = None) -> Floats:
    """Means [resamples, 4] of what is defined of values [diseases, seeds, 4], each disease and
    seed with the weight it has in a resample.
    """
    seeds = np.ones((len(weights), values.shape[1])) if seeds is None else seeds
    known = ~np.isnan(values)
    both = [np.einsum("rd,rs,dsm->rm", weights, seeds, x) for x in (np.nan_to_num(values), known)]
    with np.errstate(invalid="ignore"):
        return np.asarray(both[0] / both[1])


def _numbers(
    seeds: Floats, draws: Floats, confidence: float, n: int, units: int
) -> dict[str, dict[str, float]]:
    """The numbers of each of ESTIMATES from its value by seed [seeds, 4] and resamples [., 4].

    `n` positives are counted, `units` were drawn.
    """
    value = seeds.mean(axis=0)
    draws = np.where(np.isnan(draws), value, draws)
    low, high = interval(value, draws, confidence, units)
    table: dict[str, dict[str, float]] = {}
    for index, metric in enumerate(ESTIMATES):
        if np.isnan(value[index]):
            continue
        numbers = {"value": value[index], "low": low[index], "high": high[index]}
        if len(seeds) > 1:
            numbers["std"] = seeds[:, index].std(ddof=1)
        known = {name: number for name, number in numbers.items() if not np.isnan(number)}
        rounded = {name: round(float(number), DIGITS) for name, number in known.items()}
        table[metric] = {**rounded, "n": n}
    return table


SCORER = F1()
