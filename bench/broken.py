"""Cases of broken tables: sound ones are damaged in one way each."""

from collections.abc import Callable
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
