"""Judgment: how well a model tells true statements from wrong ones, and how sure it rightly is.

A statement counts as judged right where P(true) is above one half and it is true, or below and it
is not; at one half it counts half. A model that calls all of them true, or none, judges half right:
the share that it calls true says so. AUROC is the chance that a true statement gets a higher
P(true) than a wrong one, ties one half (Hanley and McNeil 1982). The expected calibration error is
the mean distance, over ten bins of P(true), between its mean and the share of true statements (Guo
et al. 2017, section 2).
"""

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.resampling import draw_counts, replicate_weights, resampled_interval
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import KEYS, QUERY_KEYS, cluster_queries, number_table, weighted

LOST: Final = 0.05  # of the resamples, at most, that have no value where there is an interval
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
        Metric(
            *("called_true", "called true", "neither", 0.0, 1.0),
            source="share of statements with P(true) above one half",
        ),
        Metric("auroc", "AUROC", "higher", 0.0, 1.0, _HANLEY, guessing=0.5),
        Metric("calibration_error", "expected calibration error", "lower", 0.0, 1.0, _GUO),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score statements by subset, part of a subset and relation."""
        queries = cluster_queries(tables, scoring.cluster)
        values = predictions.merge(queries[QUERY_KEYS], on="query_id")
        rows = with_parts(values, queries, scoring.facts)
        scores: Scores = {}
        for (variant, subset), part in rows.groupby(["variant", "subset"], sort=True):
            table = _summarise(part, scoring, by_relation="/" not in subset)
            scores.setdefault(variant or "default", {})[subset] = table
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return for each query the share of its statements that were judged right."""
        queries = cluster_queries(tables, scoring.cluster)
        is_right = judged_right(predictions["score"].to_numpy(), predictions["hit"].to_numpy(bool))
        values = predictions.assign(judged_right=is_right).groupby(KEYS, as_index=False)
        means = values["judged_right"].mean()
        return weighted(means.merge(queries[QUERY_KEYS], on="query_id"))


def judged_right(score: np.ndarray, true: np.ndarray) -> np.ndarray:
    """1 where a statement was judged right, 1/2 where it was not judged, [statements].

    >>> judged_right(np.array([0.9, 0.9, 0.5]), np.array([True, False, True]))
    array([1. , 0. , 0.5])
    """
    return np.where(score == 0.5, 0.5, (score > 0.5) == true)


def called_true(score: np.ndarray) -> np.ndarray:
    """1 where a statement was called true, 1/2 where P(true) is one half, [statements].

    >>> called_true(np.array([0.9, 0.5, 0.2]))
    array([1. , 0.5, 0. ])
    """
    return np.where(score == 0.5, 0.5, score > 0.5)


def auroc(score: np.ndarray, true: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The area under the ROC curve for each row of weights, [resamples, statements].

    NaN where either kind has no weight. `true` may hold shares between 0 and 1.

    >>> auroc(np.array([0.9, 0.4, 0.4]), np.array([True, True, False]), np.ones((1, 3)))
    array([0.75])
    """
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))  # of equal scores
    true_weights, wrong_weights = (
        np.add.reduceat(weights[:, order] * kind[order], starts, axis=1)
        for kind in (true.astype(float), 1.0 - true)
    )
    wrong_below = np.cumsum(wrong_weights, axis=1) - wrong_weights / 2
    pairs = true_weights.sum(axis=1) * wrong_weights.sum(axis=1)
    pairs_won = (true_weights * wrong_below).sum(axis=1)
    return np.divide(pairs_won, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


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
    """Compute one row per variant and bin of P(true) that any statement is in.

    The columns are `variant, said` (the mean of P(true)), `true` (the share of true statements)
    and `n`.
    """
    rows = predictions.assign(bin=bins(predictions["score"].to_numpy()))
    groups = rows.groupby(["variant", "bin"], sort=True)
    table = groups.agg(said=("score", "mean"), true=("hit", "mean"), n=("hit", "size"))
    return table.reset_index().drop(columns="bin")


def _summarise(
    rows: pd.DataFrame, scoring: Scoring, *, by_relation: bool
) -> dict[str, dict[str, Any]]:
    """Compute the metrics of each relation, macro and micro, averaged over replicates.

    Intervals are over clusters and replicates. The macro mean is that of the relations that have a
    value. There is no interval where more than one resample in twenty has no value.
    """
    names = sorted(rows["relation"].unique()) if by_relation else []
    masks = [rows["relation"].to_numpy() == name for name in names]
    masks.append(np.ones(len(rows), dtype=bool))
    estimates = _by_group(rows, masks, scoring)
    replicates = estimates.shape[1]
    resamples, confidence = scoring.params.bootstrap, scoring.params.confidence
    weights = replicate_weights(replicates, resamples, scoring.seed) / replicates
    values = np.einsum("ards,dr->ads", estimates, weights)
    first_replicate = (rows["replicate"] == rows["replicate"].min()).to_numpy()
    counts = [(_units(rows[mask]), int((mask & first_replicate).sum())) for mask in masks]
    result = {
        name: _numbers(draws, by_replicate[:, 0], sizes, confidence)
        for name, draws, by_replicate, sizes in zip(
            [*names, "micro"], values, estimates, counts, strict=True
        )
    }
    if by_relation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # no relation has a value: NaN
            macro = np.nanmean(values[:-1], axis=0)
            by_replicate = np.nanmean(estimates[:-1, :, 0], axis=0)
        result["macro"] = _numbers(macro, by_replicate, counts[-1], confidence)
    return result


def _by_group(rows: pd.DataFrame, masks: Sequence[np.ndarray], scoring: Scoring) -> np.ndarray:
    """The metrics by group: [groups, replicates, 1 + resamples, metrics]; the sample is first."""
    cluster, clusters = pd.factorize(rows["cluster"], sort=True)
    replicate, replicates = pd.factorize(rows["replicate"], sort=True)
    cells = [mask & (replicate == index) for mask in masks for index in range(len(replicates))]
    cell_rows = [rows[cell] for cell in cells]
    sample = np.ones((1, len(clusters)))
    blocks = []
    for counts in (sample, *draw_counts(len(clusters), scoring.params.bootstrap, scoring.seed)):
        weights = counts[:, cluster]
        pairs = zip(cell_rows, cells, strict=True)
        blocks.append(np.stack([_estimates(part, weights[:, cell]) for part, cell in pairs]))
    estimates = np.concatenate(blocks, axis=1)
    return estimates.reshape(len(masks), len(replicates), *estimates.shape[1:])


def _numbers(
    values: np.ndarray,
    replicate_values: np.ndarray,
    counts: tuple[Sequence[int], int],
    confidence: float,
) -> dict[str, Any]:
    """The numbers of each metric, from `values` [1 + resamples, metrics] and those by replicate.

    `counts` are the numbers of clusters that carry each metric, and of rows.
    """
    units, n = counts
    bounds = np.full((2, len(units)), np.nan)
    is_known = np.isnan(values[1:]).mean(axis=0) <= LOST
    for place in np.flatnonzero(is_known).tolist():
        scale = [Judgment.METRICS[place].scale]
        draws = values[1:, [place]]
        low, high = resampled_interval(
            values[0, [place]], draws, confidence, units[place], scales=scale
        )
        bounds[:, place] = low[0], high[0]
    deviation = np.full(len(units), np.nan)
    if len(replicate_values) > 1:
        deviation = replicate_values.std(axis=0, ddof=1)
    names = [metric.name for metric in Judgment.METRICS]
    return number_table(names, n, value=values[0], low=bounds[0], high=bounds[1], std=deviation)


def _units(rows: pd.DataFrame) -> list[int]:
    """The clusters behind each metric: of the AUROC those of true or wrong ones, the fewer."""
    clusters, of_kinds = rows["cluster"].nunique(), rows.groupby("hit")["cluster"].nunique()
    return [clusters, clusters, int(of_kinds.min()), clusters]


def _estimates(rows: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """The metrics, [resamples, metrics]; nan for a resample without a statement."""
    score, true = rows["score"].to_numpy(float), rows["hit"].to_numpy(bool)
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        metrics = [
            weights @ judged_right(score, true) / total,
            weights @ called_true(score) / total,
            auroc(score, true, weights),
            calibration_error(score, true, weights),
        ]
    return np.stack(metrics, axis=1)


SCORER = Judgment()
