"""The gate: good tables pass, each kind of bad row is named, a bad suite is an error."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers import ROOT
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.gate import checks, suites
from medprobe.gate import run as gate
from medprobe.gate.run import page
from medprobe.pipeline.stages.validate import validate

NEEDED = ["queries", "candidates"]
DRUGS = {"table": {"drugs": {"facts": "tables/facts.csv"}}}


def query(name: str, subset: str = "full", **changes: Any) -> dict[str, Any]:
    row = {
        "query_id": f"{name}-{subset}",
        "benchmark": "drugs",
        "relation": "treats",
        "subject": f"drug {name}",
        "subject_id": f"drug {name}",
        "prompt": f"drug {name} treats [Y] .",
        "answers": ["fever", "pain"],
        "answer_ids": ["fever", "pain"],
        "subset": subset,
    }
    return {**row, **changes}


def candidates(*names: str) -> pd.DataFrame:
    rows = [
        {"name": name, "id": name, "type": "", "subset": "full"}
        for name in ["fever", "pain", "drug a", "drug b", *names]
    ]
    return pd.DataFrame(rows)


def sources(queries: list[dict[str, Any]]) -> pd.DataFrame:
    """As if all of the queries' subjects had been read."""
    counts = pd.DataFrame(queries).groupby("relation")["subject_id"].nunique()
    names = {"source": "tables/facts.csv", "what": "subjects", "name": counts.index}
    return pd.DataFrame({**names, "rows": counts.to_numpy()})


def run(
    tmp_path: Path,
    queries: list[dict[str, Any]],
    names: pd.DataFrame,
    *,
    text: bool = True,
    read: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """The gate's result; a failed check raises BadInput after it is written."""
    folder = tmp_path / "outputs/benchmarks/drugs"
    out = tmp_path / "outputs/validation/drugs"
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(queries).to_parquet(folder / "queries.parquet")
    names.to_parquet(folder / "candidates.parquet")
    (sources(queries) if read is None else read).to_parquet(folder / "sources.parquet")
    (folder / "about.json").write_text('{"builder": "table", "normalise": "exact"}')
    if not (tmp_path / "expectations").exists():
        (tmp_path / "expectations").symlink_to(ROOT / "expectations")
    params = Params.model_validate({"benchmarks": DRUGS, "track": {"text": text}})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        try:
            validate("drugs", params)
        finally:
            if out.is_dir():
                assert "<html" in (out / "index.html").read_text()
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


GOOD = [query("a"), query("b")]


def test_failing_rows_are_printed_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput):
        run(tmp_path, [*GOOD, query("c", prompt="drug c & <b>")], candidates())
    says = "row 3, c-full: the prompt has no slot [Y], or several: prompt = "
    assert f"{says}'drug c & <b>'" in capsys.readouterr().out
    shown = (tmp_path / "outputs/validation/drugs/index.html").read_text()
    assert f"{says}&#39;drug c &amp; &lt;b&gt;&#39;" in shown


def test_text_of_the_data_is_shown_only_where_it_may_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "quite a secret"
    bad = {"subject": secret, "answers": [secret], "prompt": f"{secret} [MASK]", "relation": secret}
    names = candidates().assign(name=secret)
    with pytest.raises(BadInput) as error:
        run(tmp_path, [*GOOD, query("c", **bad)], names, text=False)
    written = (tmp_path / "outputs/validation/drugs").iterdir()
    messages = [capsys.readouterr().out, str(error.value), *(path.read_text() for path in written)]
    assert len(messages) == 4
    assert secret not in "".join(messages)
    assert "row 3, c-full" in messages[0]


TEXTS = {"name", "subject", "prompt", "answers", "text", "premise", "hypothesis", "evidence"}


@pytest.mark.parametrize("path", sorted((ROOT / "expectations").rglob("*.json")), ids=str)
def test_no_suite_names_its_rows_by_their_text(path: Path) -> None:
    columns = {*json.loads(path.read_text()).get("row_id", [])}
    if path.stem == "sources":  # whose names are those of files and relations
        columns -= {"name"}
    assert not columns & TEXTS


def test_a_failing_gate_leaves_no_verdict_of_before(tmp_path: Path) -> None:
    passed = tmp_path / "outputs/passed/drugs"
    assert run(tmp_path, GOOD, candidates())["success"]
    assert passed.read_text() == "passed\n"
    with pytest.raises(BadInput):
        run(tmp_path, [query("a", prompt="no slot")], candidates())
    assert not passed.exists()
    run(tmp_path, GOOD, candidates())
    (tmp_path / "outputs/benchmarks/drugs/queries.parquet").unlink()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(BadInput, match="no such table"):
        patch.chdir(tmp_path)
        validate("drugs", Params.model_validate({"benchmarks": DRUGS}))
    assert not passed.exists()


def test_a_warning_is_shown_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    masked = [query(name, prompt=f"drug {name} [MASK] treats [Y] .") for name in "ab"]
    assert run(tmp_path, masked, candidates())["success"]
    out = tmp_path / "outputs/validation/drugs"
    assert (tmp_path / "outputs/passed/drugs").read_text() == "passed\n"
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("warning: ") and first.endswith(": 2 rows, the first is row 1, a-full")
    assert second.startswith("    outputs/benchmarks/drugs/queries.parquet: expect_")
    page_text = (out / "index.html").read_text()
    assert "1 warning" in page_text
    assert page_text.index("What failed") < page_text.index("row 1, a-full") < page_text.index("✓")


def test_a_build_that_loses_rows_is_stopped(tmp_path: Path) -> None:
    read = sources(GOOD).assign(rows=4)
    with pytest.raises(BadInput, match=r"sources.parquet: .*: row 1, .*expect_rows_to_be_used"):
        run(tmp_path, GOOD, candidates(), read=read)
    gone = pd.concat([sources(GOOD), sources(GOOD).assign(name="prevents")])
    with pytest.raises(BadInput, match=r"subjects prevents.*expect_rows_to_be_used"):
        run(tmp_path, GOOD, candidates(), read=gone)


def test_a_table_of_sources_without_a_column_is_one_line(tmp_path: Path) -> None:
    read = sources(GOOD).drop(columns="rows")
    with pytest.raises(BadInput, match=r"sources.parquet: no column rows; its builder makes"):
        run(tmp_path, GOOD, candidates(), read=read)


def test_a_name_twice_among_the_candidates_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"candidates.parquet: .*compound_columns_to_be_unique"):
        run(tmp_path, GOOD, candidates("fever"))


def write_suites(folder: Path, **kwargs: Any) -> Path:
    """Suites of benchmark x: sound ones, but for the first expectation on its queries."""
    sound = {"type": "expect_column_to_exist", "kwargs": {"column": "name"}}
    texts = {
        "candidates": {"row_id": ["name"], "expectations": [sound]},
        "queries": {"row_id": ["query_id"], "expectations": [kwargs, sound]},
    }
    for table, text in texts.items():
        (folder / f"{table}.json").write_text(json.dumps(text))
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
        ({"typ": "expect_column_to_exist"}, "key expectations.0.typ (did you mean 'type'?)"),
        ({"type": "expect_column_to_exist", "severity": "error"}, "severity: Input should be"),
        (
            {"type": "expect_column_to_exist", "kwargs": {"column": {"$PARAMETER": "negative"}}},
            "no setting 'negative'",
        ),
    ],
)
def test_a_bad_suite_is_an_error(tmp_path: Path, listed: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput, match=re.escape(problem)) as error:
        suites.load(write_suites(tmp_path, **listed), NEEDED, {})
    assert str(tmp_path / "queries.json") in str(error.value)


def test_a_missing_or_broken_suite_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"queries.json: no such suite"):
        suites.load(tmp_path, NEEDED, {})
    write_suites(tmp_path, type="expect_column_to_exist", kwargs={"column": "name"})
    (tmp_path / "queries.json").write_text("{")
    for read in (suites.folders, lambda folder: suites.load(folder, NEEDED, {})):
        with pytest.raises(BadInput, match=r"queries.json: not JSON"):
            read(tmp_path)


def test_a_further_table_has_a_suite_of_its_own(tmp_path: Path) -> None:
    write_suites(tmp_path, type="expect_column_to_exist", kwargs={"column": "name"})
    unique = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "step"}}
    text = {"row_id": ["part", "step"], "expectations": [unique]}
    (tmp_path / "steps.json").write_text(json.dumps(text))
    table = pd.DataFrame({"name": ["a"], "query_id": ["q"]})
    steps = pd.DataFrame({"part": ["a", "b"], "step": [1, 1]})
    tables = {"queries": table, "candidates": table, "steps": steps}
    reports = {
        report["table"]: report
        for report in gate.run(suites.load(tmp_path, NEEDED, {}), tables, text=True)
    }
    assert reports["queries"]["success"]
    (check,) = reports["steps"]["checks"]
    assert [example["row"] for example in check["examples"]] == ["a 1", "b 1"]
    del tables["steps"]
    with pytest.raises(BadInput, match=r"steps.parquet: no such table, but it has a suite"):
        gate.run(suites.load(tmp_path, NEEDED, {}), tables, text=True)


def test_a_missing_column_is_reported(tmp_path: Path) -> None:
    listed = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "gone"}}
    table = pd.DataFrame({"name": ["a"], "query_id": ["q"]})
    loaded = suites.load(write_suites(tmp_path, **listed), NEEDED, {})
    candidates_report, report = gate.run(loaded, {"queries": table, "candidates": table}, text=True)
    assert candidates_report["success"] and not report["success"]
    assert re.search(r'column "gone" .* does not exist', report["checks"][0]["problem"])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("the name is long", "the name is long"),
        (lambda kwargs, row: f"{len(row['name'])}, not {kwargs['at_most']}", "2, not 1"),
        (None, ""),
    ],
)
def test_an_expectation_says_what_is_wrong_with_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: checks.Fault | None, said: str
) -> None:
    monkeypatch.setattr(checks, "expectations", {})
    monkeypatch.setattr(checks, "faults", {})

    def expect_names_to_be_short(names: pd.Series, at_most: int) -> pd.Series:
        return names.str.len() <= at_most

    checks.value_check(
        checks.says(fault)(expect_names_to_be_short) if fault else expect_names_to_be_short
    )
    kwargs = {"column": "name", "at_most": 1}
    listed = {"type": "expect_names_to_be_short", "kwargs": kwargs}
    loaded = suites.load(write_suites(tmp_path, **listed), NEEDED, {})
    table = pd.DataFrame({"name": ["a", "bc"], "query_id": ["q", "r"]})
    report = gate.run(loaded, {"queries": table, "candidates": table}, text=False)[1]
    assert [row["fault"] for row in report["checks"][0]["examples"]] == [said]


def test_the_page_needs_no_network_and_escapes_what_it_shows() -> None:
    example = {"number": 1, "row": "<b>", "subject": "a & b"}
    check = {"type": "expect_x", "kwargs": {}, "notes": "", "success": False, "failing": 1}
    check["severity"] = "critical"
    report = {
        "table": "queries",
        "rows": 1,
        "success": False,
        "checks": [{**check, "examples": [example], "problem": ""}],
    }
    html = page("drugs", [report])
    assert "row 1, &lt;b&gt;: subject = &#39;a &amp; b&#39;" in html
    assert not re.search(r"(src|href)=|https?:", html)
