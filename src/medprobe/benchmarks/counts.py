"""The table `sources` of a benchmark: how much its build read, and how many queries came of it.

Expectations on it stop a build that lost half of its rows without an error.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pandas as pd

COLUMNS: Final = [
    "source",  # file or folder below data/; empty for what all of them gave, such as queries
    "what",  # of which things: rows, triples, documents, ..., or the queries made of them
    "name",  # a file, relation or subset
    "rows",  # how many
]
CHUNK: Final = 1 << 24  # bytes

CountRow = tuple[str, str, str, int]


def table(rows: Iterable[CountRow]) -> pd.DataFrame:
    """Return the table of these counts."""
    return pd.DataFrame(list(rows), columns=COLUMNS).astype({"rows": "int64"})


def by_name(source: str, what: str, names: Iterable[str]) -> list[CountRow]:
    """Count how often each name occurs, in the order of their first occurrence.

    >>> by_name("umls", "triples", ["may_treat", "may_treat"])
    [('umls', 'triples', 'may_treat', 2)]
    """
    return [(source, what, name, count) for name, count in Counter(names).items()]


def by_rule(dropped: Counter[str]) -> pd.DataFrame:
    """Return the note `dropped`: how many things each rule left out, if any.

    >>> by_rule(Counter({"no mention": 2, "no mask": 0})).to_numpy().tolist()
    [['no mention', 2]]
    """
    rows = [(rule, count) for rule, count in sorted(dropped.items()) if count]
    return pd.DataFrame(rows, columns=["rule", "count"])


def lines(data: Path, *sources: str) -> list[CountRow]:
    """Count the lines of each of these files."""
    return [(source, "rows", Path(source).name, _lines(data / source)) for source in sources]


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(CHUNK), b""))
