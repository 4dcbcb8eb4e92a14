"""Broken data: what is damaged, and the check that must find it.

A `Case` damages sound tables, or the files below `data/`, in one way. The functions here make
damages of tables; `broken_files` has those of files.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace as with_fields
from typing import Any, NamedTuple

import pandas as pd

from medprobe.core.tables import ORIGINAL
from medprobe.gate import run as gate
from medprobe.gate.suites import Suite

Tables = dict[str, pd.DataFrame]
Row = dict[str, Any]
Damage = Callable[[Tables], None]
Rule = Callable[[pd.DataFrame], "pd.Series[bool]"]


class Case(NamedTuple):
    """One damage.

    Attributes:
        damage: Of tables by name, or of the folder `data`.
        checks: The expectations that fail, without `expect_`; or the file that is refused.
        verdict: stopped, warned or refused.
        says: What is wrong with a row, in words.
    """

    damage: Callable[[Any], None]
    checks: tuple[str, ...]
    verdict: str
    says: str = ""

    @property
    def types(self) -> set[str]:
        """The names of its checks."""
        return {f"expect_{check}" for check in self.checks}


Cases = dict[str, Case]  # by what is broken


def stops(damage: Callable[[Any], None], *checks: str, says: str = "") -> Case:
    return Case(damage, checks, "stopped", says)


def warns(damage: Callable[[Any], None], *checks: str) -> Case:
    return Case(damage, checks, "warned")


def refused(damage: Callable[[Any], None], file: str) -> Case:
    """Before any table is made."""
    return Case(damage, (file,), "refused")


def failing(loaded: Iterable[Suite], tables: Tables) -> list[dict[str, Any]]:
    """The checks that fail."""
    chosen = [suite for suite in loaded if suite.entries and suite.table in tables]
    reports = gate.run(chosen, tables, text=False)
    return [check for report in reports for check in report["checks"] if not check["success"]]


def find_in_tables(loaded: Iterable[Suite], tables: Tables, case: Case) -> None:
    """Fail unless the expectations of a case, and they alone are asked, find the damage."""
    broken = {name: rows.reset_index(drop=True).copy() for name, rows in tables.items()}
    case.damage(broken)
    found = failing([only(suite, case.types) for suite in loaded], broken)
    assert {check["type"] for check in found} == case.types
    assert verdict(found) == case.verdict
    said = {row.get("fault") for check in found for row in check["examples"]}
    assert {case.says} - {""} <= said, said


def verdict(checks: Iterable[dict[str, Any]]) -> str:
    """What the gate does where these checks fail."""
    severities = {check["severity"] for check in checks}
    return "stopped" if "critical" in severities else "warned" if severities else "passed"


def only(suite: Suite, types: set[str]) -> Suite:
    """A suite with these checks alone."""
    numbers = [n for n, entry in enumerate(suite.entries) if entry.type in types]
    return with_fields(
        suite,
        entries=[suite.entries[n] for n in numbers],
        expectations=[suite.expectations[n] for n in numbers],
    )


def edit(name: str, where: str = "index >= 0", **values: Any) -> Damage:
    """Replace values of a table's first row of a kind; a value can be a function of the row."""

    def damage(tables: Tables) -> None:
        records = tables[name].to_dict("records")
        row = records[tables[name].query(where).index[0]]
        row |= {column: _value(value, row) for column, value in values.items()}
        tables[name] = pd.DataFrame(records, columns=tables[name].columns)

    return damage


def add(name: str, source: str = "", where: str = "index >= 0", **values: Any) -> Damage:
    """Append the first row of a kind, of the same or another table, with other values."""

    def damage(tables: Tables) -> None:
        row = tables[source or name].query(where).iloc[0].to_dict()
        row |= {column: _value(value, row) for column, value in values.items()}
        tables[name] = pd.concat([tables[name], pd.DataFrame([row])], ignore_index=True)

    return damage


def remove(name: str, rule: Rule) -> Damage:
    """Remove the rows of a table for which the rule holds."""

    def damage(tables: Tables) -> None:
        tables[name] = tables[name][~rule(tables[name])].reset_index(drop=True)

    return damage


def replace(name: str, /, **columns: Callable[[pd.DataFrame], Any]) -> Damage:
    """Replace columns of a table, each by a function of the table."""

    def damage(tables: Tables) -> None:
        tables[name] = tables[name].assign(**columns)

    return damage


def rotate(name: str, rule: Rule, *columns: str) -> Damage:
    """Give each row for which the rule holds the values of the next one."""

    def damage(tables: Tables) -> None:
        rows = tables[name].index[rule(tables[name])]
        for column in columns:
            values = tables[name][column].astype(object)
            values[rows] = [*values[rows][1:], values[rows].iloc[0]]
            tables[name] = tables[name].assign(**{column: values})

    return damage


def take(name: str, *columns: str) -> Damage:
    """Give the first row values of the second one."""

    def damage(tables: Tables) -> None:
        second = tables[name].iloc[1]
        edit(name, **{column: second[column] for column in columns})(tables)

    return damage


def exchange(name: str, column: str, *values: str) -> Damage:
    """Exchange two values of a column; without their names the first two."""

    def damage(tables: Tables) -> None:
        first, second = values or tables[name][column].unique()[:2]
        exchanged = tables[name][column].replace({first: second, second: first})
        tables[name] = tables[name].assign(**{column: exchanged})

    return damage


def family(**values: Callable[[pd.DataFrame], Any]) -> Damage:
    """Make one family of the first two queries, the second with these values; or of the first."""

    def damage(tables: Tables) -> None:
        rows = tables["queries"].assign(family_id="", wording="", name_kind="")
        for row in (0, 1) if values else (0,):
            rows.loc[row, ["family_id", "wording", "name_kind"]] = ["f", ORIGINAL, ORIGINAL]
        for column, value in values.items():
            rows.loc[1, column] = value(rows)
        tables["queries"] = rows

    return damage


def equal_first(*columns: str) -> Rule:
    """The rows that have the values of the first row in these columns."""
    return lambda rows: (rows[[*columns]] == rows[[*columns]].iloc[0]).all(axis=1)


def with_answer(row: Row) -> str:
    """A query's prompt with an answer in it."""
    return f"{row['answers'][0]} . {row['prompt']}"


def last_answers_cut(column: str) -> Callable[[pd.DataFrame], list[list[str]]]:
    return lambda rows: [[*items[: max(1, len(items) - 1)]] for items in rows[column]]


CUT = replace(
    "queries", answers=last_answers_cut("answers"), answer_ids=last_answers_cut("answer_ids")
)
NO_RELATION = remove("queries", equal_first("relation"))
PERMUTED = rotate("queries", equal_first("relation", "subset"), "answers", "answer_ids")
PROMPT_OF_ANOTHER = take("queries", "prompt")
UNKNOWN_ANSWER = edit("queries", answers=["no such name"], answer_ids=["C9999999"])


def _value(value: Any, row: Row) -> Any:
    """A value, or what a function makes of the row."""
    return value(row) if callable(value) else value
