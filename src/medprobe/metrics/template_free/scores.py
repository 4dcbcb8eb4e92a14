"""Analyses of the comparison.

How data sets rank models, perplexity against accuracy, templates one by one, and more entities to
rank.
"""

from collections.abc import Collection
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.tables import CANDIDATE_COLUMNS, DISTRACTOR, read_table
from medprobe.metrics.summary import MEANS
from medprobe.metrics.template_free.data_sets import METHOD, WITH_DISTRACTORS, DataSet, home

FEWEST: Final = 5  # models: a ranking of fewer says nothing


def per_data_set(comparison: pd.DataFrame, sets: list[DataSet]) -> pd.DataFrame:
    """Return one row per data set and model.

    Its columns are `acc_at_1, acc_at_5, acc_at_10, perplexity`, as means over all queries, and the
    data set's `name, kind, domain`.
    """
    accuracy = (comparison["method"] == METHOD) & comparison["metric"].str.fullmatch(r"acc_at_\d+")
    perplexity = (comparison["method"] == "perplexity") & (comparison["metric"] == "perplexity")
    rows = comparison[(comparison["relation"] == "micro") & (accuracy | perplexity)]
    wide = rows.pivot(index=["benchmark", "subset", "model"], columns="metric", values="value")
    return pd.DataFrame(sets, columns=DataSet._fields).merge(
        wide.reset_index(), on=["benchmark", "subset"]
    )


def rankings(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the models in each data set by acc@1, 1 the best, ties shared.

    `name, kind, domain, model, value, rank`. Only data sets with two models or more.
    """
    if "acc_at_1" not in scores:
        return pd.DataFrame()
    table = scores.dropna(subset="acc_at_1").rename(columns={"acc_at_1": "value"})
    table = table[table.groupby("name")["model"].transform("nunique") > 1]
    ranks = table.groupby("name")["value"].rank(ascending=False)
    columns = ["name", "kind", "domain", "model", "value"]
    return table[columns].assign(rank=ranks).reset_index(drop=True)


def displacement(ranks: pd.DataFrame) -> pd.DataFrame:
    """For each template-based and template-free data set of a domain.

    How far models move from one to the other (`mean` and `largest` absolute rank displacement,
    which model moves most), and Kendall's tau-b of the two rankings with its p (research questions
    1 and 3). Only where both rank five models or more.
    """
    from scipy.stats import kendalltau

    rows = []
    for domain, part in ranks.groupby("domain", sort=True) if len(ranks) else []:
        wide = part.pivot(index="model", columns="name", values="rank")
        kinds = part.drop_duplicates("name").groupby("kind")["name"].agg(list)
        for pair, other in product(kinds.get("template-based", []), kinds.get("template-free", [])):
            both = wide[[pair, other]].dropna()
            if len(both) < FEWEST:
                continue
            moved = both[other] - both[pair]
            tau = kendalltau(both[pair], both[other])
            rows.append(
                {
                    **{"domain": domain, "template_based": pair, "template_free": other},
                    **{"models": len(both), "mean": moved.abs().mean()},
                    **{"largest": moved.abs().max(), "model": moved.abs().idxmax()},
                    **{"tau": tau.statistic, "p": tau.pvalue},
                }
            )
    return pd.DataFrame(rows)


def with_perplexity(scores: pd.DataFrame, left_out: Collection[str] = ()) -> pd.DataFrame:
    """Select the data sets and models that have both an accuracy and a perplexity.

    Models that are `left_out` of means are not returned.
    """
    wanted = ["acc_at_1", "perplexity"]
    if not set(wanted) <= set(scores):
        return pd.DataFrame()
    columns = ["name", "kind", "domain", "model", *wanted]
    rows = scores[~scores["model"].isin(left_out)].dropna(subset=wanted)
    return rows[columns].reset_index(drop=True)


def correlation(points: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of perplexity and acc@1 with its p.

    Over the data sets of a kind, both averaged over models (the paper's Figure 2), and within each
    data set over models. r and p are missing below three points, or where one side does not vary.
    """
    if points.empty:
        return pd.DataFrame()
    values = ["acc_at_1", "perplexity"]
    means = points.groupby(["kind", "name"], sort=True)[values].mean()
    rows = [
        {"kind": kind, "over": "data sets", "name": "", **_pearson(part)}
        for kind, part in means.groupby(level="kind")
    ]
    rows += [
        {"kind": kind, "over": "models", "name": name, **_pearson(part)}
        for (kind, name), part in points.groupby(["kind", "name"], sort=True)
    ]
    return pd.DataFrame(rows)


def _pearson(points: pd.DataFrame) -> dict[str, float]:
    x, y = points["perplexity"], points["acc_at_1"]
    if len(points) < 3 or x.nunique() < 2 or y.nunique() < 2:
        return {"r": np.nan, "p": np.nan, "n": len(points)}
    from scipy.stats import pearsonr

    result = pearsonr(x, y)
    return {"r": result.statistic, "p": result.pvalue, "n": len(points)}


def templates(
    comparison: pd.DataFrame, sets: list[DataSet], left_out: Collection[str] = ()
) -> pd.DataFrame:
    """Select acc@10 of each template of Google-RE by model, with its interval.

    `model` is `mean` for the mean over models (the paper's section 5.2), without those that are
    `left_out`.
    """
    subset = "google-re-template"
    rows = comparison[
        (comparison["benchmark"] == home(sets, subset))
        & (comparison["subset"] == subset)
        & (comparison["method"] == METHOD)
        & (comparison["metric"] == "acc_at_10")
        & ~comparison["relation"].isin(MEANS)
    ]
    columns = ["relation", "model", "value", "low", "high", "n"]
    counted = rows[~rows["model"].isin(left_out)]
    means = counted.groupby("relation", as_index=False, sort=True)[["value", "n"]].mean()
    return pd.concat([rows[columns], means.assign(model="mean")], ignore_index=True)


def distractors(comparison: pd.DataFrame, benchmarks: Path, sets: list[DataSet]) -> pd.DataFrame:
    """Accuracy among a data set's own entities and with distractors added (the paper's Table 6)."""
    rows = comparison[
        (comparison["relation"] == "micro") & comparison["metric"].str.fullmatch(r"acc_at_\d+")
    ]
    keys = ["benchmark", "subset", "model", "metric"]
    plain, more = (
        rows[rows["method"] == method].set_index(keys)[["value", "low", "high"]]
        for method in (METHOD, WITH_DISTRACTORS)
    )
    both = plain.join(more, how="inner", rsuffix="_more").reset_index()
    named = pd.DataFrame(sets, columns=DataSet._fields)[["name", "benchmark", "subset"]]
    table = named.merge(both, on=["benchmark", "subset"])
    subset_sizes = [sizes(benchmarks / row.benchmark, row.subset) for row in table.itertuples()]
    return table.assign(
        entities=[a for a, _ in subset_sizes], entities_more=[b for _, b in subset_sizes]
    )


def sizes(folder: Path, subset: str) -> tuple[int, int]:
    """Count a subset's own candidates, and all with its distractors."""
    candidates = read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS)
    names = candidates[candidates["subset"] == subset]
    return int((names["type"] != DISTRACTOR).sum()), len(names)
