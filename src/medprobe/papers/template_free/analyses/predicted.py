"""Analyses of predictions: the same facts asked in both ways, and how varied predictions are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables, holds_subject, read_table
from medprobe.metrics.accuracy import KS, values
from medprobe.metrics.summary import cluster_queries
from medprobe.papers.template_free.analyses.by_query import corrected, paired, read_tables
from medprobe.papers.template_free.analyses.data_sets import (
    PARALLEL,
    Counted,
    DataSet,
    home,
    select_counted,
)
from medprobe.papers.template_free.analyses.ranks import FEWEST
from medprobe.papers.template_free.analyses.scores import sizes

FREQUENT: Final = 15  # entities of the paper's Figure 1
ALL: Final = "all"
NAMED: Final = "with their subject"  # sentences that contain it


class PredictedEntities(NamedTuple):
    """The entities that a model named for a data set's queries."""

    model: str
    data: DataSet
    entities: int  # that it could name
    queries: int
    distinct: dict[int, int]  # entities among the first k, by k
    counts: pd.Series  # how often each is among the ten best, the most frequent first


def parallel(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params, counted: Counted
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare template-free with template-based accuracy over the same facts (research question 2).

    Subjects are drawn and swapped whole.

    Returns:
        A row per data set, model and metric: both means, their difference with its paired bootstrap
        interval, and the permutation p. `p_holm` is corrected over the models and data sets of a
        metric. And the same of each group of models, whose means are over its models that count.
    """
    rows: list[dict[str, object]] = []
    sums: dict[tuple[str, str], tuple[Any, int]] = {}  # by data set and group, and of how many
    folder = benchmarks / home(sets, PARALLEL[0][1])
    models, hits = params.models.all(), [f"acc_at_{k}{side}" for k in KS for side in ("", "_free")]
    for model, table in read_tables(predictions, folder.name, params):
        queries = cluster_queries(BenchmarkTables.read(folder), "subject_id")
        is_named = {
            row.query_id for row in queries.itertuples() if holds_subject(row.prompt, row.subject)
        }
        scores = queries[["query_id", "pair_id"]].merge(values(table, queries, ties=False))
        for name, based, free in PARALLEL:
            template_based, template_free = (
                scores[scores["subset"] == subset] for subset in (based, free)
            )
            pairs = template_based.merge(template_free, on="pair_id", suffixes=("", "_free"))
            pairs["is_named"] = pairs["query_id_free"].isin(is_named)
            pairs = pairs.set_index(["pair_id", "cluster", "is_named"])[hits].astype(float)
            rows += _compare_facts({"name": name, "model": model}, pairs, params)
            group = models[model].group if model in models else None
            if group and counted(model, based) and counted(model, free):
                total, count = sums.get((name, group), (0.0, 0))
                sums[name, group] = total + pairs, count + 1
    by_group = [
        row
        for (name, group), (total, count) in sorted(sums.items(), key=lambda item: item[0])
        for row in _compare_facts(
            {"name": name, "group": group, "models": count}, total / count, params
        )
    ]
    by = ["metric", "sentences"]
    return corrected(rows, by), corrected(by_group, by)


def _compare_facts(
    about: dict[str, object], pairs: pd.DataFrame, params: Params
) -> Iterator[dict[str, object]]:
    """Yield a row per metric: of all facts, and of those whose sentence has the subject."""
    named = pairs[pairs.index.get_level_values("is_named")]
    for sentences, part in ((ALL, pairs), (NAMED, named)):
        if part.empty or (sentences == NAMED and len(part) == len(pairs)):
            continue
        cluster = pd.factorize(part.index.get_level_values("cluster"))[0]
        for metric in (f"acc_at_{k}" for k in KS):
            based, free = part[metric].to_numpy(), part[f"{metric}_free"].to_numpy()
            yield {
                **{**about, "sentences": sentences, "metric": metric},
                **{"template_based": based.mean(), "template_free": free.mean()},
                **paired(free - based, cluster, params),
                "pairs": len(part),
            }


def overconfidence(predicted_entities: list[PredictedEntities]) -> pd.DataFrame:
    """Measure how varied predictions are, for each data set and model.

    `distinct_at_<k>` is the share of a data set's entities that are predicted at all within the top
    k. `favourite_share` is the share of queries whose top ten hold the model's favourite entity;
    `chance` is this share for ten entities in random order, and `times_chance` their ratio, by
    which lists of different lengths are compared.
    """
    rows = []
    for item in predicted_entities:
        share, chance = float(item.counts.iloc[0]) / item.queries, min(1.0, 10 / item.entities)
        rows.append(
            {
                **{"name": item.data.name, "subset": item.data.subset},
                **{"kind": item.data.kind, "model": item.model},
                "entities": item.entities,
                **{f"distinct_at_{k}": n / item.entities for k, n in item.distinct.items()},
                "favourite": item.counts.index[0],
                **{"favourite_share": share, "chance": chance, "times_chance": share / chance},
            }
        )
    return pd.DataFrame(rows)


def average_overconfidence(shares: pd.DataFrame, counted: Counted) -> pd.DataFrame:
    """Average the favourite's share, its chance and their ratio over the data sets of a kind.

    Models that do not count on a data set are left out.
    """
    if shares.empty:
        return shares
    columns = ["favourite_share", "chance", "times_chance"]
    return select_counted(shares, counted).groupby("kind", as_index=False)[columns].mean()


def correlate_variety(shares: pd.DataFrame, scores: pd.DataFrame, counted: Counted) -> pd.DataFrame:
    """Correlate, over the models of a data set, accuracy with the variety of what they predict.

    "Models that do not do that often perform much better than those models that do" (section 5.4).
    """
    from scipy.stats import spearmanr

    if shares.empty or "acc_at_1" not in scores:
        return pd.DataFrame()
    table = shares.merge(scores[["name", "model", "acc_at_1"]], on=["name", "model"])
    rows = []
    groups = select_counted(table, counted).groupby(["name", "kind"], sort=False)
    for (name, kind), part in groups:
        if len(part) >= FEWEST and part[["acc_at_1", "favourite_share"]].nunique().min() > 1:
            rho, p = spearmanr(part["favourite_share"], part["acc_at_1"])
            rows.append({"name": name, "kind": kind, "rho": rho, "p": p, "models": len(part)})
    return pd.DataFrame(rows)


def frequent(predicted_entities: list[PredictedEntities]) -> pd.DataFrame:
    """List the fifteen entities most often among a model's ten best (the paper's Figure 1).

    Columns: `name, kind, model, place, entity, share`, where `share` is of the queries.
    """
    rows = []
    for predicted in predicted_entities:
        order = sorted(predicted.counts.items(), key=lambda item: (-item[1], str(item[0])))
        keys = (predicted.data.name, predicted.data.kind, predicted.model)
        rows += [
            (*keys, place, entity, count / predicted.queries)
            for place, (entity, count) in enumerate(order[:FREQUENT], start=1)
        ]
    return pd.DataFrame(rows, columns=["name", "kind", "model", "place", "entity", "share"])


def count_by_data_set(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params
) -> list[PredictedEntities]:
    """Count what each model named for each data set, in the paper's order."""
    predicted_entities: list[PredictedEntities] = []
    for benchmark in dict.fromkeys(data.benchmark for data in sets):
        folder = benchmarks / benchmark
        for model, table in read_tables(predictions, benchmark, params):
            queries = read_table(folder / "queries.parquet", ["query_id", "subset"])
            subset = table["query_id"].map(queries.set_index("query_id")["subset"])
            for data in (data for data in sets if data.benchmark == benchmark):
                if len(subset_table := table[subset == data.subset]):
                    predicted_entities.append(
                        _count_entities(model, data, subset_table, sizes(folder, data.subset)[0])
                    )
    order = [data.benchmark for data in sets]
    return sorted(
        predicted_entities,
        key=lambda item: (order.index(item.data.benchmark), sets.index(item.data)),
    )


def _count_entities(
    model: str, data: DataSet, predictions: pd.DataFrame, entities: int
) -> PredictedEntities:
    top_predictions = {k: predictions[predictions["rank"] <= k]["prediction"] for k in KS}
    distinct = {k: int(names.nunique()) for k, names in top_predictions.items()}
    queries = predictions["query_id"].nunique()
    return PredictedEntities(
        model, data, entities, queries, distinct, top_predictions[max(KS)].value_counts()
    )
