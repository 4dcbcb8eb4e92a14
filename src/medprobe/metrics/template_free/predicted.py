"""Analyses of predictions: the same facts asked in both ways, and how varied predictions are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.core.tables import read_table
from medprobe.metrics.accuracy import KS, values
from medprobe.metrics.comparisons import difference_interval, holm, permutation
from medprobe.metrics.summary import read_queries
from medprobe.metrics.template_free.data_sets import METHOD, PARALLEL, DataSet, home
from medprobe.metrics.template_free.scores import sizes

FREQUENT: Final = 15  # entities of the paper's Figure 1


class Named(NamedTuple):
    """The entities that a model named for a data set's queries."""

    model: str
    data: DataSet
    entities: int  # that it could name
    queries: int
    distinct: dict[int, int]  # entities among the first k, by k
    often: pd.Series  # how often each is among the ten best, the most frequent first


def parallel(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params
) -> pd.DataFrame:
    """Compare template-free with template-based accuracy over the same facts (research question 2).

    A row per data set, model and metric: both means, their difference with its paired bootstrap
    interval, and the permutation p. Subjects are drawn and swapped whole. `p_holm` is corrected
    over the models and data sets of a metric.
    """
    rows = []
    folder = benchmarks / home(sets, PARALLEL[0][1])
    for model, table in _predictions(predictions, folder.name):
        queries = read_queries(folder, "subject_id")
        scored = queries[["query_id", "pair_id"]].merge(values(table, queries, ties=False))
        for name, based, free in PARALLEL:
            one, other = (scored[scored["subset"] == subset] for subset in (based, free))
            pairs = one.merge(other, on="pair_id", suffixes=("", "_free"))
            cluster = pd.factorize(pairs["cluster"])[0]
            for metric in (f"acc_at_{k}" for k in KS if len(pairs)):
                a, b = pairs[metric].to_numpy(), pairs[f"{metric}_free"].to_numpy()
                rows.append((name, model, metric, *_paired(a, b, cluster, params), len(pairs)))
    columns = ["name", "model", "metric", "template_based", "template_free", "difference"]
    found = pd.DataFrame(rows, columns=[*columns, "low", "high", "p", "pairs"])
    corrected = found.groupby("metric")["p"].transform(lambda p: holm(p.to_numpy(float)))
    return found.assign(p_holm=corrected)


def _paired(
    one: np.ndarray, other: np.ndarray, cluster: np.ndarray, params: Params
) -> tuple[float, ...]:
    """Both means, their difference (second minus first), its interval and p."""
    sums, sizes = np.bincount(cluster, other - one), np.bincount(cluster).astype(float)
    settings = params.score
    bounds = difference_interval(sums, sizes, settings.bootstrap, settings.confidence, params.seed)
    return one.mean(), other.mean(), (other - one).mean(), *bounds, permutation(sums)


def overconfidence(named: list[Named]) -> pd.DataFrame:
    """Measure how varied predictions are, for each data set and model.

    `distinct_at_<k>` is the share of a data set's entities that are predicted at all within the top
    k. `favourite_share` is the share of queries whose top ten hold the model's favourite entity;
    `chance` is this share for ten entities in random order, and `times_chance` their ratio, by
    which lists of different lengths are compared.
    """
    rows = []
    for one in named:
        share, chance = float(one.often.iloc[0]) / one.queries, min(1.0, 10 / one.entities)
        rows.append(
            {
                **{"name": one.data.name, "kind": one.data.kind, "model": one.model},
                "entities": one.entities,
                **{f"distinct_at_{k}": n / one.entities for k, n in one.distinct.items()},
                "favourite": one.often.index[0],
                **{"favourite_share": share, "chance": chance, "times_chance": share / chance},
            }
        )
    return pd.DataFrame(rows)


def frequent(named: list[Named]) -> pd.DataFrame:
    """List the fifteen entities that are most often among a model's ten best, and in what share of
    the queries (the paper's Figure 1): `name, kind, model, place, entity, share`.
    """
    rows = []
    for one in named:
        order = sorted(one.often.items(), key=lambda item: (-item[1], str(item[0])))[:FREQUENT]
        rows += [
            (one.data.name, one.data.kind, one.model, place, entity, count / one.queries)
            for place, (entity, count) in enumerate(order, start=1)
        ]
    return pd.DataFrame(rows, columns=["name", "kind", "model", "place", "entity", "share"])


def by_data_set(predictions: Path, benchmarks: Path, sets: list[DataSet]) -> list[Named]:
    """Count what each model named for each data set, in the paper's order."""
    named: list[Named] = []
    for benchmark in dict.fromkeys(data.benchmark for data in sets):
        folder = benchmarks / benchmark
        for model, table in _predictions(predictions, benchmark):
            queries = read_table(folder / "queries.parquet", ["query_id", "subset"])
            subset = table["query_id"].map(queries.set_index("query_id")["subset"])
            for data in (data for data in sets if data.benchmark == benchmark):
                if len(own := table[subset == data.subset]):
                    named.append(_named(model, data, own, sizes(folder, data.subset)[0]))
    order = [data.benchmark for data in sets]
    return sorted(named, key=lambda one: (order.index(one.data.benchmark), sets.index(one.data)))


def _named(model: str, data: DataSet, predictions: pd.DataFrame, entities: int) -> Named:
    """What one model named for one data set."""
    first = {k: predictions[predictions["rank"] <= k]["prediction"] for k in KS}
    distinct = {k: int(names.nunique()) for k, names in first.items()}
    queries = predictions["query_id"].nunique()
    return Named(model, data, entities, queries, distinct, first[max(KS)].value_counts())


def _predictions(predictions: Path, benchmark: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """`(model, its predictions)` of entity ranking over a benchmark's own entities.

    One model's are in memory at a time.
    """
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score", "hit"]
    for path in sorted(predictions.glob(f"*/{METHOD}/{benchmark}.parquet")):
        yield (
            path.parent.parent.name,
            pd.read_parquet(path, columns=columns, filters=[("variant", "==", "")]),
        )
