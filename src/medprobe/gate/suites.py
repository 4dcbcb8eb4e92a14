"""Expectation suites: `expectations/<builder>/<table>.json`, and `expectations/sentences/`.

    {"row_id": ["query_id"],
     "expectations": [{"type": "expect_column_values_to_be_unique",
                       "kwargs": {"column": "query_id"},
                       "severity": "warning",
                       "notes": "why, in a few words"}]}

`row_id` are columns that name a row without showing text of the data. An expectation of severity
`critical`, the default, stops the pipeline; a `warning` or `info` is only shown. An argument
`{"$PARAMETER": "negatives"}` is the benchmark's setting of that name in `params.yaml`; a `default`
next to it holds for builders without that setting. A suite of `{"like": "table/queries.json"}` has
that suite's expectations before its own. Great Expectations silently drops expectations that it
does not know or cannot read. So each expectation is made here, and one that cannot be made is an
error.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from medprobe.core.errors import BadInput, nearest
from medprobe.core.plugins import Plugin, find_plugins, load_module
from medprobe.core.settings import Section, parse_section


class SuiteEntry(Section):
    """An expectation in a suite's file."""

    type: str
    kwargs: dict[str, Any] = Field({})
    severity: Literal["critical", "warning", "info"] = "critical"
    notes: str = ""


class SuiteFile(Section):
    """A suite's file."""

    like: str = ""  # another suite, below expectations/
    row_id: list[str] = Field([])
    expectations: list[SuiteEntry] = Field([])


@dataclass(frozen=True)
class Suite:
    """A suite for one table.

    `expectations` are Great Expectations' objects, in the order of `entries`: the file's entries
    with their parameters resolved.
    """

    table: str
    row_id: list[str]
    entries: list[SuiteEntry]
    expectations: list[Any]


def load(folder: Path, needed: Iterable[str], settings: Mapping[str, Any]) -> list[Suite]:
    """Load all suites of a folder, by table."""
    for table in needed:
        if not (path := folder / f"{table}.json").is_file():
            raise BadInput(path, "no such suite", "write what is expected of this table")
    plugins = _plugins()
    return [_read(path, settings, plugins) for path in sorted(folder.glob("[!.]*.json"))]


def folders(folder: Path) -> list[Path]:
    """Return the folders that a folder's suites are read from.

    They are the folder itself, and those of the suites that it extends by `like`.
    """
    files = [_section(path) for path in folder.glob("[!.]*.json")]
    like = {folder.parent / Path(file.like).parent for file in files if file.like}
    return [folder, *sorted(like - {folder})]


def _plugins() -> dict[str, Plugin]:
    """The plugins of expectations, by the names that suites use."""
    return {
        name: plugin
        for plugin in find_plugins("expectations").values()
        for name in re.findall(r"^def (expect_\w+)\(", plugin.path.read_text("utf-8"), re.MULTILINE)
    }


def _section(path: Path) -> SuiteFile:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(path, f"{error.strerror}") from None
    except ValueError as error:
        raise BadInput(path, f"not JSON: {error}") from None
    return parse_section(SuiteFile, content, path)


def _read(path: Path, settings: Mapping[str, Any], plugins: Mapping[str, Plugin]) -> Suite:
    file = _section(path)
    suite = Suite(path.stem, file.row_id, [], [])
    if file.like:
        suite = replace(_read(path.parents[1] / file.like, settings, plugins), table=path.stem)
    for number, entry in enumerate(file.expectations, 1):
        where = f"{path}, expectation {number}"
        kwargs = {
            key: _resolve_parameter(value, settings, where) for key, value in entry.kwargs.items()
        }
        resolved = entry.model_copy(update={"kwargs": kwargs})
        suite.entries.append(resolved)
        suite.expectations.append(_make(where, resolved, plugins))
    if not suite.entries:
        raise BadInput(path, "no expectations", "write what is expected of this table")
    return suite


def _resolve_parameter(value: Any, settings: Mapping[str, Any], where: str) -> Any:
    """An argument, or the setting that it names; for a map, its keys."""
    if not isinstance(value, dict) or "$PARAMETER" not in value:
        return value
    if (name := str(value["$PARAMETER"])) not in settings:
        if "default" in value:
            return value["default"]
        raise BadInput(where, f"no setting '{name}'{nearest(name, [*settings])}")
    value = settings[name]
    return list(value) if isinstance(value, (dict, tuple)) else value


def _make(where: str, entry: SuiteEntry, plugins: Mapping[str, Plugin]) -> Any:
    """Make Great Expectations' object of a suite's entry."""
    from pydantic.v1 import ValidationError  # of which Great Expectations' classes are

    if entry.type in plugins:
        load_module(plugins[entry.type])  # which registers its expectations
    classes = _expectations()
    if entry.type not in classes:
        similar = nearest(entry.type, [*classes, *plugins])
        raise BadInput(where, f"unknown expectation {entry.type}{similar}")
    try:
        return classes[entry.type](**{**entry.kwargs, "severity": entry.severity})
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(str(part) for part in detail["loc"])
        raise BadInput(where, f"{entry.type}: {key}: {detail['msg']}") from None


def _expectations() -> dict[str, Any]:
    """All expectations by the names that suites use: Great Expectations' and our own."""
    from great_expectations import expectations

    from medprobe.gate import checks

    classes = [value for name, value in vars(expectations).items() if name.startswith("Expect")]
    named = {kind.expectation_type: kind for kind in classes if kind.expectation_type}
    return named | checks.expectations
