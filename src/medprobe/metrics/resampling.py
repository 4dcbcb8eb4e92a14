"""Statistics that are no mean of queries' values, such as AUROC, over resamples of clusters."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from medprobe.metrics import Metric, Scoring
from medprobe.metrics.intervals import draw_counts, interval, replicate_weights
from medprobe.metrics.summary import number_table

# rows and their weights [resamples, rows] -> values [resamples, metrics]
Statistic = Callable[[pd.DataFrame, np.ndarray], np.ndarray]


def summarise_statistic(
    rows: pd.DataFrame,
    scoring: Scoring,
    metrics: Sequence[Metric],
    statistic: Statistic,
    *,
    by_relation: bool,
) -> dict[str, dict[str, Any]]:
    """Compute the metrics of each relation, macro and micro, averaged over replicates.

    Intervals are over clusters and replicates.

    Args:
        rows: the columns `cluster, relation, replicate`, and those that the statistic reads.
        scoring: resamples, confidence and seed.
        metrics: those of the statistic, in its order.
        statistic: values of weighted rows; NaN where a resample has none.
        by_relation: whether relations and their mean are wanted too.

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
    counts = [
        (rows.loc[mask, "cluster"].nunique(), int((mask & first_replicate).sum())) for mask in masks
    ]
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
    counts: tuple[int, int],
    confidence: float,
) -> dict[str, Any]:
    """The numbers of each metric, from `values` [1 + resamples, metrics] and those by replicate.

    `counts` are the numbers of clusters and of rows.
    """
    clusters, n = counts
    scales = [metric.scale for metric in metrics]
    low, high = interval(values[0], values[1:], confidence, clusters, scales=scales)
    several = len(replicate_values) > 1
    deviation = replicate_values.std(axis=0, ddof=1) if several else np.full(len(low), np.nan)
    names = [metric.name for metric in metrics]
    return number_table(names, n, value=values[0], low=low, high=high, std=deviation)
