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

from medprobe.metrics.resampling import means_of_sums, resampled_interval, resampled_sums

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
    return changes.reset_index()


def change_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Means of the four series where the added entity is correct and where it is not (Table 1).

    The mean within each resource, then over resources. Rows `correct`, `incorrect`.
    """
    added = changes[changes["added_role"].isin(["correct", "incorrect"])]
    by_resource = added.groupby(["added_role", "resource"])[SERIES].mean()
    return by_resource.groupby("added_role").mean()


def shares(
    changes: pd.DataFrame, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand as `over_resources` has them.

    For each relation and `macro` UCM_k: the shares of each triple's steps; `micro` is UCM_m, the
    shares of all steps of all triples. No rows where no step adds a correct object.
    """
    return over_resources(by_triple(changes), SHARES, resamples, confidence, seed)


def by_triple(changes: pd.DataFrame) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand of each triple in each resource.

    Columns `relation, subject_id, fact_id, resource, cluster, understand, confuse, misunderstand`,
    `size`, the number of its steps, and `weight` (`weigh`).

    >>> steps = pd.DataFrame({
    ...     "relation": "has", "subject_id": "S", "fact_id": "O", "cluster": "S",
    ...     "resource": "notes", "added_role": "correct", "rc_target": [-2, 0, 0, 1]})
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
    steps = correct_steps.assign(**moves).groupby([*TRIPLE, "resource", "cluster"])
    return weigh(steps[SHARES].mean().assign(size=steps.size().astype(float)).reset_index())


def weigh(triples: pd.DataFrame) -> pd.DataFrame:
    """The table with `weight`, by which the mean of a column is its macro mean over resources."""
    resources = triples.groupby("relation")["resource"].transform("nunique")
    triples_of_resource = triples.groupby(["relation", "resource"])["fact_id"].transform("size")
    return triples.assign(weight=1 / (resources * triples_of_resource))


def over_resources(
    triples: pd.DataFrame, metrics: list[str], resamples: int, confidence: float, seed: int
) -> pd.DataFrame:
    """Means of metrics within each resource, then over resources, with intervals over clusters.

    Rows with the same value in the column `cluster` are one cluster. A triple's are in one.

    Args:
        triples: a row for each triple in each resource: the columns `relation, subject_id, fact_id,
            resource, cluster`, the metrics, and `size`, what the row weighs in `micro`.
        metrics: shares.
        resamples: of clusters.
        confidence: of the intervals.
        seed: of the resamples.

    Returns:
        Columns `relation, metric, value, low, high, n`, where `n` is the number of triples. For
        each relation the mean over its triples; `macro`, the mean over relations; `micro`, the mean
        over all rows by their size.
    """
    clusters, names = pd.factorize(triples["cluster"])
    resources, resource_names = pd.factorize(triples["resource"])

    def draw(sizes: np.ndarray) -> np.ndarray:
        """The means, then those of resamples: [1 + resamples, metrics]."""
        sums = np.zeros((len(names), len(resource_names), len(metrics) + 1))
        values = np.column_stack([triples[metrics].to_numpy(float) * sizes[:, None], sizes])
        np.add.at(sums, (clusters, resources), values)
        resample_sums = resampled_sums(sums.reshape(len(names), -1), resamples, seed)
        totals = np.vstack([sums.sum(axis=0).ravel(), resample_sums])
        return _mean(means_of_sums(totals.reshape(-1, *sums.shape[1:])), axis=1)

    if triples.empty:
        return pd.DataFrame(columns=["relation", "metric", "value", "low", "high", "n"])
    everywhere = np.ones(len(triples), dtype=bool)
    masks = {
        str(name): (triples["relation"] == name).to_numpy()
        for name in sorted(triples["relation"].unique())
    }
    draws = {name: draw(mask.astype(float)) for name, mask in masks.items()}
    draws["macro"] = _mean(np.stack(list(draws.values())), axis=0)
    draws["micro"] = draw(triples["size"].to_numpy(float))
    rows: list[dict[str, Any]] = []
    for relation, values in draws.items():
        mask = masks.get(relation, everywhere)
        units, n = len(np.unique(clusters[mask])), len(triples.loc[mask, TRIPLE].drop_duplicates())
        low, high = resampled_interval(values[0], values[1:], confidence, units)
        for place, metric in enumerate(metrics):
            numbers = {"value": values[0, place], "low": low[place], "high": high[place], "n": n}
            rows.append({"relation": relation, "metric": metric, **numbers})
    return pd.DataFrame(rows)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean without what is NaN; NaN where all is."""
    is_defined = ~np.isnan(values)
    count = is_defined.sum(axis=axis)
    sums = np.where(is_defined, values, 0).sum(axis=axis)
    return np.divide(sums, count, out=np.full(sums.shape, np.nan), where=count > 0)
