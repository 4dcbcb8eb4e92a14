"""Analyses of predictions: the same facts asked in both ways, and how varied predictions are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.core.tables import read_table
from medprobe.metrics.comparisons import difference_interval, holm, permutation
from medprobe.metrics.summary import read_queries
from medprobe.report.template_free import METHOD
from medprobe.report.template_free.data_sets import PARALLEL, DataSet, home
from medprobe.report.template_free.scores import sizes

FREQUENT: Final = 15  # entities of the paper's Figure 1


class Named(NamedTuple):
    """What a model named for a data set's queries."""

    model: str
    data: DataSet
    entities: int  # that it could name
    queries: int
    distinct: dict[int, int]  # entities among the first k, by k
    often: pd.Series  # how often each is among the ten best, the most frequent first


def parallel(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params
) -> pd.DataFrame:
    """Template-free minus template-based accuracy over the same facts, pair by pair: a row a data
    set, model and metric with the paired bootstrap interval and permutation p, both over subjects,
    Holm-corrected over the models and sets of a metric (research question 2)."""
    rows = []
    benchmark = home(sets, PARALLEL[0][1])
    for model, table in _tables(predictions, benchmark):
        hits = hits_at(table)
        queries = read_queries(benchmarks / benchmark, "subject_id")
        subject = queries.drop_duplicates("pair_id").set_index("pair_id")["cluster"]
        for name, based, free in PARALLEL:
            a, b = (
                queries[queries["subset"] == subset].set_index("pair_id")["query_id"].map(hits)
                for subset in (based, free)
            )
            pairs = a.to_frame("based").join(b.rename("free"), how="inner").dropna()
            for metric, k in (("acc_at_1", 1), ("acc_at_5", 5), ("acc_at_10", 10)):
                one, two = (pairs[column].le(k).to_numpy(float) for column in ("based", "free"))
                of = pd.factorize(pairs.index.map(subject))[0]
                if len(pairs):
                    rows.append((name, model, metric, *_paired(one, two, of, params), len(pairs)))
    columns = ["name", "model", "metric", "template_based", "template_free", "difference"]
    table = pd.DataFrame(rows, columns=[*columns, "low", "high", "p", "pairs"])
    corrected = table.groupby("metric")["p"].transform(lambda p: holm(p.to_numpy(float)))
    return table.assign(p_holm=corrected)


def _paired(
    one: np.ndarray, two: np.ndarray, clusters: np.ndarray, params: Params
) -> tuple[float, ...]:
    """Both means, their difference (second minus first), its interval and p."""
    sums, sizes = np.bincount(clusters, two - one), np.bincount(clusters).astype(float)
    of = params.score
    bounds = difference_interval(sums, sizes, of.bootstrap, of.confidence, params.seed)
    return one.mean(), two.mean(), (two - one).mean(), *bounds, permutation(sums)


def hits_at(predictions: pd.DataFrame) -> pd.Series:
    """The rank of the first hit of each query, infinite where there is none."""
    ranks = predictions["rank"].where(predictions["hit"].astype(bool), np.inf)
    return ranks.groupby(predictions["query_id"]).min()


def overconfidence(found: list[Named]) -> pd.DataFrame:
    """How varied predictions are: the share of a data set's entities that a model predicts at all
    within the top 1, 5 and 10, and the share of queries whose top ten hold its favourite entity,
    beside that of any entity where ten stand in random order (`chance`): lists of different length
    are compared by how many times as often it is (`times_chance`)."""
    rows = []
    for one in found:
        distinct = {f"distinct_at_{k}": n / one.entities for k, n in one.distinct.items()}
        share = float(one.often.iloc[0]) / one.queries
        about = {"name": one.data.name, "kind": one.data.kind, "model": one.model}
        chance = min(1.0, 10 / one.entities)
        often = {"favourite_share": share, "chance": chance, "times_chance": share / chance}
        favourite = {"favourite": one.often.index[0], **often}
        rows.append({**about, "entities": one.entities, **distinct, **favourite})
    return pd.DataFrame(rows)


def frequent(found: list[Named]) -> pd.DataFrame:
    """The fifteen entities that are most often among a model's ten best, and in what share of the
    queries (the paper's Figure 1): `name, kind, model, place, entity, share`."""
    rows = []
    for one in found:
        order = sorted(one.often.items(), key=lambda item: (-item[1], str(item[0])))[:FREQUENT]
        rows += [
            (one.data.name, one.data.kind, one.model, place, entity, count / one.queries)
            for place, (entity, count) in enumerate(order, start=1)
        ]
    return pd.DataFrame(rows, columns=["name", "kind", "model", "place", "entity", "share"])


def by_data_set(predictions: Path, benchmarks: Path, sets: list[DataSet]) -> list[Named]:
    """What each model named for each data set, benchmark by benchmark in the paper's order."""
    found: list[Named] = []
    for benchmark in dict.fromkeys(data.benchmark for data in sets):
        folder, named = benchmarks / benchmark, []
        for model, table in _tables(predictions, benchmark):
            queries = read_table(folder / "queries.parquet", ["query_id", "subset"])
            subset = table["query_id"].map(queries.set_index("query_id")["subset"])
            for data in (data for data in sets if data.benchmark == benchmark):
                own = table[subset == data.subset]
                if len(own):
                    size, _ = sizes(folder, data.subset)
                    named.append(_named(model, data, own, size))
        found += sorted(named, key=lambda one: sets.index(one.data))
    return found


def _named(model: str, data: DataSet, predictions: pd.DataFrame, entities: int) -> Named:
    first = {k: predictions[predictions["rank"] <= k]["prediction"] for k in (1, 5, 10)}
    distinct = {k: int(names.nunique()) for k, names in first.items()}
    asked = predictions["query_id"].nunique()
    return Named(model, data, entities, asked, distinct, first[10].value_counts())


def _tables(predictions: Path, benchmark: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """`(model, its predictions)` of entity ranking over a benchmark's own entities, one after
    another: no two are in memory."""
    columns = ["query_id", "rank", "prediction", "hit"]
    for path in sorted(predictions.glob(f"*/{METHOD}/{benchmark}.parquet")):
        own = pd.read_parquet(path, columns=columns, filters=[("variant", "==", "")])
        yield path.parent.parent.name, own
