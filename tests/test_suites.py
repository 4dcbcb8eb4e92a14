"""Every check of every suite passes on sound tables and fails on a table that is broken for it."""

import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from broken_rows import SPOILS, rounds
from broken_tables import MUTATIONS, drop
from medprobe import benchmarks
from medprobe.quality import gate, suites
from medprobe.quality.suites import Listed, Suite
from sound_tables import BUILT, Made, Tables, make

EXPECTATIONS = Path(__file__).parents[1] / "expectations"
OWN = [  # suites with checks of their own: one that is like another has that one's
    path.relative_to(EXPECTATIONS).with_suffix("").as_posix()
    for path in sorted(EXPECTATIONS.glob("*/*.json"))
    if json.loads(path.read_text()).get("expectations")
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        yield make()


@pytest.fixture(scope="module")
def loaded(
    sound: Made,
) -> dict[tuple[str, str], Suite]:
    """All suites of their own, by builder and table."""
    return {
        (builder, suite.table): suite
        for builder, (_, settings) in sound.items()
        for suite in suites.load(EXPECTATIONS / builder, [], {**settings, "negatives": 4})
    }


@pytest.mark.parametrize(
    "builder", [*BUILT, "medlama_released", "lipid_released", "diskne_released", "sentences"]
)
def test_sound_tables_pass_without_a_warning(
    sound: Made,
    loaded: dict[tuple[str, str], Suite],
    builder: str,
) -> None:
    tables, _ = sound[builder]
    chosen = [suite for (of, table), suite in loaded.items() if of == builder and table in tables]
    reports = gate.run(chosen, tables, text=True)
    failed = [check for report in reports for check in report["checks"] if not check["success"]]
    assert failed == []
    if builder in BUILT:
        assert {suite.table for suite in chosen} == set(tables), "a table without a suite"


def test_every_builder_has_its_suites() -> None:
    for builder in benchmarks.names():
        there = {path.stem for path in (EXPECTATIONS / builder).glob("*.json")}
        assert {"queries", "candidates", "sources"} <= there, builder


def test_a_suite_like_another_one_has_its_checks() -> None:
    for path in EXPECTATIONS.glob("*/*.json"):
        if like := json.loads(path.read_text()).get("like"):
            base = json.loads((EXPECTATIONS / like).read_text())
            assert base["expectations"], path
            assert (EXPECTATIONS / like).parent in suites.folders(path.parent), path


def test_what_a_check_of_rows_reads_is_never_missing(
    loaded: dict[tuple[str, str], Suite],
) -> None:
    """Such a check skips rows in which a value is missing, so that another one has to report it."""
    for path, suite in loaded.items():
        held = {
            listed.kwargs["column"]
            for listed in suite.listed
            if listed.type == "expect_column_values_to_not_be_null"
            and listed.severity == "critical"
        }
        for listed in suite.listed:
            if listed.type != "expect_compound_columns_to_be_unique":
                assert set(listed.kwargs.get("column_list", [])) <= held, (path, listed)


UNKNOWN = "what is no CUI, or none of UMLS, is nothing's"
OTHER = "what is copied from another row is of another concept or disease"
ALONE = "one row of its kind is too few"
# What else must report a row that is broken for a check, and why: by the check, behind its suite.
OVERLAPS: dict[str, dict[str, str]] = {
    "* table_row_count_to_be_between": {
        "column_distinct_values_to_contain_set *": "no row, none of what is asked for",
        "table_row_count_to_be_between": "sentences have two bounds",
    },
    "* column_distinct_values_to_contain_set *": {
        "column_distinct_values_to_contain_set *": "what is of a subset goes with it",
        "table_row_count_to_be_between": "of a table that has no other",
    },
    "context/mentions column_values_to_not_be_null *": {
        "column_pair_values_a_to_be_greater_than_b *": "a span without an end has no length",
    },
    "* column_values_to_be_in_set *": {
        "groups_to_be_of_like_size *": ALONE,
        "items_to_be_in_table *": "candidates are of a known subset or relation",
    },
    "* column_values_to_match_regex *": {
        "cuis_to_be_known *": UNKNOWN,
        "names_to_be_of_their_cuis *": UNKNOWN,
        "negatives_to_be_of_other_positives *": UNKNOWN,
        "targets_to_be_trained *": ALONE,
        "first_added_to_be_the_target *": UNKNOWN,
        "items_to_be_in_table *": "no candidate is blank",
    },
    "* cuis_to_be_known *": {
        "names_to_be_of_their_cuis *": UNKNOWN,
        "negatives_to_be_of_other_positives *": UNKNOWN,
        "targets_to_be_trained *": ALONE,
    },
    "* column_values_to_be_unique example_id": {"examples_to_be_tested *": OTHER},
    "* compound_columns_to_be_unique *": {
        "examples_to_be_tested *": OTHER,
        "names_to_be_of_their_cuis *": OTHER,
        "no_disease_leakage *": OTHER,
        "tested_premises_to_be_untrained *": OTHER,
    },
    "* list_items_to_match_regex *": {"items_to_be_in_table *": "no candidate is blank"},
    "* positives_to_number *": {"negatives_to_be_of_other_positives *": "of the lost category"},
    "* negatives_to_be_of_other_positives *": {"positives_to_number *": "positives are gone"},
    "* test_examples_to_be_of_the_target *": {
        "compound_columns_to_be_unique *": "it trains the disease that it tests now",
        "tested_premises_to_be_untrained *": "it trains the disease that it tests now",
    },
    "lipid/queries compound_columns_to_be_unique *": {"items_to_be_in_table *": OTHER},
    "lipid/queries *items_to_*": {"texts_to_hold_one_candidate *": "its sentence holds none"},
    "* list_lengths_to_be_between answers": {"filled_prompts *": "no answer fills it"},
    "medlama/queries groups_to_be_of_like_size *": {"subset_to_be_within *": "hard ones go too"},
    "lama/queries groups_to_be_of_like_size *": {"pairs_to_match *": "halves of pairs go too"},
    "* rows_to_be_used *": {"rows_to_be_used *": "half is less than all"},
    "context/queries groups_to_be_of_like_size *": {
        "items_to_be_in_table *": "the small world has one relation: another has no candidates",
    },
}
WIDE = (  # those that judge a row by others: rows that are broken side by side show in them
    *("expect_both_centres_in_pairs", "expect_steps_to_be_nested", "expect_rows_to_be_used"),
    *("expect_positives_to_have_negatives", "expect_pairs_to_be_on_one_side"),
    *("expect_segments_to_hold_one_entity", "expect_real_contexts_to_be_in_their_documents"),
)


def called(listed: Listed) -> str:
    kwargs = listed.kwargs
    columns = kwargs.get("column_list", [kwargs[k] for k in ("column", "column_A") if k in kwargs])
    words = (listed.type.removeprefix("expect_"), *columns, kwargs.get("kind", ""))
    return " ".join(words).strip()


def overlapping(path: str, broken: Listed, other: Listed) -> bool:
    """Is it said of these two checks that one cannot be broken without the other?"""
    return any(
        fnmatch(f"{path} {called(broken)}", first) and fnmatch(called(other), second)
        for first, others in OVERLAPS.items()
        for second in others
    )


@pytest.mark.parametrize("path", OWN)
def test_each_check_is_broken_and_it_alone_reports_it(
    sound: Made,
    loaded: dict[tuple[str, str], Suite],
    path: str,
) -> None:
    builder, table = path.split("/")
    assert wrong(path, loaded[builder, table], sound[builder][0]) == []


def wrong(path: str, suite: Suite, tables: Tables) -> list[tuple[str, str]]:
    """Which check was broken, and which one else reported it, or did not."""
    tables = {name: rows.reset_index(drop=True) for name, rows in tables.items()}
    if suite.table == "splits":  # to look for leaks takes time
        few = tables["splits"]["target"].isin(tables["splits"]["target"].unique()[:2])
        drop(tables, "splits", ~few)
    found = []
    for broken, expected in rounds(suite, tables[suite.table], path):
        seen = [
            set() if check["type"] in WIDE else reported(check)
            for check in report(suite, {**tables, suite.table: broken})
        ]
        for number, rows in expected.items():
            found += [
                (suite.listed[number], suite.listed[other])
                for other, numbers in enumerate(seen)
                if (not rows <= numbers if other == number else rows & numbers)
            ]
        own = set().union(*expected.values())
        found += [
            (one, one) for one, numbers in zip(suite.listed, seen, strict=True) if numbers - own
        ]
    for number, listed in enumerate(suite.listed):
        if listed.type not in SPOILS:
            mutated = dict(tables)
            MUTATIONS[listed.type](mutated, suite.table, listed.kwargs)
            found += [
                (listed, suite.listed[other])
                for other, check in enumerate(report(suite, mutated))
                if check["success"] == (other == number)
            ]
    return [
        (called(broken), called(other))
        for broken, other in found
        if broken is other or not overlapping(path, broken, other)
    ]


def reported(check: dict[str, Any]) -> set[int]:
    """The rows that a check reports, unless it lets them pass; -1 for more than it names, or where
    it broke."""
    if check["success"]:
        return set()
    if check["failing"] > len(check["examples"]) or check["problem"]:
        return {-1}
    return {row["number"] for row in check["examples"]}


def report(suite: Suite, tables: Tables) -> list[dict[str, Any]]:
    ((checks),) = [one["checks"] for one in gate.run([suite], tables, text=True)]
    return list(checks)
