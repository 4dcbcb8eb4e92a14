"""Run suites on tables with Great Expectations, in memory; no folder of its own is made."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.progress import Progress, show_progress
from medprobe.quality.checks import reasons
from medprobe.quality.checks import tables as all_tables
from medprobe.quality.suites import Suite

EXAMPLES: Final = 20  # failing rows that a report names, of each check
NUMBER: Final = "row_number"  # column that the gate adds to a table, from 1


def run(
    suites: list[Suite], tables: Mapping[str, pd.DataFrame], *, text: bool
) -> list[dict[str, Any]]:
    """One report a suite: table, rows, success, and `checks`, one an expectation, in their order.

    A check has type, kwargs, notes, severity, success, `failing` (how many rows), `examples` (each
    the row's number, its id, and what is wrong) and `problem` (why it could not be checked, such
    as a missing column). Without `text`, no text of the tables is in a report, but for the columns
    that identify rows. The same tables give the same report. Raises BadInput for a suite without a
    table.
    """
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = context.data_sources.add_pandas("tables")
    token, why = all_tables.set(tables), reasons.set({})
    try:
        with show_progress("validate", sum(len(suite.listed) for suite in suites), "checks") as now:
            now.advance_to(0)
            return [_run(suite, tables, source, text, now) for suite in suites]
    finally:
        all_tables.reset(token)
        reasons.reset(why)


def _run(
    suite: Suite, tables: Mapping[str, pd.DataFrame], source: Any, text: bool, now: Progress
) -> dict[str, Any]:
    import great_expectations as gx

    if suite.table not in tables:
        raise BadInput(f"{suite.table}.parquet", "no such table, but a suite for it")
    table = tables[suite.table]
    if missing := [column for column in suite.row_id if column not in table]:
        raise BadInput(f"{suite.table}.parquet", f"no column {missing[0]} to name its rows by")
    asset = source.add_dataframe_asset(suite.table)
    numbered = {"dataframe": table.assign(**{NUMBER: range(1, len(table) + 1)})}
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(numbered)
    for number, expectation in enumerate(suite.expectations):
        expectation.meta = {"number": number}
    outcome = batch.validate(
        gx.ExpectationSuite(suite.table, expectations=suite.expectations),
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": [NUMBER, *suite.row_id],
        },
    )
    found = sorted(outcome.results, key=lambda result: result.expectation_config.meta["number"])
    if len(found) != len(suite.listed):
        raise RuntimeError(f"{suite.table}: {len(found)} of {len(suite.listed)} checks were run")
    checks = [
        {**listed.model_dump(), **_outcome(result, suite.row_id, text)}
        for listed, result in zip(suite.listed, found, strict=True)
    ]
    now.advance_to(now.count + len(checks))
    success = all(check["success"] for check in checks if check["severity"] == "critical")
    return {"table": suite.table, "rows": len(table), "success": success, "checks": checks}


def _outcome(result: Any, row_id: list[str], text: bool) -> dict[str, Any]:
    """What a check found, of Great Expectations' many words for it."""
    found = result.result
    problems = {
        _exception(str(info["exception_message"]), text)
        for info in [result.exception_info, *result.exception_info.values()]
        if isinstance(info, dict) and info.get("exception_message")
    }
    observed = found.get("observed_value")
    if not result.success and "observed_value" in found:
        shown = text or isinstance(observed, (int, float))
        problems.add(f"found {observed}" if shown else "found something else")
    rows = found.get("unexpected_index_list") or []
    return {
        "success": bool(result.success),
        "failing": len(rows),
        "examples": [_failing(row, row_id, text) for row in rows[:EXAMPLES]],
        "problem": "; ".join(sorted(problems)),
    }


def _exception(message: str, text: bool) -> str:
    """An exception's message; without `text`, only one that tells of a column."""
    column = re.search(r'The column "[^"]*" in BatchData does not exist', message)
    return message if text else column[0] if column else "the check itself broke on these values"


def _failing(row: dict[str, Any], row_id: list[str], text: bool) -> dict[str, Any]:
    """A failing row: its number, its id, what the check says of it, and the columns' values."""
    name = " ".join(str(row[column]) for column in row_id)
    values = {
        column: _plain(value)
        for column, value in row.items()
        if column not in [NUMBER, *row_id] and (text or isinstance(value, (int, float)))
    }
    if name in reasons.get():
        where, what = reasons.get()[name]
        values["reason"] = f"{where}: {what}" if text and what else where
    return {"number": int(row[NUMBER]), "row": name, **values}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a missing one is null."""
    if isinstance(value, (list, tuple)) or type(value).__module__ == "numpy":
        value = value if isinstance(value, (list, tuple)) else value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if pd.isna(value):
        return None
    return value if isinstance(value, (str, int, float)) else str(value)
