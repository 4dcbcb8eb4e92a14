"""How data sets rank models, single templates, more entities, and what perplexity says of it all.

Is a model right where it finds sentences likely? Shaier et al., section 5.5 and Figure 2, correlate
the means of data sets, of which a kind has four or six. Here the models on one data set answer it,
too. A few prompts make most of a mean perplexity, so that logarithms and ranks are correlated too.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from medprobe.core.tables import CANDIDATE_COLUMNS, DISTRACTOR, read_table
from medprobe.metrics.summary import MEANS
from medprobe.papers.template_free.analyses.data_sets import (
    METHOD,
    WITH_DISTRACTORS,
    Counted,
    DataSet,
    home,
    select_counted,
)

MISSING = (float("nan"), float("nan"))


def select_points(scores: pd.DataFrame, counted: Counted) -> pd.DataFrame:
    """Select the data sets and models that have both an accuracy and a perplexity.

    Models that do not count on a data set are not returned.
    """
    wanted = ["acc_at_1", "perplexity"]
    if not set(wanted) <= set(scores):
        return pd.DataFrame()
    columns = ["name", "kind", "domain", "model", *wanted]
    return select_counted(scores, counted).dropna(subset=wanted)[columns].reset_index(drop=True)


def correlate(points: pd.DataFrame) -> pd.DataFrame:
    """Correlate perplexity and acc@1 over data sets and over models.

    Over the data sets of a kind, both averaged over models (the paper's Figure 2), and within each
    data set over models. `r` is Pearson's, `r_log` Pearson's with the logarithm of perplexity,
    `rho` Spearman's, each with its p; they are missing below three points, or where one side does
    not vary.
    """
    if points.empty:
        return pd.DataFrame()
    values = ["acc_at_1", "perplexity"]
    means = points.groupby(["kind", "name"], sort=True)[values].mean()
    rows = [
        {"kind": kind, "over": "data sets", "name": "", **_correlations(part)}
        for kind, part in means.groupby(level="kind")
    ]
    rows += [
        {"kind": kind, "over": "models", "name": name, **_correlations(part)}
        for (kind, name), part in points.groupby(["kind", "name"], sort=True)
    ]
    return pd.DataFrame(rows)


def _correlations(points: pd.DataFrame) -> dict[str, float]:
    from scipy.stats import pearsonr, spearmanr

    x, y = points["perplexity"].to_numpy(), points["acc_at_1"].to_numpy()
    varies = len(points) > 2 and len(np.unique(x)) > 1 and len(np.unique(y)) > 1
    r, p = pearsonr(x, y) if varies else MISSING
    r_log, p_log = pearsonr(np.log(x), y) if varies else MISSING
    rho, p_rho = spearmanr(x, y) if varies else MISSING
    numbers = {"r": r, "p": p, "r_log": r_log, "p_log": p_log, "rho": rho, "p_rho": p_rho}
    return {**{name: float(value) for name, value in numbers.items()}, "n": len(points)}


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


def average(scores: pd.DataFrame, counted: Counted) -> pd.DataFrame:
    """Average `acc_at_1` and `perplexity` of each data set over the models that count there."""
    if scores.empty:
        return scores
    values = [name for name in ("acc_at_1", "perplexity") if name in scores]
    groups = select_counted(scores, counted).groupby(["name", "kind"], sort=False)
    means = groups[values].mean()
    means.insert(0, "models", groups["model"].nunique())
    return means.reset_index()


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


def templates(comparison: pd.DataFrame, sets: list[DataSet], counted: Counted) -> pd.DataFrame:
    """Select acc@10 of each template of Google-RE by model, with its interval.

    `model` is `mean` for the mean over models (the paper's section 5.2), without those that do not
    count there.
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
    means = (
        select_counted(rows, counted)
        .groupby("relation", as_index=False, sort=True)[["value", "n"]]
        .mean()
    )
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
