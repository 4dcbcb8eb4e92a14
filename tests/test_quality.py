"""The gate: good tables pass, each kind of bad row is named, a bad suite is an error."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from medprobe.errors import BadInput
from medprobe.quality import gate, suites
from medprobe.quality.page import page
from medprobe.stages.validate import validate

EXPECTATIONS = Path(__file__).parent.parent / "expectations"


def query(name: str, subset: str = "full", **changes: Any) -> dict[str, Any]:
    row = {
        "query_id": f"{name}-{subset}",
        "benchmark": "medlama",
        "relation": "may_treat",
        "subject": f"drug {name}",
        "subject_id": "C9900001",
        "prompt": f"drug {name} might treat [Y] .",
        "answers": ["fever", "pain"],
        "answer_ids": ["C9900002", "C9900003"],
        "subset": subset,
        "avg_match": 0.0,
        "avg_rouge_l": 0.0,
    }
    return {**row, **changes}


def candidates(*names: str) -> pd.DataFrame:
    rows = [
        {"name": name, "id": "C9900009", "type": "", "subset": subset}
        for subset in ["full", "hard"]
        for name in ["fever", "pain", "drug a", "drug b", *names]
    ]
    return pd.DataFrame(rows)


def run(tmp_path: Path, queries: list[dict[str, Any]], names: pd.DataFrame) -> dict[str, Any]:
    """The gate's result; a failed check raises BadInput after it is written."""
    folder = tmp_path / "medlama"
    folder.mkdir()
    pd.DataFrame(queries).to_parquet(folder / "queries.parquet")
    names.to_parquet(folder / "candidates.parquet")
    try:
        validate("medlama", folder, EXPECTATIONS, tmp_path / "out")
    finally:
        if (tmp_path / "out").is_dir():
            assert "<html" in (tmp_path / "out/index.html").read_text()
    result: dict[str, Any] = json.loads((tmp_path / "out/result.json").read_text())
    return result


GOOD = [query("a"), query("b", avg_match=0.5), query("a", "hard")]


def test_good_tables_pass(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD, candidates())["success"]


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"subject_id": "C12X"}, "expect_column_values_to_match_regex", "subject_id"),
    ({"answer_ids": ["C9900002", "C12X"]}, "expect_list_items_to_match_regex", "answer_ids"),
    ({"relation": "may_trea"}, "expect_column_values_to_be_in_set", "relation"),
    ({"subset": "easy"}, "expect_column_values_to_be_in_set", "subset"),
    ({"answers": [], "answer_ids": []}, "expect_list_lengths_to_be_between", "answers"),
    ({"answers": list("abcdefghijk")}, "expect_list_lengths_to_be_between", "answers"),
    ({"answers": ["fever", "fever"]}, "expect_list_items_to_be_unique", "answers"),
    ({"answers": ["fever", " "]}, "expect_list_items_to_match_regex", "answers"),
    ({"answers": ["fever"]}, "expect_lists_to_be_aligned", "answers"),
    ({"answers": ["fever", "gout"]}, "expect_items_to_be_in_table", "answers"),
    ({"prompt": "[Y] or [Y]"}, "expect_prompts_to_have_one_slot", "prompt"),
    ({"subject": "drug a"}, "expect_compound_columns_to_be_unique", "subject"),
    ({"subject": None}, "expect_column_values_to_not_be_null", "subject"),
    ({"avg_match": 1.5}, "expect_column_values_to_be_between", "avg_match"),
]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Rows that fail by the check that names them, of a table with every bad row there is."""
    folder = tmp_path_factory.mktemp("bad")
    bad = [{**query(f"bad {number}"), **changes} for number, (changes, *_) in enumerate(BAD)]
    with pytest.raises(BadInput, match="rows fail"):
        run(
            folder,
            [query("a"), *bad],
            candidates(*{row["subject"] or "-" for row in bad} - {"drug a"}),
        )
    result = json.loads((folder / "out/result.json").read_text())
    assert not result["success"]
    rows: dict[str, list[dict[str, Any]]] = {}
    for check in (check for table in result["tables"] for check in table["checks"]):
        rows.setdefault(check["type"], []).extend(check["examples"])
    return rows


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_bad_row_is_named(failed: dict[str, list[dict[str, Any]]], number: int) -> None:
    _, check, column = BAD[number]
    assert any(row["row"] == f"bad {number}-full" and column in row for row in failed[check])


def test_a_good_row_beside_bad_ones_is_not_named(failed: dict[str, list[dict[str, Any]]]) -> None:
    named = {check: {row["row"] for row in rows} for check, rows in failed.items()}
    assert named.pop("expect_compound_columns_to_be_unique") == {"a-full", "bad 11-full"}
    assert "a-full" not in set().union(*named.values())


def test_failing_rows_are_printed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = query("a", "hard", subject_id="C12X")
    with pytest.raises(BadInput):
        run(tmp_path, [*GOOD, bad], candidates())
    assert "a-hard: subject_id = 'C12X'" in capsys.readouterr().out
    assert "a-hard: subject_id = &#x27;C12X&#x27;" in (tmp_path / "out/index.html").read_text()


@pytest.mark.parametrize(
    ("hard", "check"),
    [
        (query("b", "hard"), "expect_subset_to_be_within"),
        (query("a", "hard", answers=["pain", "fever"]), "expect_subset_to_be_within"),
        (query("a", "hard", avg_rouge_l=0.1), "expect_subset_values_to_be_below"),
    ],
)
def test_the_hard_set_is_held_to_its_rules(
    tmp_path: Path, hard: dict[str, Any], check: str
) -> None:
    with pytest.raises(BadInput, match=rf"{check}: 1 rows fail, the first is {hard['query_id']}"):
        run(tmp_path, [query("a"), hard], candidates())


def test_a_relation_with_too_many_queries_is_named(tmp_path: Path) -> None:
    many = [query(str(number)) for number in range(1001)]
    names = candidates(*(row["subject"] for row in many))
    with pytest.raises(BadInput, match="expect_group_sizes_to_be_between: 1,001 rows fail"):
        run(tmp_path, many, names)


def test_a_name_twice_among_the_candidates_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"candidates.parquet: expect_compound_columns_to_be_unique"):
        run(tmp_path, GOOD, candidates("fever"))


def test_a_missing_column_is_reported(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "avg_match"} for row in GOOD]
    with pytest.raises(BadInput, match=r'column "avg_match" .* does not exist'):
        run(tmp_path, rows, candidates())


def write_suites(folder: Path, **kwargs: Any) -> Path:
    """Suites of benchmark x: sound ones, but for the first expectation on its queries."""
    sound = {"type": "expect_column_to_exist", "kwargs": {"column": "name"}}
    texts = {
        "candidates": {"row_id": ["name"], "expectations": [sound]},
        "queries": {"row_id": ["query_id"], "expectations": [kwargs, sound]},
    }
    for table, text in texts.items():
        (folder / f"x.{table}.json").write_text(json.dumps(text))
    return folder


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        (
            {"type": "expect_column_values_to_be_uniqe", "kwargs": {"column": "name"}},
            "unknown expectation expect_column_values_to_be_uniqe "
            "(did you mean 'expect_column_values_to_be_unique'?)",
        ),
        ({"type": "expect_column_values_to_be_unique"}, "column: field required"),
        (
            {"type": "expect_column_to_exist", "kwargs": {"column": "name", "colum": 1}},
            "colum: extra fields not permitted",
        ),
        ({"type": "expect_list_items_to_match_regex", "kwargs": {"column": "a"}}, "regex: field"),
        ({"typ": "expect_column_to_exist"}, "expectations.0.type: Field required"),
    ],
)
def test_a_bad_suite_is_an_error(tmp_path: Path, listed: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=re.escape(problem)) as error:
        suites.load(write_suites(tmp_path, **listed), "x")
    assert str(tmp_path / "x.queries.json") in str(error.value)


def test_a_missing_or_broken_suite_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"x.queries.json: no such suite"):
        suites.load(tmp_path, "x")
    write_suites(tmp_path, type="expect_column_to_exist", kwargs={"column": "name"})
    (tmp_path / "x.queries.json").write_text("{")
    with pytest.raises(BadInput, match=r"x.queries.json: not JSON"):
        suites.load(tmp_path, "x")


def test_a_further_table_has_a_suite_of_its_own(tmp_path: Path) -> None:
    write_suites(tmp_path, type="expect_column_to_exist", kwargs={"column": "name"})
    unique = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "step"}}
    text = {"row_id": ["part", "step"], "expectations": [unique]}
    (tmp_path / "x.steps.json").write_text(json.dumps(text))
    table = pd.DataFrame({"name": ["a"], "query_id": ["q"]})
    steps = pd.DataFrame({"part": ["a", "b"], "step": [1, 1]})
    tables = {"queries": table, "candidates": table, "steps": steps}
    reports = {report["table"]: report for report in gate.run(suites.load(tmp_path, "x"), tables)}
    assert reports["queries"]["success"]
    (check,) = reports["steps"]["checks"]
    assert [example["row"] for example in check["examples"]] == ["a 1", "b 1"]
    del tables["steps"]
    with pytest.raises(BadInput, match=r"steps.parquet: no such table, but a suite for it"):
        gate.run(suites.load(tmp_path, "x"), tables)


def test_the_page_needs_no_network_and_escapes_what_it_shows() -> None:
    example = {"row": "<b>", "subject": "a & b"}
    check = {"type": "expect_x", "kwargs": {}, "notes": "", "success": False, "failing": 1}
    report = {
        "table": "queries",
        "rows": 1,
        "success": False,
        "checks": [{**check, "examples": [example], "problem": ""}],
    }
    html = page("medlama", [report])
    assert "&lt;b&gt;: subject = &#x27;a &amp; b&#x27;" in html
    assert not re.search(r"(src|href)=|https?:", html)
