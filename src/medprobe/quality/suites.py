"""Expectation suites: `expectations/<builder>/<table>.json`, and `expectations/sentences/`.

    {"row_id": ["query_id"],
     "expectations": [{"type": "expect_column_values_to_be_unique",
                       "kwargs": {"column": "query_id"},
                       "severity": "warning",
                       "notes": "why, in a few words"}]}

`row_id` are columns that name a row without showing text of the data. An expectation of severity
`critical`, the default, stops the pipeline; a `warning` or `info` is only shown. An argument
`{"$PARAMETER": "negatives"}` is the benchmark's setting of that name in `params.yaml`. A suite of
`{"like": "medlama/queries.json"}` has that suite's expectations before its own. Great Expectations
drops what it does not know or cannot read without a word, so each expectation is made here, and
what cannot be made is an error.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from medprobe import quality
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Section, parse_section


class Listed(Section):
    """An expectation as a suite's file lists it."""

    type: str
    kwargs: dict[str, Any] = Field({})
    severity: Literal["critical", "warning", "info"] = "critical"
    notes: str = ""


class SuiteFile(Section):
    """A suite's file."""

    like: str = ""  # another suite, below expectations/
    row_id: list[str] = Field([])
    expectations: list[Listed] = Field([])


@dataclass(frozen=True)
class Suite:
    """A suite for one table: `expectations` are Great Expectations' own objects, in the order of
    the file's `listed` ones, whose parameters are filled in."""

    table: str
    row_id: list[str]
    listed: list[Listed]
    expectations: list[Any]


def load(folder: Path, needed: Iterable[str], settings: Mapping[str, Any]) -> list[Suite]:
    """All suites of a folder, by table. Raises BadInput where one of the `needed` tables has none,
    or anything in a file is unknown or malformed."""
    for table in needed:
        if not (path := folder / f"{table}.json").is_file():
            raise BadInput(path, "no such suite", "write what is expected of this table")
    quality.register()
    return [_read(path, settings) for path in sorted(folder.glob("*.json"))]


def folders(folder: Path) -> list[Path]:
    """The folders that a folder's suites are read from: itself, and those that they are like."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    like = {folder.parent / Path(file["like"]).parent for file in files if "like" in file}
    return [folder, *sorted(like - {folder})]


def _read(path: Path, settings: Mapping[str, Any]) -> Suite:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(path, f"{error.strerror}") from None
    except ValueError as error:
        raise BadInput(path, f"not JSON: {error}") from None
    file = parse_section(SuiteFile, content, path)
    suite = Suite(path.stem, file.row_id, [], [])
    if file.like:
        suite = replace(_read(path.parents[1] / file.like, settings), table=path.stem)
    for number, one in enumerate(file.expectations, 1):
        where = f"{path}, expectation {number}"
        kwargs = {key: _filled(value, settings, where) for key, value in one.kwargs.items()}
        listed = one.model_copy(update={"kwargs": kwargs})
        suite.listed.append(listed)
        suite.expectations.append(_make(where, listed))
    if not suite.listed:
        raise BadInput(path, "expectations: none", "write what is expected of this table")
    return suite


def _filled(value: Any, settings: Mapping[str, Any], where: str) -> Any:
    """An argument, or the setting that it names; of a map its keys."""
    if not isinstance(value, dict) or "$PARAMETER" not in value:
        return value
    if (name := str(value["$PARAMETER"])) not in settings:
        raise BadInput(where, f"no setting '{name}'{nearest(name, [*settings])}")
    value = settings[name]
    return list(value) if isinstance(value, (dict, tuple)) else value


def _make(where: str, listed: Listed) -> Any:
    """Great Expectations' object of what a suite lists."""
    from pydantic.v1 import ValidationError  # of which Great Expectations' classes are

    known = _expectations()
    if listed.type not in known:
        raise BadInput(where, f"unknown expectation {listed.type}{nearest(listed.type, [*known])}")
    try:
        return known[listed.type](**{**listed.kwargs, "severity": listed.severity})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise BadInput(where, f"{listed.type}: {key}: {first['msg']}") from None


def _expectations() -> dict[str, Any]:
    """All expectations by the names that suites use: Great Expectations' and our own."""
    from great_expectations import expectations

    from medprobe.quality import checks

    classes = [each for name, each in vars(expectations).items() if name.startswith("Expect")]
    known = {each.expectation_type: each for each in classes if each.expectation_type}
    return known | checks.expectations
