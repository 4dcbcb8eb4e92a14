"""Cases of broken tables: sound ones are damaged in one way each."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pandas as pd

BUILDERS: Final = ("medlama", "biolama", "lama", "table", "diskne", "context", "lipid")

Tables = dict[str, pd.DataFrame]
Damage = Callable[[Tables], None]
CASES: Final[dict[str, list[tuple[str, Damage]]]] = {builder: [] for builder in BUILDERS}


def case(builder: str, name: str) -> Callable[[Damage], Damage]:
    """Register a damage as a case."""

    def register(damage: Damage) -> Damage:
        CASES[builder].append((name, damage))
        return damage

    return register


def change(tables: Tables, name: str, row: int, **values: Any) -> None:
    """Replace values of one row of a table."""
    records = tables[name].to_dict("records")
    records[row] |= values
    tables[name] = pd.DataFrame(records, columns=tables[name].columns)


def append(tables: Tables, name: str, rows: pd.DataFrame) -> None:
    """Append rows to a table."""
    tables[name] = pd.concat([tables[name], rows], ignore_index=True)


def copy_first(source: str, target: str, tables: Tables, **values: Any) -> None:
    """Append the first row of a table to another one, or to itself, with these values."""
    append(tables, target, tables[source].head(1).assign(**values))


def rotate(tables: Tables, name: str, rows: pd.Index, *columns: str) -> None:
    """Give each of these rows the values of the next one."""
    table = tables[name]
    for column in columns:
        values = table.loc[rows, column].to_list()
        table[column] = table[column].astype(object)
        table.loc[rows, column] = pd.Series(values[1:] + values[:1], index=rows, dtype=object)


def permute(columns: Sequence[str], tables: Tables) -> None:
    """Rotate columns of the queries within the first query's relation and subset."""
    queries = tables["queries"]
    first = queries[["relation", "subset"]] == queries[["relation", "subset"]].iloc[0]
    rotate(tables, "queries", queries.index[first.all(axis=1)], *columns)


def drop_relation(tables: Tables) -> None:
    """Leave out the queries of the first relation."""
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


def exchange(names: Sequence[str], tables: Tables) -> None:
    """Exchange the names of two relations."""
    first, second = names or tables["queries"]["relation"].unique()[:2]
    relations = tables["queries"]["relation"].replace({first: second, second: first})
    tables["queries"] = tables["queries"].assign(relation=relations)


def name_answer(tables: Tables) -> None:
    """Put the first query's answer before its prompt."""
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=f"{row['answers'][0]} . {row['prompt']}")


def take_next(column: str, tables: Tables) -> None:
    """Give the first query the next one's value of a column."""
    change(tables, "queries", 0, **{column: tables["queries"][column].iloc[1]})


def replace_first(tables: Tables, **values: Any) -> None:
    """Replace values of the first query."""
    change(tables, "queries", 0, **values)
