"""F1 of the positive class, by disease and category, from predictions on disk.

Source: Alghanmi et al. 2021, section 4.1: the harmonic mean of precision and recall over the whole
test split of a disease; macro is the mean over diseases, weighted the mean weighted by positives.
Seeds are averaged, and their sample standard deviation is kept. `f1_as_released` is what the
authors' released code computes: over positive examples alone, macro-averaged over the two labels.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.intervals import interval
from medprobe.metrics.summary import DIGITS

FEWEST: Final = 2  # positives of a disease in a category, for its F1 to be reported

Draws = NDArray[np.float64]  # [resamples, seeds, metrics]; the first row is the estimate itself


class F1(Scorer):
    """F1 of diseases, which go by their CUIs.

    Columns read: `variant, replicate, query_id, target, category, label, prediction`; a query's id
    is that of the positive it was made from, a `-`, and more. A subset is a category.
    """

    METRICS = (
        Metric("f1", "F1", "higher", 0.0, 1.0, "of the positive class; Alghanmi et al. 2021"),
        Metric(
            "f1_as_released",
            "F1 as released",
            "higher",
            0.0,
            1.0,
            "the authors' code: over positive examples alone",
        ),
        Metric(
            "f1_by_positive",
            "F1 by positive",
            "higher",
            0.0,
            1.0,
            "F1 of one positive with its negatives, as paired tests need values that are averaged",
            tested=True,
        ),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Scores by disease, macro and weighted. Intervals are bootstrap intervals over a disease's
        positives, each with its negatives."""
        scores: Scores = {}
        for (variant, category), rows in predictions.groupby(["variant", "category"], sort=True):
            if table := _category(rows, scoring):
                scores.setdefault(variant or "default", {})[category] = table
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path) -> pd.DataFrame:
        """One row a variant, category, disease and positive, with the F1 of that positive and its
        negatives, averaged over seeds. A disease's F1 is no mean of these."""
        parts = []
        keys = ["variant", "category", "target"]
        for (variant, category, target), part in predictions.groupby(keys, sort=True):
            values = f1(outcomes(part))[..., 0].mean(axis=0)
            names = [f"{target} {number}" for number in range(len(values))]
            about = {"variant": variant, "replicate": "", "subset": category}
            parts.append(pd.DataFrame({**about, "query_id": names, "f1_by_positive": values}))
        return pd.concat(parts, ignore_index=True)


def _category(rows: pd.DataFrame, scoring: Scoring) -> dict[str, Any]:
    generator = np.random.default_rng(scoring.seed)
    confidence = scoring.params.confidence
    result, all_draws, positives = {}, [], []
    for disease, part in rows.groupby("target", sort=True):
        counts = outcomes(part)
        if counts.shape[1] < FEWEST:
            continue
        draws = _resampled(counts, scoring.params.bootstrap, generator)
        result[str(disease)] = _numbers(draws, confidence, counts.shape[1])
        all_draws.append(draws)
        positives.append(counts.shape[1])
    if not result:
        return {}
    for name, weights in (("macro", None), ("weighted", positives)):
        draws = np.average(all_draws, axis=0, weights=weights)
        result[name] = _numbers(draws, confidence, sum(positives))
    return result


def outcomes(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Counts [seeds, positives, (true positives, false positives, false negatives)] of a disease:
    a positive and the negatives made from it are counted together."""
    said, true = rows["prediction"].astype(int) == 1, rows["label"] == 1
    table = pd.DataFrame(
        {
            "replicate": rows["replicate"],
            "positive": rows["query_id"].str.split("-").str[0],
            "tp": said & true,
            "fp": said & ~true,
            "fn": ~said & true,
        }
    )
    counts = table.groupby(["replicate", "positive"], sort=True).sum().astype(float)
    seeds = rows["replicate"].nunique()
    return counts.to_numpy().reshape(seeds, -1, 3)


def f1(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 and F1 as released, [..., 2], from counts of outcomes [..., 3].

    Always saying yes to one positive and ten negatives:

    >>> f1(np.array([1.0, 10.0, 0.0])).round(3)
    array([0.167, 1.   ])
    """
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    recall = tp / (tp + fn)
    labels = np.where(fn > 0, 2, 1)  # among the positives the released code sees no other label
    return np.stack([2 * tp / (2 * tp + fp + fn), 2 * recall / (1 + recall) / labels], axis=-1)


def _resampled(
    counts: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> Draws:
    """F1 of the disease, and of so many resamples of its positives."""
    size = counts.shape[1]
    drawn = generator.integers(0, size, (resamples, size))
    times = np.vstack([np.ones(size), [np.bincount(row, minlength=size) for row in drawn]])
    return f1(np.einsum("rp,spc->rsc", times, counts))


def _numbers(draws: Draws, confidence: float, n: int) -> dict[str, dict[str, float]]:
    seeds = draws[0]
    value, resampled = seeds.mean(axis=0), draws[1:].mean(axis=1)
    low, high = interval(value, resampled, confidence, n)
    table: dict[str, dict[str, float]] = {}
    for index, metric in enumerate(("f1", "f1_as_released")):
        numbers = {"value": value[index], "low": low[index], "high": high[index]}
        if len(seeds) > 1:
            numbers["std"] = seeds[:, index].std(ddof=1)
        rounded = {name: round(float(number), DIGITS) for name, number in numbers.items()}
        table[metric] = {**rounded, "n": n}
    return table


SCORER = F1()
