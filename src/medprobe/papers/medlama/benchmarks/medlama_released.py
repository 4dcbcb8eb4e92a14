"""MedLAMA as released: the full and the hard set of the relations of its imported files.

`medprobe import medlama FOLDER` checks the released files and brings them into `data/medlama`.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Self

import pandas as pd
from pydantic import BeforeValidator, model_validator

from medprobe.benchmarks import Benchmark
from medprobe.core.errors import BadInput, quote
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama.benchmarks import medlama
from medprobe.papers.medlama.benchmarks.medlama.queries import MedlamaSettings, tables
from medprobe.sources.records import (
    DOWNLOAD_AGAIN,
    Count,
    Name,
    Number,
    Record,
    read_csv_rows,
    validate,
)


def _literal(text: Any) -> Any:
    """A list in Python's notation."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


Names = Annotated[list[Name], BeforeValidator(_literal)]


class ReleasedQuery(Record):
    """A row of a released file; its joined fields and lengths match its lists."""

    head_cui: Name
    head_name: Name
    rel: Name
    tail_cuis_list: Names
    tail_names_list: Names
    tail_names: str
    tail_cuis: str
    tail_cuis_len: Count
    tail_names_len: Count
    avg_match: Number
    avg_rouge_l: Number

    @property
    def answers(self) -> dict[str, str]:
        """The CUI last seen of each distinct name, in order of appearance."""
        return dict(zip(self.tail_names_list, self.tail_cuis_list, strict=True))

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        ids, names = len(self.tail_cuis_list), len(self.tail_names_list)
        if ids != names:
            raise ValueError(f"{ids} tail_cuis_list but {names} tail_names_list")
        expected = {
            "tail_names": JOIN.join(self.answers),
            "tail_cuis": JOIN.join(self.answers.values()),
            "tail_names_len": len(self.answers),
            "tail_cuis_len": len(self.answers),
        }
        for column, value in expected.items():
            if getattr(self, column) != value:
                raise ValueError(f"{column} does not match the lists")
        return self


COLUMNS: Final = list(ReleasedQuery.model_fields)
GET: Final = "put MedLAMA's released files there"
JOIN: Final = " || "
FILE_NAME: Final = re.compile(r"(?P<relation>.+?)_(?P<rows>\d+)(?P<hard>_hard)?\.csv")


def find_released_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Find the full and the hard file of each relation, by its name. Raises BadInput for none."""
    if not folder.is_dir():
        raise BadInput(folder, "no such folder", "give the folder of MedLAMA's released files")
    full: dict[str, Path] = {}
    hard: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if match := FILE_NAME.fullmatch(path.name):
            files, relation = hard if match["hard"] else full, match["relation"]
            if relation in files:
                problem = f"it and {files[relation].name} are both of {relation}"
                raise BadInput(path, problem, "keep the files of one release")
            files[relation] = path
    if not full:
        raise BadInput(folder, "no file <relation>_<number of rows>.csv", "give another folder")
    return full, hard


def read_queries(path: Path, relation: str) -> pd.DataFrame:
    """Read a released file as queries; its joined fields and lengths are checked."""
    queries = []
    for where, fields in _rows(path):
        row = validate(where, fields, ReleasedQuery)
        if row.rel != relation:
            raise BadInput(where, f"rel is {quote(row.rel)}, expected {relation!r}", DOWNLOAD_AGAIN)
        queries.append(
            {
                "relation": relation,
                "subject_id": row.head_cui,
                "subject": row.head_name,
                "answers": list(row.answers),
                "answer_ids": list(row.answers.values()),
                "avg_match": row.avg_match,
                "avg_rouge_l": row.avg_rouge_l,
                "place": where,
            }
        )
    return pd.DataFrame(queries)


def _rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    numbered = list(read_csv_rows(path, GET, needed=COLUMNS))
    match = FILE_NAME.fullmatch(path.name)
    if match and int(match["rows"]) != len(numbered):
        problem = f"{len(numbered)} rows, expected {match['rows']} according to the file's name"
        raise BadInput(path, problem, DOWNLOAD_AGAIN)
    return numbered


METADATA = replace(
    medlama.METADATA,
    description="biomedical facts of the UMLS as prompts with one slot, from the released files",
    sources=("medlama",),
)


def build(data: Path, settings: MedlamaSettings, seed: int) -> BenchmarkTables:
    """Build the queries of the released files, in their order.

    They are samples already, and drawn from only where fewer are asked for.
    """
    folder = data / "medlama"
    full, _ = find_released_files(folder)
    available = [relation for relation in settings.relations if relation in full]
    if not available:
        raise BadInput(folder, "none of the relations of the setting `relations` is here")
    parts = [read_queries(full[relation], relation) for relation in available]
    read = [
        ("medlama", "rows", full[name].name, len(part))
        for name, part in zip(available, parts, strict=True)
    ]
    queries = pd.concat(parts, ignore_index=True)
    return tables(queries, settings, seed, read, keep_order=True)


BENCHMARK = Benchmark(
    METADATA, MedlamaSettings, build, files=lambda _: ["medlama/*_*.csv"], tables=()
)
