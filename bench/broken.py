"""Ways to damage sound tables: each function makes a damage, which a case applies."""

from collections.abc import Callable
from typing import Any

import pandas as pd

Tables = dict[str, pd.DataFrame]
Damage = Callable[[Tables], None]
Rule = Callable[[pd.DataFrame], "pd.Series[bool]"]
Cases = dict[str, Damage]  # by what is broken


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


def replace(name: str, **columns: Callable[[pd.DataFrame], Any]) -> Damage:
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
            tables[name][column] = values

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
        tables[name][column] = exchanged

    return damage


def equal_first(*columns: str) -> Rule:
    """The rows that have the values of the first row in these columns."""
    return lambda rows: (rows[[*columns]] == rows[[*columns]].iloc[0]).all(axis=1)


def _value(value: Any, row: dict[str, Any]) -> Any:
    """A value, or what a function makes of the row."""
    return value(row) if callable(value) else value
