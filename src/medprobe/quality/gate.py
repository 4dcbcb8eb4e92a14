"""Run suites on tables with Great Expectations, in memory; no folder of its own is made."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from medprobe.errors import BadInput
from medprobe.quality.checks import reasons
from medprobe.quality.checks import tables as tables_of_the_benchmark
from medprobe.quality.suites import Suite

EXAMPLES = 20  # failing rows that a report names, of each check


def run(suites: list[Suite], tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """One report a suite: table, rows, success, and `checks`, one an expectation, in their order.

    A check has type, kwargs, notes, success, `failing` (how many rows), `examples` (each the row's
    id, the column and its value) and `problem` (why it could not be checked, such as a missing
    column). The same tables give the same report. Raises BadInput for a suite without a table.
    """
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
    )

    stores = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    config = DataContextConfig(store_backend_defaults=stores)
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    source = context.data_sources.add_pandas("tables")
    token, why = tables_of_the_benchmark.set(tables), reasons.set({})
    try:
        return [_run(suite, tables, source) for suite in suites]
    finally:
        tables_of_the_benchmark.reset(token)
        reasons.reset(why)


def _run(suite: Suite, tables: Mapping[str, pd.DataFrame], source: Any) -> dict[str, Any]:
    import great_expectations as gx

    if suite.table not in tables:
        raise BadInput(f"{suite.table}.parquet", "no such table, but a suite for it")
    table = tables[suite.table]
    if missing := [column for column in suite.row_id if column not in table]:
        raise BadInput(f"{suite.table}.parquet", f"no column {missing[0]} to name its rows by")
    asset = source.add_dataframe_asset(suite.table)
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": table})
    for number, expectation in enumerate(suite.expectations):
        expectation.meta = {"number": number}
    outcome = batch.validate(
        gx.ExpectationSuite(suite.table, expectations=suite.expectations),
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": suite.row_id,
        },
    )
    found = sorted(outcome.results, key=lambda result: result.expectation_config.meta["number"])
    if len(found) != len(suite.listed):
        raise RuntimeError(f"{suite.table}: {len(found)} of {len(suite.listed)} checks were run")
    checks = [
        {**listed.model_dump(), **_outcome(result, suite.row_id)}
        for listed, result in zip(suite.listed, found, strict=True)
    ]
    success = all(check["success"] for check in checks)
    return {"table": suite.table, "rows": len(table), "success": success, "checks": checks}


def _outcome(result: Any, row_id: list[str]) -> dict[str, Any]:
    """What a check found, of Great Expectations' many words for it."""
    found = result.result
    problems = {
        info["exception_message"]
        for info in [result.exception_info, *result.exception_info.values()]
        if isinstance(info, dict) and info.get("exception_message")
    }
    if not result.success and "observed_value" in found:
        problems.add(f"found {found['observed_value']}")
    rows = found.get("unexpected_index_list") or []
    examples = [_failing(row, row_id) for row in rows[:EXAMPLES]]
    return {
        "success": bool(result.success),
        "failing": len(rows),
        "examples": examples,
        "problem": "; ".join(sorted(problems)),
    }


def _failing(row: dict[str, Any], row_id: list[str]) -> dict[str, Any]:
    """A failing row: its id, the columns' values, and the reason where the check gave one."""
    name = " ".join(str(row[column]) for column in row_id)
    values = {column: _plain(value) for column, value in row.items() if column not in row_id}
    reason = {"reason": reasons.get()[name]} if name in reasons.get() else {}
    return {"row": name, **values, **reason}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a missing one is null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if pd.isna(value):
        return None
    return value if isinstance(value, (str, int, float)) else str(value)
