"""Run suites on tables with Great Expectations, in memory, and write the page of what they found.

There is no project folder of Great Expectations' own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.progress import Progress, show_progress
from medprobe.gate.checks import Context, describe, providing
from medprobe.gate.suites import Suite, SuiteEntry

EXAMPLES: Final = 20  # failing rows that a report names, of each check
FAULTS: Final = 3  # that a summary names, of each check
NUMBER: Final = "row_number"  # column that the gate adds to a table, from 1


def run(
    suites: list[Suite],
    tables: Mapping[str, pd.DataFrame],
    *,
    text: bool,
    places: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run suites on tables. The same tables give the same reports.

    Returns:
        One report per suite: table, rows, success, and `checks`, one per expectation. A check has
        type, kwargs, notes, severity, success, `failing` (how many rows), `examples` (the number
        and id of rows, their `place` in the source, their `fault` in words, and their values) and
        `problem` (why it could not be checked, such as a missing column).
    """
    import great_expectations as gx

    gx_context = gx.get_context(mode="ephemeral")
    gx_context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = gx_context.data_sources.add_pandas("tables")
    with (
        providing(tables, places or {}) as context,
        show_progress("validate", sum(len(suite.entries) for suite in suites), "checks") as bar,
    ):
        bar.advance_to(0)
        return [_run(suite, context, source, text, bar) for suite in suites]


def _run(suite: Suite, context: Context, source: Any, text: bool, bar: Progress) -> dict[str, Any]:
    import great_expectations as gx

    if suite.table not in context.tables:
        raise BadInput(f"{suite.table}.parquet", "no such table, but it has a suite")
    table = context.tables[suite.table]
    if missing := [column for column in suite.row_id if column not in table]:
        raise BadInput(f"{suite.table}.parquet", f"no column {missing[0]} to name its rows by")
    asset = source.add_dataframe_asset(suite.table)
    numbered = {"dataframe": table.assign(**{NUMBER: range(1, len(table) + 1)})}
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(numbered)
    # Great Expectations validates column by column, and returns results in that order.
    for number, expectation in enumerate(suite.expectations):
        expectation.meta = {"number": number}
    outcome = batch.validate(
        gx.ExpectationSuite(suite.table, expectations=suite.expectations),
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": [NUMBER, *suite.row_id],
        },
    )
    results = sorted(outcome.results, key=lambda result: result.expectation_config.meta["number"])
    checks = [
        {**entry.model_dump(), **_outcome(result, entry, suite, text, context)}
        for entry, result in zip(suite.entries, results, strict=True)
    ]
    bar.advance_to(bar.count + len(checks))
    success = all(check["success"] for check in checks if check["severity"] == "critical")
    return {"table": suite.table, "rows": len(table), "success": success, "checks": checks}


def _outcome(
    result: Any, entry: SuiteEntry, suite: Suite, text: bool, context: Context
) -> dict[str, Any]:
    """The parts of Great Expectations' result that a report has."""
    details = result.result
    problems = {
        _exception(str(info["exception_message"]), text)
        for info in [result.exception_info, *result.exception_info.values()]
        if isinstance(info, dict) and info.get("exception_message")
    }
    observed = details.get("observed_value")
    if not result.success and "observed_value" in details:
        is_safe = text or isinstance(observed, (int, float))
        problems.add(f"found {observed}" if is_safe else "found another value")
    rows = details.get("unexpected_index_list") or []
    return {
        "success": bool(result.success),
        "failing": len(rows),
        "examples": [
            {
                **_failing(row, suite, text, context, entry.type),
                "fault": describe(entry.type, entry.kwargs, row),
            }
            for row in rows[:EXAMPLES]
        ],
        "problem": "; ".join(sorted(problems)),
    }


def _exception(message: str, text: bool) -> str:
    """An exception's message; without `text`, only one about a missing column."""
    column = re.search(r'The column "[^"]*" in BatchData does not exist', message)
    return message if text else column[0] if column else "the check itself failed on these values"


def _failing(
    row: dict[str, Any], suite: Suite, text: bool, context: Context, check: str
) -> dict[str, Any]:
    """A failing row: its number, its id, the check's reason, and the columns' values."""
    row_id, number = suite.row_id, int(row[NUMBER])
    name = " ".join(str(row[column]) for column in row_id)
    values = {
        column: _plain(value)
        for column, value in row.items()
        if column not in [NUMBER, *row_id] and (text or isinstance(value, (int, float)))
    }
    if reason := context.reasons.get((check, name)):
        place, detail = reason
        values["reason"] = f"{place}: {detail}" if text and detail else place
    place = context.places.get(name) or context.places.get(f"{suite.table} {number}", "")
    return {"number": number, "row": name, "place": place, **values}


def _plain(value: Any) -> Any:
    """A value as JSON represents it; a missing one is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if pd.isna(value):
        return None
    return value if isinstance(value, (str, int, float)) else str(value)


TEMPLATES: Final = Path(__file__).parent


def page(
    subject: str,
    reports: list[dict[str, Any]],
    sources: Sequence[Mapping[str, Any]] = (),
    published: Mapping[str, str] | None = None,
) -> str:
    """Render the reports of `gate.run` as HTML. The page opens at what failed."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    checks = [check for report in reports for check in report["checks"]]
    failed = [check["severity"] for check in checks if not check["success"]]
    failing = {"table": "", "rows": 0, "checks": failures(reports)}
    return environment.get_template("page.html").render(
        subject=subject,
        reports=[failing, *reports] if failed else reports,
        published=published or {},
        sources=sources,
        checks=len(checks),
        failed=failed.count("critical"),
        warnings=len(failed) - failed.count("critical"),
        failing_rows=failing_rows,
        words=words,
    )


def failures(reports: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The checks that failed, with the name of their `table`: first those that stop."""
    failed = [
        {**check, "table": report["table"]}
        for report in reports
        for check in report["checks"]
        if not check["success"]
    ]
    return sorted(failed, key=lambda check: check["severity"] != "critical")


def words(check: Mapping[str, Any]) -> str:
    """What is wrong, in words, how often, and where first.

    >>> row = {"number": 3, "row": "a", "fault": "an answer is the subject", "place": "f, line 4"}
    >>> words({"type": "expect_x", "notes": "", "failing": 2, "problem": "", "examples": [row]})
    'an answer is the subject: 2 rows, the first is f, line 4 (row 3, a)'
    """
    first: dict[str, Any] = next(iter(check["examples"]), {})
    expected = f"expected: {check['notes']}" if check["notes"] else check["type"]
    faults = dict.fromkeys(filter(None, (row.get("fault") for row in check["examples"])))
    said = " or ".join([*faults][:FAULTS]) or expected
    if not first:
        return ": ".join(filter(None, [said, check["problem"]]))
    rows = "" if check["failing"] == 1 else f"{check['failing']:,} rows, the first is "
    return f"{said}: {rows}{_named(first)}"


def failing_rows(check: dict[str, Any]) -> list[str]:
    """One line per failing row of a check: where it is, its fault and its values."""
    lines = []
    for example in check["examples"]:
        named = ("number", "row", "fault", "place")
        fields = {key: value for key, value in example.items() if key not in named}
        values = ", ".join(f"{key} = {value!r}" for key, value in fields.items())
        lines.append(": ".join(filter(None, [_named(example), example.get("fault", ""), values])))
    return lines


def _named(example: Mapping[str, Any]) -> str:
    """Where a failing row is in its source, if that is known, its number and its id."""
    row = f"row {example['number']:,}, {example['row']}".removesuffix(", ")
    return f"{example['place']} ({row})" if example.get("place") else row
