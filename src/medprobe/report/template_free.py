"""Template-based against template-free probing: the analyses of Shaier et al. as tables.

All are made from the comparison table and the prediction tables; no model is run. Accuracies are
those of entity ranking over a data set's own entity list (mask average).
"""

from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics.comparisons import difference_interval, holm, permutation
from medprobe.params import Params
from medprobe.report.cut_off import cut_off
from medprobe.report.data_sets import DATA_SETS, PARALLEL, DataSet
from medprobe.tables import DISTRACTOR, PREDICTION_COLUMNS, QUERY_COLUMNS, Benchmark, read_table

METHOD: Final = "mask_average"
WITH_MORE: Final = f"{METHOD}:distractors"
PERMUTATIONS: Final = 9999
FREQUENT: Final = 15  # entities of the paper's Figure 1


def analyses(
    comparison: pd.DataFrame, predictions: Path, benchmarks: Path, params: Params
) -> dict[str, pd.DataFrame]:
    """All analyses by name; those without data are left out.

    Names of entities, which may be licensed, are in them only where `track.text` says so.
    """
    scores = per_data_set(comparison)
    made = {
        "rankings": rankings(scores),
        "displacement": displacement(rankings(scores)),
        "parallel": parallel(predictions, benchmarks, params),
        "perplexity": with_perplexity(scores),
        "correlation": correlation(with_perplexity(scores)),
        "templates": templates(comparison),
        "overconfidence": overconfidence(predictions, benchmarks),
        "frequent": frequent(predictions, benchmarks),
        "distractors": distractors(comparison, benchmarks),
        "cut-off": cut_off(params.models, benchmarks, _probed(comparison)),
        **_notes(benchmarks / "lipid"),
    }
    hidden = [] if params.track.text else ["entity", "favourite"]
    return {
        name: table.drop(columns=hidden, errors="ignore")
        for name, table in made.items()
        if len(table)
    }


def per_data_set(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row a data set and model: `acc_at_1, acc_at_5, acc_at_10, perplexity`, as means over all
    queries, beside the data set's `name, kind, domain`."""
    sets = pd.DataFrame(DATA_SETS)
    rows = comparison[
        (comparison["relation"] == "micro")
        & (
            (comparison["method"] == METHOD) & comparison["metric"].str.fullmatch(r"acc_at_\d+")
            | (comparison["method"] == "perplexity") & (comparison["metric"] == "perplexity")
        )
    ]
    wide = rows.pivot(index=["benchmark", "subset", "model"], columns="metric", values="value")
    return sets.merge(wide.reset_index(), on=["benchmark", "subset"])


def rankings(scores: pd.DataFrame, metric: str = "acc_at_1") -> pd.DataFrame:
    """The rank of each model in each data set, 1 the best, ties shared: `name, kind, domain, model,
    value, rank`. Only data sets with two models or more."""
    if metric not in scores:
        return pd.DataFrame()
    table = scores.dropna(subset=metric).rename(columns={metric: "value"})
    table = table[table.groupby("name")["model"].transform("nunique") > 1]
    ranks = table.groupby("name")["value"].rank(ascending=False)
    columns = ["name", "kind", "domain", "model", "value"]
    return table[columns].assign(rank=ranks).reset_index(drop=True)


def displacement(ranks: pd.DataFrame) -> pd.DataFrame:
    """For each template-based and template-free data set of a domain: how far models move from one
    to the other (`mean` and `largest` absolute rank displacement, which model moves most), and
    Kendall's tau-b of the two rankings with its p (research questions 1 and 3)."""
    rows = []
    for domain, part in ranks.groupby("domain", sort=True) if len(ranks) else []:
        wide = part.pivot(index="model", columns="name", values="rank")
        kinds = part.drop_duplicates("name").groupby("kind")["name"].agg(list)
        for one, other in product(kinds.get("template-based", []), kinds.get("template-free", [])):
            both = wide[[one, other]].dropna()
            if len(both) < 2:
                continue
            moved = both[other] - both[one]
            from scipy.stats import kendalltau

            tau = kendalltau(both[one], both[other])
            rows.append(
                {
                    "domain": domain,
                    "template_based": one,
                    "template_free": other,
                    "models": len(both),
                    "mean": moved.abs().mean(),
                    "largest": moved.abs().max(),
                    "model": moved.abs().idxmax(),
                    "tau": tau.statistic,
                    "p": tau.pvalue,
                }
            )
    return pd.DataFrame(rows)


def parallel(predictions: Path, benchmarks: Path, params: Params) -> pd.DataFrame:
    """Template-free minus template-based accuracy over the same facts, pair by pair: a row a data
    set, model and metric with the paired bootstrap interval and permutation p, Holm-corrected over
    all rows (research question 2)."""
    rows = []
    for model, table in _tables(predictions, "lama"):
        hits = hits_at(table)
        queries = read_table(benchmarks / "lama" / "queries.parquet", [*QUERY_COLUMNS, "pair_id"])
        for name, based, free in PARALLEL:
            a, b = (
                queries[queries["subset"] == subset].set_index("pair_id")["query_id"].map(hits)
                for subset in (based, free)
            )
            pairs = a.to_frame("based").join(b.rename("free"), how="inner").dropna()
            for metric, k in (("acc_at_1", 1), ("acc_at_5", 5), ("acc_at_10", 10)):
                one, two = (pairs[column].le(k).to_numpy(float) for column in ("based", "free"))
                if len(pairs):
                    rows.append((name, model, metric, *_paired(one, two, params), len(pairs)))
    columns = ["name", "model", "metric", "template_based", "template_free", "difference"]
    table = pd.DataFrame(rows, columns=[*columns, "low", "high", "p", "pairs"])
    return table.assign(p_holm=holm(table["p"].to_numpy(float)) if len(table) else [])


def _paired(one: np.ndarray, two: np.ndarray, params: Params) -> tuple[float, ...]:
    """Both means, their difference (second minus first), its interval and p."""
    difference = two - one
    bounds = difference_interval(
        difference, params.score.bootstrap, params.score.confidence, params.seed
    )
    p = permutation(difference, PERMUTATIONS, params.seed)
    return one.mean(), two.mean(), difference.mean(), *bounds, p


def hits_at(predictions: pd.DataFrame) -> pd.Series:
    """The rank of the first hit of each query, infinite where there is none."""
    ranks = predictions["rank"].where(predictions["hit"].astype(bool), np.inf)
    return ranks.groupby(predictions["query_id"]).min()


def with_perplexity(scores: pd.DataFrame) -> pd.DataFrame:
    """The data sets and models that have both an accuracy and a perplexity."""
    wanted = ["acc_at_1", "perplexity"]
    if not set(wanted) <= set(scores):
        return pd.DataFrame()
    columns = ["name", "kind", "domain", "model", *wanted]
    return scores.dropna(subset=wanted)[columns].reset_index(drop=True)


def correlation(points: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of perplexity and acc@1 with its p: over the data sets of a kind, both averaged
    over models (the paper's Figure 2), and within each data set over models. r and p are missing
    below three points, or where one side does not vary."""
    if points.empty:
        return pd.DataFrame()
    values = ["acc_at_1", "perplexity"]
    means = points.groupby(["kind", "name"], sort=True)[values].mean()
    found = [
        {"kind": kind, "over": "data sets", "name": "", **_pearson(part)}
        for kind, part in means.groupby(level="kind")
    ]
    found += [
        {"kind": kind, "over": "models", "name": name, **_pearson(part)}
        for (kind, name), part in points.groupby(["kind", "name"], sort=True)
    ]
    return pd.DataFrame(found)


def _pearson(points: pd.DataFrame) -> dict[str, float]:
    x, y = points["perplexity"], points["acc_at_1"]
    if len(points) < 3 or x.nunique() < 2 or y.nunique() < 2:
        return {"r": np.nan, "p": np.nan, "n": len(points)}
    from scipy.stats import pearsonr

    found = pearsonr(x, y)
    return {"r": found.statistic, "p": found.pvalue, "n": len(points)}


def templates(comparison: pd.DataFrame) -> pd.DataFrame:
    """acc@10 of each template of Google-RE by model, with its interval; `model` is `mean` for the
    mean over all models (the paper's section 5.2)."""
    rows = comparison[
        (comparison["benchmark"] == "lama")
        & (comparison["subset"] == "google-re-template")
        & (comparison["method"] == METHOD)
        & (comparison["metric"] == "acc_at_10")
        & ~comparison["relation"].isin(["macro", "micro"])
    ]
    columns = ["relation", "model", "value", "low", "high", "n"]
    means = rows.groupby("relation", as_index=False, sort=True)[["value", "n"]].mean()
    return pd.concat([rows[columns], means.assign(model="mean")], ignore_index=True)


def overconfidence(predictions: Path, benchmarks: Path) -> pd.DataFrame:
    """How varied predictions are: the share of a data set's entities that a model predicts at all
    within the top 1, 5 and 10, and the share of queries whose top ten hold its favourite entity."""
    rows = []
    for model, data, table, size in _by_data_set(predictions, benchmarks):
        distinct = {f"distinct_at_{k}": _distinct(table, k) / size for k in (1, 5, 10)}
        top = table[table["rank"] <= 10]["prediction"].value_counts()
        share = float(top.iloc[0]) / table["query_id"].nunique()
        about = {"name": data.name, "kind": data.kind, "model": model, "entities": size}
        rows.append({**about, **distinct, "favourite": top.index[0], "favourite_share": share})
    return pd.DataFrame(rows)


def frequent(predictions: Path, benchmarks: Path) -> pd.DataFrame:
    """The fifteen entities that are most often among a model's ten best, and in what share of the
    queries (the paper's Figure 1): `name, kind, model, place, entity, share`."""
    rows = []
    for model, data, table, _ in _by_data_set(predictions, benchmarks):
        counts = table[table["rank"] <= 10]["prediction"].value_counts()
        order = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:FREQUENT]
        n = table["query_id"].nunique()
        rows += [
            (data.name, data.kind, model, place, entity, count / n)
            for place, (entity, count) in enumerate(order, start=1)
        ]
    return pd.DataFrame(rows, columns=["name", "kind", "model", "place", "entity", "share"])


def distractors(comparison: pd.DataFrame, benchmarks: Path) -> pd.DataFrame:
    """Accuracy among a data set's own entities and with distractors added (the paper's Table 6)."""
    rows = comparison[
        (comparison["relation"] == "micro") & comparison["metric"].str.fullmatch(r"acc_at_\d+")
    ]
    keys = ["benchmark", "subset", "model", "metric"]
    own, more = (
        rows[rows["method"] == method].set_index(keys)[["value", "low", "high"]]
        for method in (METHOD, WITH_MORE)
    )
    both = own.join(more, how="inner", rsuffix="_more").reset_index()
    table = pd.DataFrame(DATA_SETS)[["name", "benchmark", "subset"]].merge(
        both, on=["benchmark", "subset"]
    )
    sizes = [_sizes(benchmarks / row.benchmark, row.subset) for row in table.itertuples()]
    return table.assign(entities=[a for a, _ in sizes], entities_more=[b for _, b in sizes])


def _notes(folder: Path) -> dict[str, pd.DataFrame]:
    """How often LIPID's entities appear, and how far its annotators agree."""
    paths = {name: folder / f"{name}.csv" for name in ("appearances", "agreement")}
    return {name: pd.read_csv(path) for name, path in paths.items() if path.is_file()}


def _probed(comparison: pd.DataFrame) -> list[str]:
    return sorted(comparison.loc[comparison["benchmark"] == "lipid", "model"].unique())


def _sizes(folder: Path, subset: str) -> tuple[int, int]:
    """The number of a subset's own candidates, and of all with its distractors."""
    candidates = Benchmark.read(folder).candidates
    names = candidates[candidates["subset"] == subset]
    return int((names["type"] != DISTRACTOR).sum()), len(names)


def _distinct(predictions: pd.DataFrame, k: int) -> int:
    return int(predictions[predictions["rank"] <= k]["prediction"].nunique())


def _tables(predictions: Path, benchmark: str) -> list[tuple[str, pd.DataFrame]]:
    """`(model, its predictions)` of entity ranking over a benchmark's own entities."""
    found = []
    for path in sorted(predictions.glob(f"*/{METHOD}/{benchmark}.parquet")):
        table = read_table(path, PREDICTION_COLUMNS)
        found.append((path.parent.parent.name, table[table["variant"] == ""]))
    return found


def _by_data_set(
    predictions: Path, benchmarks: Path
) -> list[tuple[str, DataSet, pd.DataFrame, int]]:
    """`(model, data set, its predictions, the number of its entities)`, in the paper's order."""
    found: list[Any] = []
    for benchmark in dict.fromkeys(data.benchmark for data in DATA_SETS):
        tables = _tables(predictions, benchmark)
        if not tables:
            continue
        queries = read_table(benchmarks / benchmark / "queries.parquet", QUERY_COLUMNS)
        for data in (data for data in DATA_SETS if data.benchmark == benchmark):
            ids = queries.loc[queries["subset"] == data.subset, "query_id"]
            size, _ = _sizes(benchmarks / benchmark, data.subset)
            parts = [(model, table[table["query_id"].isin(ids)]) for model, table in tables]
            found += [(model, data, part, size) for model, part in parts if len(part)]
    return found
