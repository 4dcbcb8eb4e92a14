"""Rank change and Understand–Confuse–Misunderstand.

Source: the paper on context variance, Methods, "Rank-change Calculation" and
"Understand-Confuse-Misunderstand Metric".

A step adds one segment, with the entity *added*, to a context built around a *target*. A rank
change is the rank after the step less the rank before it: negative is a rise. Only steps that add
another correct object count for UCM. Ranks come from a prediction table that has a row for every
entity of the context and every correct object, as `methods/rank_change.py` writes it.
"""

from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics.intervals import interval, resampled_sums

SHARES: Final = ["understand", "confuse", "misunderstand"]
SERIES: Final = ["rc_target", "rc_added", "rc_correct", "rc_incorrect"]
TRIPLE: Final = ["relation", "subject_id", "fact_id"]


def rank_changes(queries: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """The rows of `queries` that add a segment, with the four rank changes of the paper's Table 1.

    `rc_target`, `rc_added`: of the target and of the entity added; `rc_correct`, `rc_incorrect`:
    means over the other correct objects and the incorrect entities that the context held before.
    NaN where there is none. `weight` is one over the draws of the context's kind, so that several
    random contexts count as one. `predictions` are of one model, variant and replicate.
    """
    steps = queries[["query_id", "context_id", "step", "added", "target"]]
    ranks = predictions[["query_id", "prediction", "rank", "hit"]].merge(steps, on="query_id")
    ranks = ranks.sort_values(["context_id", "prediction", "step"])
    ranks["change"] = ranks.groupby(["context_id", "prediction"], sort=False)["rank"].diff()
    first_steps = (
        steps[steps["step"] > 0].groupby(["context_id", "added"], as_index=False)["step"].min()
    )
    first_steps = first_steps.rename(columns={"added": "prediction", "step": "shown_from"})
    ranks = ranks.merge(first_steps, on=["context_id", "prediction"], how="left")
    target = ranks["prediction"] == ranks["target"]
    is_in_context = ranks["shown_from"] < ranks["step"]
    series = {
        "rc_target": target,
        "rc_added": ranks["prediction"] == ranks["added"],
        "rc_correct": is_in_context & ranks["hit"] & ~target,
        "rc_incorrect": is_in_context & ~ranks["hit"] & ~target,
    }
    changes = queries[queries["step"] > 0].set_index("query_id")
    for name, rows in series.items():
        changes[name] = ranks[rows].groupby("query_id")["change"].mean()
    changes["weight"] = 1 / changes.groupby("kind")["draw"].transform("nunique")
    return changes.reset_index()


def change_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Means of the four series where the added entity is correct and where it is not (Table 1).

    The mean within each resource, then over resources. Rows `correct`, `incorrect`.
    """
    added = changes[changes["added_role"].isin(["correct", "incorrect"])]
    keys = [added["added_role"], added["resource"]]
    sums = added[SERIES].mul(added["weight"], axis=0).groupby(keys).sum()
    weights = added[SERIES].notna().mul(added["weight"], axis=0).groupby(keys).sum()
    by_resource = sums / weights.where(weights > 0)
    return by_resource.groupby("added_role").mean()


def shares(
    changes: pd.DataFrame, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand with bootstrap intervals over clusters.

    Steps with the same value in the column `cluster` are one cluster. A triple's are in one.

    For each relation UCM_k: the shares of each triple's steps, averaged over its triples; `macro`
    is their mean over relations; `micro` is UCM_m, the shares of all steps of all triples. Each is
    computed within each resource, then averaged over resources. Columns `relation, metric, value,
    low, high, n`, where `n` is the number of triples; no rows where no step adds a correct object.

    >>> steps = pd.DataFrame({
    ...     "relation": "has", "subject_id": "S", "fact_id": "O", "cluster": "S",
    ...     "resource": "notes", "added_role": "correct", "rc_target": [-2, 0, 0, 1],
    ...     "weight": 1.0})
    >>> shares(steps).query("relation == 'micro'")["value"].tolist()
    [0.25, 0.5, 0.25]
    """
    correct_steps = changes[changes["added_role"] == "correct"]
    if correct_steps.empty:
        return pd.DataFrame(columns=["relation", "metric", "value", "low", "high", "n"])
    triples, counts = _counts(correct_steps, sorted(correct_steps["resource"].unique()))
    steps = counts.sum(axis=2, keepdims=True)
    triple_shares = np.divide(counts, steps, out=np.zeros_like(counts), where=steps > 0)
    cluster_codes, names = pd.factorize(triples["cluster"])
    draws, sizes = {}, {}  # sizes: triples and clusters
    for relation in sorted(triples["relation"].unique()):
        is_relation = (triples["relation"] == relation).to_numpy()
        draws[str(relation)] = _mean_share(
            _resample(triple_shares * is_relation[:, None, None], cluster_codes, resamples, seed)
        )
        sizes[str(relation)] = (int(is_relation.sum()), len(np.unique(cluster_codes[is_relation])))
    draws["macro"] = _mean(np.stack(list(draws.values())), axis=0)
    draws["micro"] = _mean_share(_resample(counts, cluster_codes, resamples, seed))
    sizes["macro"] = sizes["micro"] = (len(triples), len(names))
    rows = [row for name in draws for row in _rows(name, draws[name], confidence, *sizes[name])]
    return pd.DataFrame(rows)


def by_triple(changes: pd.DataFrame) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand of each triple in each resource.

    Paired tests compare them. Columns `relation, subject_id, fact_id, resource, cluster,
    understand, confuse, misunderstand` and `weight`, by which their mean is the macro mean of
    `shares`.

    >>> steps = pd.DataFrame({
    ...     "relation": "has", "subject_id": "S", "fact_id": "O", "cluster": "S",
    ...     "resource": "notes", "added_role": "correct", "rc_target": [-2, 0, 0, 1],
    ...     "weight": 1.0})
    >>> by_triple(steps)[SHARES].to_numpy().tolist()
    [[0.25, 0.5, 0.25]]
    """
    correct_steps = changes[changes["added_role"] == "correct"]
    changes_of_target = correct_steps["rc_target"]
    moves = {
        "understand": changes_of_target < 0,
        "confuse": changes_of_target == 0,
        "misunderstand": changes_of_target > 0,
    }
    weights = correct_steps["weight"]
    steps = correct_steps.assign(**{name: moved * weights for name, moved in moves.items()})
    sums = steps.groupby([*TRIPLE, "resource", "cluster"])[[*SHARES, "weight"]].sum()
    triple_shares = sums[SHARES].div(sums["weight"], axis=0).reset_index()
    resources = triple_shares.groupby("relation")["resource"].transform("nunique")
    triples = triple_shares.groupby(["relation", "resource"])["fact_id"].transform("size")
    return triple_shares.assign(weight=1 / (resources * triples))


def _counts(correct_steps: pd.DataFrame, resources: list[str]) -> tuple[pd.DataFrame, np.ndarray]:
    """The triples, with their clusters, and the weight of their steps that rise, stay, fall.

    Triples × resources × 3.
    """
    groups = correct_steps.groupby([*TRIPLE, "cluster"], sort=True)
    triples = groups.size().index.to_frame(index=False)
    resource_codes = correct_steps["resource"].map(resources.index).to_numpy(int)
    move_codes = np.sign(correct_steps["rc_target"]).to_numpy(int) + 1
    counts = np.zeros((len(triples), len(resources), 3))
    weights = correct_steps["weight"].to_numpy(float)
    np.add.at(counts, (groups.ngroup().to_numpy(), resource_codes, move_codes), weights)
    return triples, counts


def _resample(values: np.ndarray, clusters: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums of values [triples, resources, 3], then of resamples of clusters: [1 + resamples, …]."""
    sums = np.zeros((clusters.max() + 1, values[0].size))
    np.add.at(sums, clusters, values.reshape(len(values), -1))
    resample_sums = resampled_sums(sums, resamples, seed)
    return np.vstack([sums.sum(axis=0), resample_sums]).reshape(-1, *values.shape[1:])


def _mean_share(totals: np.ndarray) -> np.ndarray:
    """Totals (draws × resources × 3) as shares of each resource, averaged over those with any."""
    step_counts = totals.sum(axis=2, keepdims=True)
    share = np.divide(totals, step_counts, out=np.full_like(totals, np.nan), where=step_counts > 0)
    return _mean(share, axis=1)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean without what is NaN; NaN where all is."""
    is_defined = ~np.isnan(values)
    count = is_defined.sum(axis=axis)
    sums = np.where(is_defined, values, 0).sum(axis=axis)
    return np.divide(sums, count, out=np.full(sums.shape, np.nan), where=count > 0)


def _rows(
    relation: str, draws: np.ndarray, confidence: float, size: int, clusters: int
) -> list[dict[str, Any]]:
    low, high = interval(draws[0], draws[1:], confidence, clusters)
    return [
        {
            "relation": relation,
            "metric": metric,
            "value": float(draws[0, index]),
            "low": float(low[index]),
            "high": float(high[index]),
            "n": size,
        }
        for index, metric in enumerate(SHARES)
    ]
