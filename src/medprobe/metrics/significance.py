"""Which models differ by more than chance: the tests of one benchmark.

Tested is what is shown and claimed: the *main results* of models on the main metric and subset.
They are compared with each other, across methods and kinds, each with its control, and each with
the names alone (`letters`). Holm's correction is for these three families, within a benchmark, and
of controls over all benchmarks. Everything else has a difference and an interval: models under one
method, methods of one model, other metrics and subsets, and one system on two subsets. It is never
called significant: a variant is no hypothesis.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.params import ScoreParams
from medprobe.core.places import SIGNIFICANCE as TESTS
from medprobe.core.tables import BASELINE, Metadata, read_table
from medprobe.metrics.pairs import CONTROLS, System, compared, controls
from medprobe.metrics.results import primary_metric, subsets
from medprobe.metrics.shuffled import shuffled_name
from medprobe.metrics.splits import BLIND
from medprobe.metrics.statistics import LEVEL, Clusters, PairedTest, holm, paired_test
from medprobe.metrics.subset_tests import subset_tests

SIGNIFICANCE: Final = [
    "benchmark",
    "subset",  # `a - b` where a system is compared with itself on two
    "relation",  # macro: what is compared is the mean over relations
    "metric",
    "family",  # MAIN, CONTROLS and LETTERS are tested
    "model_a",
    "method_a",
    "model_b",
    "method_b",
    "difference",  # a - b, over the same queries
    "low",
    "high",
    "p",
    "p_holm",  # corrected for all tests of its family; none where nothing is claimed
    "smallest_difference",  # that is found with power 0.8 at the family's corrected level
    "n",  # queries
    "units",  # clusters of subjects or answers, whichever are fewer
    "untestable",  # why no difference could be significant, such as "4 independent answers"
]
MAIN: Final = "main results"
LETTERS: Final = "letters"  # the baseline of names alone, and the family of tests against it
CHANCE: Final = "chance"  # the baseline that guesses
MANY: Final = 20  # models: of more, those with a reference are a family of their own


class Field(NamedTuple):
    """What is tested of a benchmark.

    Attributes:
        name: of the benchmark.
        metric: its main metric.
        subset: its main subset.
        main: the method, or `<method>:<variant>`, of each model's main result.
        kinds: the kind of each model. A metric that differs between kinds is compared within them.
        contrasts: pairs of subsets on which a system is compared with itself.
    """

    name: str
    metric: str
    subset: str
    main: Mapping[str, str]
    kinds: Mapping[str, str]
    contrasts: Iterable[tuple[str, str]] = ()

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        metadata: Metadata,
        main: Mapping[str, str],
        kinds: Mapping[str, str],
    ) -> "Field":
        """Return what is tested, from a benchmark's rows of the comparison and its metadata."""
        name, subset = str(rows["benchmark"].iloc[0]), subsets(rows, metadata)[0]
        metric = primary_metric(rows, metadata)
        return cls(name, metric, subset, main, kinds, metadata.contrasts)


Values = Mapping[System, pd.DataFrame]  # rows `subset, query_id, relation, cluster, answer, weight`


def read_tests() -> pd.DataFrame:
    """The table of tests that the stage `score` made."""
    if not TESTS.is_file():
        raise BadInput(TESTS, "no paired tests", "run `medprobe score`")
    return read_table(TESTS, [])


def guesses(systems: Values) -> dict[System, pd.DataFrame]:
    """Return the baseline `chance` by metrics that say what guessing reaches, such as one half."""
    guessing = {
        name: metric.guessing
        for name, metric in metrics.catalog().items()
        if metric.tested and metric.guessing is not None
    }
    tables = []
    for rows in systems.values():
        if values := {name: value for name, value in guessing.items() if name in rows}:
            about = [name for name in ABOUT if name in rows]
            tables.append(rows[about].assign(**values))
    if not tables:
        return {}
    return {(BASELINE, CHANCE): pd.concat(tables).drop_duplicates(["subset", "query_id"])}


ABOUT: Final = ("subset", "query_id", "relation", "cluster", "answer", "weight")


def significance(
    systems: Values, field: Field, params: ScoreParams, shuffled: Mapping[System, pd.DataFrame]
) -> pd.DataFrame:
    """Test a benchmark's main results, and compare all systems that a reader would.

    Args:
        systems: the values of each system, replicates averaged (`results.evaluate_table`). The
            baseline `letters` is one of them where there is one.
        field: what is tested.
        params: confidence and reference.
        shuffled: the tests of each system against its answers to other subjects, with the columns
            `shuffled.TESTS`.
    """
    systems = {**systems, **guesses(systems)}
    tables = {
        name: {str(subset): _indexed(part) for subset, part in rows.groupby("subset")}
        for name, rows in systems.items()
    }
    rows = [
        *_main_tests(tables, field, params),
        *_against_letters(tables, field, params),
        *_against_controls(tables, field, params, shuffled),
        *_further(tables, field, params),
    ]
    table = pd.DataFrame(rows, columns=SIGNIFICANCE[1:]).assign(benchmark=field.name)
    by_subset = subset_tests(systems, field.contrasts, params.confidence)
    table = pd.concat(
        [table, by_subset.assign(benchmark=field.name)] if len(by_subset) else [table]
    )
    return table.reindex(columns=SIGNIFICANCE).sort_values(SIGNIFICANCE[:9], ignore_index=True)


def _indexed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_index("query_id").sort_index()


Row = dict[str, Any]
Tables = Mapping[System, Mapping[str, pd.DataFrame]]


def _main_tests(tables: Tables, field: Field, params: ScoreParams) -> Iterator[Row]:
    """Every two main results, over all relations and within each."""
    own = {
        (model, method): tables[model, method][field.subset]
        for model, method in sorted(field.main.items())
        if _has(tables.get((model, method), {}).get(field.subset), field.metric)
    }
    within_kind = metrics.catalog()[field.metric].within_kind
    pairs = [
        (a, b)
        for a, b in combinations(own, 2)
        if not within_kind or field.kinds.get(a[0]) == field.kinds.get(b[0])
    ]
    families: dict[bool, list[tuple[System, System]]] = {}
    for pair in pairs:
        to_reference = len(own) > MANY and params.reference in (pair[0][0], pair[1][0])
        families.setdefault(to_reference, []).append(pair)
    for family in families.values():
        compared_pairs = [Comparison(a, b, own[a], own[b]) for a, b in family]
        yield from _tested(compared_pairs, field, MAIN, params)
        for comparison in compared_pairs:
            yield from _by_relation(comparison, field, params)


def _against_letters(tables: Tables, field: Field, params: ScoreParams) -> Iterator[Row]:
    """Each main result and the names alone."""
    letters = (BASELINE, LETTERS)
    rows = tables.get(letters, {}).get(field.subset)
    if not _has(rows, field.metric) or rows is None:
        return
    pairs = [
        Comparison(system, letters, tables[system][field.subset], rows)
        for system in sorted(field.main.items())
        if _has(tables.get(system, {}).get(field.subset), field.metric)
    ]
    yield from _tested(pairs, field, LETTERS, params)


def _against_controls(
    tables: Tables, field: Field, params: ScoreParams, shuffled: Mapping[System, pd.DataFrame]
) -> Iterator[Row]:
    """Each system and its controls; those of main results are corrected for each other."""
    rows: list[Row] = []
    for system, by_subset in sorted(tables.items()):
        of_system = shuffled.get(system, pd.DataFrame(columns=["subset", "metric"]))
        for test in of_system.to_dict("records"):
            method, _, variant = system[1].partition(":")
            control = (system[0], f"{method}:{shuffled_name(variant)}")
            numbers = {name: test[name] for name in (*PairedTest._fields, "n")}
            rows.append(_row(str(test["subset"]), str(test["metric"]), CONTROLS, system, control)
                        | numbers)  # fmt: skip
        others = [other for other in tables if controls(other, system)]
        for subset, own in by_subset.items():
            for other in others:
                if subset in tables[other]:
                    pair = Comparison(system, other, own, tables[other][subset])
                    rows += [
                        _row(subset, metric, CONTROLS, system, other)
                        | _numbers(pair, metric, params)
                        for metric in pair.metrics()
                    ]
    for subset in (field.subset, f"{field.subset}/{BLIND}"):
        claimed = [
            row
            for row in rows
            if (row["metric"], row["subset"]) == (field.metric, subset)
            and field.main.get(row["model_a"]) == row["method_a"]
        ]
        for row, p in zip(claimed, holm(np.array([row["p"] for row in claimed])), strict=True):
            row["p_holm"] = p
    yield from rows


def correct_controls(tests: pd.DataFrame) -> pd.DataFrame:
    """Correct the tests of main results against their controls over all benchmarks of a project.

    The page's title counts the models that are above their control on any benchmark, so these are
    one family; those on the queries that letters do not find, another. Models are compared with
    each other within a benchmark.
    """
    is_claimed = (tests["family"] == CONTROLS) & tests["p_holm"].notna()
    is_blind, corrected = (
        tests["subset"].str.endswith(f"/{BLIND}"),
        tests["p_holm"].mask(is_claimed),
    )
    for of_family in (is_claimed & ~is_blind, is_claimed & is_blind):
        corrected[of_family] = holm(tests.loc[of_family, "p"].to_numpy(float))
    return tests.assign(p_holm=corrected)


def _further(tables: Tables, field: Field, params: ScoreParams) -> Iterator[Row]:
    """What a reader compares beside main results: models under a method, methods of a model."""
    for a, b in combinations(sorted(tables), 2):
        if family := compared(a, b):
            for subset in tables[a].keys() & tables[b].keys():
                pair = Comparison(a, b, tables[a][subset], tables[b][subset])
                for metric in pair.metrics():
                    if metrics.catalog()[metric].within_kind and (
                        field.kinds.get(a[0]) != field.kinds.get(b[0])
                    ):
                        continue
                    yield _row(subset, metric, family, a, b) | _numbers(pair, metric, params)


def _row(subset: str, metric: str, family: str, a: System, b: System) -> Row:
    names = zip(SIGNIFICANCE[1:9], (subset, "macro", metric, family, *a, *b), strict=True)
    return dict(names) | {"p_holm": np.nan}


def _has(rows: pd.DataFrame | None, metric: str) -> bool:
    return rows is not None and metric in rows and bool(rows[metric].notna().any())


class Comparison:
    """Two systems over the queries that both have."""

    def __init__(self, a: System, b: System, first: pd.DataFrame, second: pd.DataFrame) -> None:
        shared = first.index
        if not first.index.equals(second.index):
            shared = first.index.intersection(second.index)
            first, second = first.loc[shared], second.loc[shared]
        self.a, self.b, self.first, self.second = a, b, first, second

    def metrics(self) -> list[str]:
        """The tested metrics that both have values of."""
        return [
            name
            for name, metric in metrics.catalog().items()
            if metric.tested and _has(self.first, name) and _has(self.second, name)
        ]

    def test(
        self, metric: str, confidence: float, level: float, relation: str = ""
    ) -> tuple[PairedTest, int] | None:
        """The paired test, over all relations or within one; and the number of queries."""
        values = (self.first[metric] - self.second[metric]).to_numpy(float)
        is_used = ~np.isnan(values)
        if relation:
            is_used &= (self.first["relation"] == relation).to_numpy()
        if not is_used.any():
            return None
        rows = self.first[is_used]
        # A control can lack queries. Each of the rest then counts more in the mean over relations.
        weights = np.fmax(rows["weight"], self.second["weight"][is_used]).to_numpy(float)
        answers = rows["answer"] if "answer" in rows and rows["answer"].notna().all() else None
        clusters = Clusters.of(
            pd.factorize(rows["cluster"])[0],
            None if answers is None else pd.factorize(answers)[0],
        )
        test = paired_test(values[is_used], weights, clusters, confidence=confidence, level=level)
        return test.of_shares() if metrics.catalog()[metric].share else test, len(rows)


def _numbers(pair: Comparison, metric: str, params: ScoreParams, level: float = LEVEL) -> Row:
    found = pair.test(metric, params.confidence, level)
    return found[0]._asdict() | {"n": found[1]} if found else {"p": 1.0, "n": 0}


def _tested(
    pairs: Sequence[Comparison], field: Field, family: str, params: ScoreParams
) -> Iterator[Row]:
    """The tests of a family, corrected for each other."""
    level = LEVEL / max(1, len(pairs))  # what Holm's method asks of the smallest p
    rows = [
        _row(field.subset, field.metric, family, pair.a, pair.b)
        | _numbers(pair, field.metric, params, level)
        for pair in pairs
    ]
    for row, p in zip(rows, holm(np.array([row["p"] for row in rows])), strict=True):
        yield {**row, "p_holm": p}


def _by_relation(pair: Comparison, field: Field, params: ScoreParams) -> Iterator[Row]:
    """The difference within each relation, and its interval: nothing is claimed of it."""
    if "relation" not in pair.first or pair.first["relation"].nunique() < 2:
        return
    for relation in sorted(pair.first["relation"].unique()):
        if found := pair.test(field.metric, params.confidence, LEVEL, relation):
            row = _row(field.subset, field.metric, MAIN, pair.a, pair.b)
            yield row | found[0]._asdict() | {"relation": relation, "p": np.nan, "n": found[1]}
