"""Rank change and Understand–Confuse–Misunderstand. Source: the paper on context variance, Methods,
"Rank-change Calculation" and "Understand-Confuse-Misunderstand Metric".

A step adds one segment, with the entity *added*, to a context built around a *target*. A rank
change is the rank after the step less the rank before it: negative is a rise. Only steps that add
another correct object count for UCM. Ranks come from a prediction table that has a row for every
entity of the context and every correct object, as `methods/rank_change.py` writes it.
"""

from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics.intervals import interval

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
    """Means of the four series where the added entity is correct and where it is not (Table 1):
    the mean within each resource, then over resources. Rows `correct`, `incorrect`.
    """
    added = changes[changes["added_role"].isin(["correct", "incorrect"])]
    by_resource = added.groupby(["added_role", "resource"])[SERIES].mean()
    return by_resource.groupby("added_role").mean()


def shares(
    changes: pd.DataFrame, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand with bootstrap intervals over triples.

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
    draw = np.random.default_rng(seed)
    draws, sizes, pooled = {}, {}, []
    for relation, part in kept.groupby("relation"):
        counts = _counts(part, sorted(kept["resource"].unique()))
        size = counts.shape[1]
        weights = np.vstack(
            [np.ones(size), draw.multinomial(size, np.full(size, 1 / size), size=resamples)]
        )
        steps = counts.sum(axis=2, keepdims=True)
        each = np.divide(counts, steps, out=np.zeros_like(counts), where=steps > 0)
        draws[str(relation)] = _weighted(each, weights)
        sizes[str(relation)] = size
        pooled.append(np.einsum("bt,rtc->brc", weights, counts))
    relations = list(draws)
    draws["macro"] = np.nanmean([draws[name] for name in relations], axis=0)
    draws["micro"] = _mean_share(np.sum(pooled, axis=0))
    sizes["macro"] = sizes["micro"] = sum(sizes.values())
    rows = [row for name in draws for row in _rows(name, draws[name], confidence, sizes[name])]
    return pd.DataFrame(rows)


def by_triple(changes: pd.DataFrame) -> pd.DataFrame:
    """Understand, Confuse and Misunderstand of each triple, its resources averaged: what paired
    tests compare. Columns `relation, subject_id, fact_id, understand, confuse, misunderstand`.

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
    each = steps.groupby([*TRIPLE, "resource"])[SHARES].mean()
    return each.groupby(TRIPLE).mean().reset_index()


def _counts(part: pd.DataFrame, resources: list[str]) -> np.ndarray:
    """How many steps rise, stay, fall: resources × triples × 3."""
    sign = np.sign(part["rc_target"]).astype(int)
    table = pd.crosstab([part["resource"], *(part[name] for name in TRIPLE)], sign)
    table = table.reindex(columns=[-1, 0, 1], fill_value=0).unstack("resource", fill_value=0)
    nothing = np.zeros((len(table), 3))
    there = table.columns.get_level_values("resource")
    return np.stack(
        [
            table.xs(name, axis=1, level="resource").to_numpy(float) if name in there else nothing
            for name in resources
        ]
    )


def _weighted(each: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Triples' shares averaged with weights, then over resources: draws × 3."""
    return _mean_share(np.einsum("bt,rtc->brc", weights, each))


def _mean_share(totals: np.ndarray) -> np.ndarray:
    """Totals (draws × resources × 3) as shares of each resource, averaged over those with any."""
    whole = totals.sum(axis=2, keepdims=True)
    share = np.divide(totals, whole, out=np.full_like(totals, np.nan), where=whole > 0)
    with np.errstate(invalid="ignore"):
        return np.nanmean(share, axis=1)


def _rows(relation: str, draws: np.ndarray, confidence: float, size: int) -> list[dict[str, Any]]:
    low, high = interval(draws[0], draws[1:], confidence, size)
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
