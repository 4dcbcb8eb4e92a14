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
    NaN where there is none. `predictions` are of one model, variant and replicate.
    """
    steps = queries[["query_id", "context_id", "step", "added", "target"]]
    ranks = predictions[["query_id", "prediction", "rank", "hit"]].merge(steps, on="query_id")
    ranks = ranks.sort_values(["context_id", "prediction", "step"])
    ranks["change"] = ranks.groupby(["context_id", "prediction"], sort=False)["rank"].diff()
    first = steps[steps["step"] > 0].groupby(["context_id", "added"], as_index=False)["step"].min()
    first = first.rename(columns={"added": "prediction", "step": "shown_from"})
    ranks = ranks.merge(first, on=["context_id", "prediction"], how="left")
    target = ranks["prediction"] == ranks["target"]
    before = ranks["shown_from"] < ranks["step"]
    chosen = {
        "rc_target": target,
        "rc_added": ranks["prediction"] == ranks["added"],
        "rc_correct": before & ranks["hit"] & ~target,
        "rc_incorrect": before & ~ranks["hit"] & ~target,
    }
    changes = queries[queries["step"] > 0].set_index("query_id")
    for name, rows in chosen.items():
        changes[name] = ranks[rows].groupby("query_id")["change"].mean()
    return changes.reset_index()


def change_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Means of the four series where the added entity is correct and where it is not (Table 1).

    The mean within each resource, then over resources. Rows `correct`, `incorrect`.
    """
    added = changes[changes["added_role"].isin(["correct", "incorrect"])]
    by_resource = added.groupby(["added_role", "resource"])[SERIES].mean()
    return by_resource.groupby("added_role").mean()


def shares(
    changes: pd.DataFrame,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    cluster: str = "subject_id",
) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand with bootstrap intervals over clusters.

    What is equal in the column `cluster`, which is one for all steps of a triple.

    For each relation UCM_k: the shares of each triple's steps, averaged over its triples; `macro`
    is their mean over relations; `micro` is UCM_m, the shares of all steps of all triples. Each is
    computed within each resource, then averaged over resources. Columns `relation, metric, value,
    low, high, n`, where `n` is the number of triples; no rows where no step adds a correct object.

    >>> steps = pd.DataFrame({
    ...     "relation": "has", "subject_id": "S", "fact_id": "O", "resource": "notes",
    ...     "added_role": "correct", "rc_target": [-2, 0, 0, 1]})
    >>> shares(steps).query("relation == 'micro'")["value"].tolist()
    [0.25, 0.5, 0.25]
    """
    kept = changes[changes["added_role"] == "correct"]
    if kept.empty:
        return pd.DataFrame(columns=["relation", "metric", "value", "low", "high", "n"])
    triples, counts = _counts(kept, sorted(kept["resource"].unique()), cluster)
    steps = counts.sum(axis=2, keepdims=True)
    each = np.divide(counts, steps, out=np.zeros_like(counts), where=steps > 0)
    of, names = pd.factorize(triples[cluster])
    draws, sizes = {}, {}  # sizes: triples and clusters
    for relation in sorted(triples["relation"].unique()):
        own = (triples["relation"] == relation).to_numpy()
        draws[str(relation)] = _mean_share(_drawn(each * own[:, None, None], of, resamples, seed))
        sizes[str(relation)] = (int(own.sum()), len(np.unique(of[own])))
    draws["macro"] = _mean(np.stack(list(draws.values())), axis=0)
    draws["micro"] = _mean_share(_drawn(counts, of, resamples, seed))
    sizes["macro"] = sizes["micro"] = (len(triples), len(names))
    rows = [row for name in draws for row in _rows(name, draws[name], confidence, *sizes[name])]
    return pd.DataFrame(rows)


def by_triple(changes: pd.DataFrame, cluster: str = "subject_id") -> pd.DataFrame:
    """Understand, Confuse and Misunderstand of each triple in each resource.

    What paired tests compare. Columns `relation, subject_id, fact_id, resource, cluster,
    understand, confuse, misunderstand` and `weight`, by which their mean is the macro mean of
    `shares`.

    >>> steps = pd.DataFrame({
    ...     "relation": "has", "subject_id": "S", "fact_id": "O", "resource": "notes",
    ...     "added_role": "correct", "rc_target": [-2, 0, 0, 1]})
    >>> by_triple(steps)[SHARES].to_numpy().tolist()
    [[0.25, 0.5, 0.25]]
    """
    kept = changes[changes["added_role"] == "correct"]
    change = kept["rc_target"]
    moves = {"understand": change < 0, "confuse": change == 0, "misunderstand": change > 0}
    steps = kept.assign(**{name: moved.astype(float) for name, moved in moves.items()})
    keys = [*TRIPLE, "resource", "cluster"]
    each = steps.assign(cluster=kept[cluster]).groupby(keys, as_index=False)[SHARES].mean()
    resources = each.groupby("relation")["resource"].transform("nunique")
    triples = each.groupby(["relation", "resource"])["fact_id"].transform("size")
    return each.assign(weight=1 / (resources * triples))


def _counts(
    kept: pd.DataFrame, resources: list[str], cluster: str
) -> tuple[pd.DataFrame, np.ndarray]:
    """The triples, with their clusters, and how many of their steps rise, stay, fall.

    Triples × resources × 3.
    """
    keys = list(dict.fromkeys([*TRIPLE, cluster]))
    each = kept.groupby(keys, sort=True)
    triples = each.size().index.to_frame(index=False)
    place = kept["resource"].map(resources.index).to_numpy(int)
    move = np.sign(kept["rc_target"]).to_numpy(int) + 1
    counts = np.zeros((len(triples), len(resources), 3))
    np.add.at(counts, (each.ngroup().to_numpy(), place, move), 1)
    return triples, counts


def _drawn(values: np.ndarray, clusters: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums over all triples (triples × resources × 3), and over resamples of their clusters behind
    them: 1 + resamples × resources × 3.
    """
    sums = np.zeros((clusters.max() + 1, values[0].size))
    np.add.at(sums, clusters, values.reshape(len(values), -1))
    drawn = resampled_sums(sums, resamples, seed)
    return np.vstack([sums.sum(axis=0), drawn]).reshape(-1, *values.shape[1:])


def _mean_share(totals: np.ndarray) -> np.ndarray:
    """Totals (draws × resources × 3) as shares of each resource, averaged over those with any."""
    whole = totals.sum(axis=2, keepdims=True)
    share = np.divide(totals, whole, out=np.full_like(totals, np.nan), where=whole > 0)
    return _mean(share, axis=1)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean without what is NaN; NaN where all is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    sums = np.where(there, values, 0).sum(axis=axis)
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
