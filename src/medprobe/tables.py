"""The three tables that cross stages: queries, candidates, predictions. All of it is parquet.

A *query* is a prompt with one slot `[Y]`, and its answers. A *candidate* is a name a method may
rank. A *prediction* is one name at one rank for one query; every metric is computed from these.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.errors import BadInput
from medprobe.files import replacing

SLOT: Final = "[Y]"

QUERY_COLUMNS: Final = [
    "query_id",
    "benchmark",
    "relation",
    "subject",
    "subject_id",
    "prompt",  # text with exactly one [Y]
    "answers",  # list of names; aliases of an answer stand beside it under the same id
    "answer_ids",  # list, aligned with answers
    "subset",  # e.g. full, hard: a query of two subsets has a row, and an id, in each
]
CANDIDATE_COLUMNS: Final = ["name", "id", "type", "subset"]
DISTRACTOR: Final = "distractor"  # type of candidates that are none of the benchmark's own
PREDICTION_COLUMNS: Final = [
    "variant",  # which setting of the method, "" where it has one only
    "replicate",  # which seed or sentence set, "" where there is one only; averaged in the scores
    "query_id",
    "rank",  # 1 is best
    "prediction",
    "prediction_id",
    "score",  # higher is better
    "hit",  # is the prediction one of the query's answers?
]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's two tables, as a builder makes them and every later stage reads them.

    `notes` are tables for people, such as what was dropped by which rule: each a CSV file beside.
    `others` are further tables, such as queries to train on: each a parquet file beside.
    """

    queries: pd.DataFrame
    candidates: pd.DataFrame
    notes: dict[str, pd.DataFrame] = field(default_factory=dict)
    others: dict[str, pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Benchmark":
        """Read a benchmark from `outputs/benchmarks/<name>`. Raises BadInput where it is amiss."""
        queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
        return cls(queries, read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS))

    def write(self, folder: Path) -> None:
        """Write all tables and make sure first that every prompt has one slot."""
        check_prompts(self.queries)
        with replacing(folder) as path:
            path.mkdir()
            write_table(self.queries, path / "queries.parquet", QUERY_COLUMNS)
            write_table(self.candidates, path / "candidates.parquet", CANDIDATE_COLUMNS)
            for name, table in self.others.items():
                write_table(table, path / f"{name}.parquet", [])
            for name, note in self.notes.items():
                note.to_csv(path / f"{name}.csv", index=False, lineterminator="\n")

    def subsets(self) -> list[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """`(subset, its queries, its candidates)` in the order of the query table."""
        return [
            (
                str(name),
                queries.reset_index(drop=True),
                self.candidates[self.candidates["subset"] == name].reset_index(drop=True),
            )
            for name, queries in self.queries.groupby("subset", sort=False)
        ]


def check_prompts(queries: pd.DataFrame) -> None:
    """Raise BadInput for the first prompt without exactly one slot."""
    slots = queries["prompt"].str.count(re.escape(SLOT))
    for row in queries[slots != 1].head(1).itertuples():
        count = int(slots[row.Index])
        raise BadInput(f"query {row.query_id}", f"the prompt has {count} slots {SLOT}, expected 1")


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read a parquet table that must have these columns (it may have more)."""
    if not path.is_file():
        raise BadInput(path, "no such table", "run `dvc repro` to make it")
    table = pd.read_parquet(path)
    missing = [column for column in columns if column not in table]
    if missing:
        raise BadInput(path, f"no column {', '.join(missing)}", "run `dvc repro` to make it anew")
    return table


def write_table(table: pd.DataFrame, path: Path, columns: list[str]) -> None:
    """Write a table, `columns` first and in this order; the file appears whole or not at all."""
    rest = [column for column in table if column not in columns]
    with replacing(path) as scratch:
        table[[*columns, *rest]].to_parquet(scratch, index=False)


def candidate_hash(names: Iterable[str]) -> str:
    """SHA-256 of a candidate set, whatever its order: two results compare like with like where
    their hashes agree.

    >>> candidate_hash(["b", "a"]) == candidate_hash(["a", "b", "b"])
    True
    """
    text = "\n".join(sorted(set(names)))
    return hashlib.sha256(text.encode()).hexdigest()
