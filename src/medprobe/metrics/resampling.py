"""Statistics that are no mean of queries' values, such as AUROC, over resamples of clusters."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from medprobe.metrics import Metric, Scoring
from medprobe.metrics.intervals import draw_counts, interval, replicate_weights
from medprobe.metrics.summary import DIGITS

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
    cluster, clusters = pd.factorize(rows["cluster"], sort=True)
    names = sorted(rows["relation"].unique()) if by_relation else []
    masks = [rows["relation"].to_numpy() == name for name in names]
    masks.append(np.ones(len(rows), dtype=bool))
    replicate, replicates = pd.factorize(rows["replicate"], sort=True)
    masks_by_replicate = [
        [mask & (replicate == r) for r in range(len(replicates))] for mask in masks
    ]
    parts = [[rows[mask] for mask in of_relation] for of_relation in masks_by_replicate]
    resamples, confidence = scoring.params.bootstrap, scoring.params.confidence
    blocks = []
    for counts in [
        np.ones((1, len(clusters))),
        *draw_counts(len(clusters), resamples, scoring.seed),
    ]:
        weights = counts[:, cluster]
        blocks.append(
            np.array(
                [
                    [
                        statistic(part, weights[:, mask])
                        for part, mask in zip(of_relation, relation_masks, strict=True)
                    ]
                    for of_relation, relation_masks in zip(parts, masks_by_replicate, strict=True)
                ]
            )
        )
    estimates = np.concatenate(blocks, axis=2)  # [relations and all, replicates, draws, metrics]
    weights_of_replicates = replicate_weights(len(replicates), resamples, scoring.seed) / len(
        replicates
    )
    values = np.einsum("ards,dr->ads", estimates, weights_of_replicates)
    sizes = [len(np.unique(cluster[mask])) for mask in masks]
    counts_of_rows = [int(mask[0].sum()) for mask in masks_by_replicate]  # of a replicate
    result = {
        name: _round_numbers(
            metrics, relation_values, replicate_values[:, 0], (size, n), confidence
        )
        for name, relation_values, replicate_values, size, n in zip(
            [*names, "micro"], values, estimates, sizes, counts_of_rows, strict=True
        )
    }
    if by_relation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # no relation has a value: NaN
            macro = np.nanmean(values[:-1], axis=0)
            replicate_values = np.nanmean(estimates[:-1, :, 0], axis=0)
        result["macro"] = _round_numbers(
            metrics, macro, replicate_values, (sizes[-1], counts_of_rows[-1]), confidence
        )
    return result


def _round_numbers(
    metrics: Sequence[Metric],
    values: np.ndarray,
    replicate_values: np.ndarray,
    counts: tuple[int, int],
    confidence: float,
) -> dict[str, Any]:
    """The numbers of each metric, rounded.

    Args:
        metrics: in the order of the columns.
        values: of the sample and of resamples, [1 + resamples, metrics].
        replicate_values: of the sample by replicate, [replicates, metrics].
        counts: the numbers of clusters and of rows.
        confidence: of the intervals.
    """
    clusters, n = counts
    scales = [metric.scale for metric in metrics]
    low, high = interval(values[0], values[1:], confidence, clusters, scales=scales)
    deviation = (
        replicate_values.std(axis=0, ddof=1)
        if len(replicate_values) > 1
        else np.full(len(low), np.nan)
    )
    table = {}
    for index, metric in enumerate(metrics):
        numbers = {
            "value": values[0, index],
            "low": low[index],
            "high": high[index],
            "std": deviation[index],
        }
        rounded = {k: round(float(v), DIGITS) for k, v in numbers.items() if not np.isnan(v)}
        table[metric.name] = {**rounded, "n": n}
    return table
