"""Statistics that are no mean of queries' values, such as AUROC, over resamples of clusters."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics import Metric, Scoring
from medprobe.metrics.intervals import draw_counts, interval, replicate_weights
from medprobe.metrics.summary import number_table

# rows and their weights [resamples, rows] -> values [resamples, metrics]
Statistic = Callable[[pd.DataFrame, np.ndarray], np.ndarray]
Units = Callable[[pd.DataFrame], Sequence[int]]  # rows -> how many clusters carry each metric

LOST: Final = 0.05  # of the resamples, at most, that have no value where there is an interval


def summarise_statistic(
    rows: pd.DataFrame,
    scoring: Scoring,
    metrics: Sequence[Metric],
    statistic: Statistic,
    *,
    by_relation: bool,
    units: Units,
) -> dict[str, dict[str, Any]]:
    """Compute the metrics of each relation, macro and micro, averaged over replicates.

    Intervals are over clusters and replicates. The macro mean is that of the relations that have a
    value. There is no interval where more than one resample in twenty has no value.

    Args:
        rows: the columns `cluster, relation, replicate`, and those that the statistic reads.
        scoring: resamples, confidence and seed.
        metrics: those of the statistic, in its order.
        statistic: values of weighted rows; NaN where a resample has none.
        by_relation: whether relations and their mean are wanted too.
        units: the clusters that carry each metric of some rows. Fewer than three have no interval.

    Returns:
        Relation, `macro` or `micro` -> metric -> value, low, high, std and n.
    """
    names = sorted(rows["relation"].unique()) if by_relation else []
    masks = [rows["relation"].to_numpy() == name for name in names]
    masks.append(np.ones(len(rows), dtype=bool))
    estimates = _estimate(rows, masks, scoring, statistic)
    replicates = estimates.shape[1]
    resamples, confidence = scoring.params.bootstrap, scoring.params.confidence
    weights = replicate_weights(replicates, resamples, scoring.seed) / replicates
    values = np.einsum("ards,dr->ads", estimates, weights)
    first_replicate = (rows["replicate"] == rows["replicate"].min()).to_numpy()
    counts = [(units(rows[mask]), int((mask & first_replicate).sum())) for mask in masks]
    result = {
        name: _round_numbers(metrics, draws, by_replicate[:, 0], sizes, confidence)
        for name, draws, by_replicate, sizes in zip(
            [*names, "micro"], values, estimates, counts, strict=True
        )
    }
    if by_relation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # no relation has a value: NaN
            macro = np.nanmean(values[:-1], axis=0)
            by_replicate = np.nanmean(estimates[:-1, :, 0], axis=0)
        result["macro"] = _round_numbers(metrics, macro, by_replicate, counts[-1], confidence)
    return result


def _estimate(
    rows: pd.DataFrame, masks: Sequence[np.ndarray], scoring: Scoring, statistic: Statistic
) -> np.ndarray:
    """The statistic by group: [groups, replicates, 1 + resamples, metrics]; the sample is first."""
    cluster, clusters = pd.factorize(rows["cluster"], sort=True)
    replicate, replicates = pd.factorize(rows["replicate"], sort=True)
    cells = [mask & (replicate == index) for mask in masks for index in range(len(replicates))]
    cell_rows = [rows[cell] for cell in cells]
    sample = np.ones((1, len(clusters)))
    blocks = []
    for counts in (sample, *draw_counts(len(clusters), scoring.params.bootstrap, scoring.seed)):
        weights = counts[:, cluster]
        pairs = zip(cell_rows, cells, strict=True)
        blocks.append(np.stack([statistic(part, weights[:, cell]) for part, cell in pairs]))
    estimates = np.concatenate(blocks, axis=1)
    return estimates.reshape(len(masks), len(replicates), *estimates.shape[1:])


def _round_numbers(
    metrics: Sequence[Metric],
    values: np.ndarray,
    replicate_values: np.ndarray,
    counts: tuple[Sequence[int], int],
    confidence: float,
) -> dict[str, Any]:
    """The numbers of each metric, from `values` [1 + resamples, metrics] and those by replicate.

    `counts` are the numbers of clusters that carry each metric, and of rows.
    """
    units, n = counts
    bounds = np.full((2, len(metrics)), np.nan)
    is_known = np.isnan(values[1:]).mean(axis=0) <= LOST
    for place in np.flatnonzero(is_known).tolist():
        column, scales = [place], [metrics[place].scale]
        low, high = interval(
            values[0, column], values[1:, column], confidence, units[place], scales=scales
        )
        bounds[:, place] = low[0], high[0]
    several = len(replicate_values) > 1
    deviation = replicate_values.std(axis=0, ddof=1) if several else np.full(len(metrics), np.nan)
    names = [metric.name for metric in metrics]
    return number_table(names, n, value=values[0], low=bounds[0], high=bounds[1], std=deviation)
