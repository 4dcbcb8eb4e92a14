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

from medprobe.metrics.intervals import interval
from medprobe.metrics.summary import DIGITS, Scores
from medprobe.params import Params, ScoreParams
from medprobe.report.papers import printed

FEWEST: Final = 2  # positives of a disease in a category, for its F1 to be reported
METRICS: Final = ("f1", "f1_as_released")

Draws = NDArray[np.float64]  # [resamples, seeds, metrics]; the first row is the estimate itself


def score(predictions: pd.DataFrame, folder: Path, params: Params) -> Scores:
    """Scores of DisKnE's prediction table: variant, category, disease (or macro, weighted), metric.

    A disease goes by its CUI; by its name, which may be licensed, where the paper prints it or
    `track.text` says so. Columns read: `variant, replicate, query_id, target, disease, category,
    label, prediction`. Intervals are bootstrap intervals over a disease's positives, each with its
    negatives.
    """
    named = params.track.text | predictions["disease"].isin(printed("diskne"))
    called = predictions["disease"].where(named, predictions["target"])
    predictions = predictions.assign(disease=called)
    scores: Scores = {}
    for (variant, category), rows in predictions.groupby(["variant", "category"], sort=True):
        found = _category(rows, params.score, params.seed)
        if found:
            scores.setdefault(variant or "default", {})[category] = found
    return scores


def paired(predictions: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """What paired tests compare: one row a variant, category, disease and positive, with the F1 of
    that positive and its negatives, averaged over seeds. A disease's F1 is no mean of these, but a
    paired test needs values that are averaged."""
    found = []
    for place, part in predictions.groupby(["variant", "category", "target"], sort=True):
        values = f1(outcomes(part))[..., 0].mean(axis=0)
        variant, category, target = place
        one = {"variant": variant, "replicate": "", "subset": category}
        names = [f"{target} {number}" for number in range(len(values))]
        found.append(pd.DataFrame({**one, "query_id": names, "f1_by_positive": values}))
    return pd.concat(found, ignore_index=True)


def _category(rows: pd.DataFrame, params: ScoreParams, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    result, all_draws, positives = {}, [], []
    for disease, part in rows.groupby("disease", sort=True):
        counts = outcomes(part)
        if counts.shape[1] < FEWEST:
            continue
        draws = _resampled(counts, params.bootstrap, generator)
        result[str(disease)] = _numbers(draws, params.confidence, counts.shape[1])
        all_draws.append(draws)
        positives.append(counts.shape[1])
    if not result:
        return {}
    for name, weights in (("macro", None), ("weighted", positives)):
        draws = np.average(all_draws, axis=0, weights=weights)
        result[name] = _numbers(draws, params.confidence, sum(positives))
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
    found: dict[str, dict[str, float]] = {}
    for place, metric in enumerate(METRICS):
        numbers = {"value": value[place], "low": low[place], "high": high[place]}
        if len(seeds) > 1:
            numbers["std"] = seeds[:, place].std(ddof=1)
        rounded = {name: round(float(number), DIGITS) for name, number in numbers.items()}
        found[metric] = {**rounded, "n": n}
    return found
