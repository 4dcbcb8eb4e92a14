"""Expectation suites: `expectations/<benchmark>.<table>.json`.

    {"row_id": ["query_id"],
     "expectations": [{"type": "expect_column_values_to_be_unique",
                       "kwargs": {"column": "query_id"}, "notes": "why, in a few words"}]}

`row_id` are the columns that name a row. Great Expectations drops what it does not know or cannot
read without a word, so each expectation is made here, and what cannot be made is an error.
"""

import importlib
import json
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from medprobe import quality
from medprobe.errors import BadInput, nearest
from medprobe.params import Section, section


class Listed(Section):
    """An expectation as a suite's file lists it."""

    type: str
    kwargs: dict[str, Any] = Field({})
    notes: str = ""


class SuiteFile(Section):
    """A suite's file."""

    row_id: list[str] = Field(min_length=1)
    expectations: list[Listed] = Field(min_length=1)


@dataclass(frozen=True)
class Suite:
    """A suite for one table: `expectations` are Great Expectations' own objects, in the order of
    the file's `listed` ones."""

    table: str
    row_id: list[str]
    listed: list[Listed]
    expectations: list[Any]


def load(folder: Path, benchmark: str) -> list[Suite]:
    """All suites of a benchmark, by table. Raises BadInput where one of the two that every
    benchmark has is missing, or anything in a file is unknown or malformed."""
    for table in ["queries", "candidates"]:
        if not (path := folder / f"{benchmark}.{table}.json").is_file():
            raise BadInput(path, "no such suite", "write what is expected of this table")
    for module in pkgutil.iter_modules(quality.__path__):
        importlib.import_module(f"{quality.__name__}.{module.name}")
    return [_read(path) for path in sorted(folder.glob(f"{benchmark}.*.json"))]


def _read(path: Path) -> Suite:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(path, f"not JSON: {error}") from None
    file = section(SuiteFile, content, path)
    made = [
        _make(f"{path}, expectation {number}", listed)
        for number, listed in enumerate(file.expectations, 1)
    ]
    table = path.name.split(".")[1]
    return Suite(table, file.row_id, file.expectations, made)


def _make(where: str, listed: Listed) -> Any:
    from great_expectations.compatibility.pydantic import ValidationError
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations import registry

    try:
        expectation = registry.get_expectation_impl(listed.type)
    except ExpectationNotFoundError:
        known = registry.list_registered_expectation_implementations()
        problem = f"unknown expectation {listed.type}{nearest(listed.type, known)}"
        raise BadInput(where, problem) from None
    try:
        return expectation(**listed.kwargs)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise BadInput(where, f"{listed.type}: {key}: {first['msg']}") from None
