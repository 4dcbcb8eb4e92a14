"""Rows of other people's files: text of bounded length, one schema per format, one kind of error.

A reader declares a `Record` with a type per field and reads rows by `read_json_records` or
`read_csv_records`. A reader of another format splits its rows itself and calls `validate`.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError, from_json

from medprobe.core.errors import BadInput, nearest, quote
from medprobe.core.tables import ORIGINAL

LONGEST: Final = 64_000_000  # bytes of a line
LONGEST_FIELD: Final = 4_000_000  # characters of a table's field: more is a quote never closed
LONGEST_NAME: Final = 10_000  # characters
KINDS: Final[dict[type, str]] = {
    **{type(None): "null", bool: "true or false", int: "a number", float: "a number"},
    **{list: "a list", dict: "an object"},
}
LONGEST_QUOTATION: Final = 80  # characters of a wrong field that an error shows
DOWNLOAD_AGAIN: Final = "download the file again"
INVISIBLE: Final = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*")
CUI: Final = re.compile(r"C\d{7}")


def _kind(expected: str, holds: Callable[[str], object]) -> AfterValidator:
    def check(value: str) -> str:
        if holds(value):
            return value
        raise PydanticCustomError("kind", "{expected}", {"expected": expected})

    return AfterValidator(check)


def _is_visible(text: str) -> bool:
    return not INVISIBLE.fullmatch(text) and "\0" not in text and len(text) <= LONGEST_NAME


def _has_both_slots(text: str) -> bool:
    return text.count("[X]") == text.count("[Y]") == 1


# The types of field. Labels are a `Literal`, texts of any length and content `str`.
Name = Annotated[str, _kind(f"visible text of at most {LONGEST_NAME:,} characters", _is_visible)]
Cui = Annotated[str, _kind("C and 7 digits", CUI.fullmatch)]
Template = Annotated[str, _kind("one [X] and one [Y]", _has_both_slots)]
Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]  # also as a text
Count = Annotated[int, Field(strict=False, ge=0, lt=10**9)]  # also as a text


class Record(BaseModel):
    """The schema of a row. A field of the wrong type is an error; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class RelationTemplate(Record):
    """A line of templates. The wording names it where a relation has several."""

    relation: Name
    template: Template
    wording: Name | None = None


RecordType = TypeVar("RecordType", bound=BaseModel)


def validate(
    where: str, row: Any, schema: type[RecordType], remedy: str = DOWNLOAD_AGAIN
) -> RecordType:
    """Check a row against its schema.

    Args:
        where: file and line, for the error.
        row: the fields by name.
        schema: the record's class.
        remedy: what the user can do, for the error.

    Returns:
        The record.

    Raises:
        BadInput: a field is missing or wrong. The error has the field, its value and what was
            expected; for a value that is not text, or is long, only its type or length.
    """
    try:
        return schema.model_validate(row)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    field, value = ".".join(str(part) for part in detail["loc"]), detail["input"]
    expected = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if detail["type"] == "missing":
        raise BadInput(where, f"no field '{field}'", remedy)
    if not field:
        raise BadInput(where, expected, remedy)
    description = KINDS.get(type(value), "of another type")
    if isinstance(value, str):
        labels = re.findall(r"'(\w+)'", expected) if detail["type"] == "literal_error" else []
        quotation = quote(value) + nearest(value, labels) if len(value) <= LONGEST_QUOTATION else ""
        description = quotation or (f"a text of {len(value):,} characters" if value else "empty")
    raise BadInput(where, f"{field} is {description}, expected {expected}", remedy)


def read_lines(path: Path, get: str) -> Iterator[tuple[str, str]]:
    """Read a text file, or a `.gz` of one, line by line.

    Args:
        path: the file.
        get: how to get the file, for the error.

    Yields:
        `(file and line, text)`; the text ends in LF, also where the file has CRLF.

    Raises:
        BadInput: the file is missing or is not gzip; a line is not UTF-8 (with the byte, counted
            from 0 in the unzipped file) or is longer than LONGEST.
    """
    if not path.is_file():
        raise BadInput(path, "no such file", get)
    number = offset = 0
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as stream:
            for line in iter(lambda: stream.readline(LONGEST + 1), b""):
                number += 1
                where = f"{path}, line {number}"
                if len(line) > LONGEST:
                    raise BadInput(where, f"longer than {LONGEST:,} bytes", DOWNLOAD_AGAIN)
                text = line.decode("utf-8").replace("\r\n", "\n")
                yield where, text.removeprefix("\ufeff") if number == 1 else text
                offset += len(line)
    except UnicodeDecodeError as error:
        raise BadInput(
            where, f"not UTF-8 at byte {offset + error.start}", "save it as UTF-8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(
            f"{path}, after line {number}", f"broken gzip ({error})", DOWNLOAD_AGAIN
        ) from None


def read_text(path: Path, get: str) -> str:
    """Read a whole text file. Raises BadInput as `read_lines`."""
    return "".join(line for _, line in read_lines(path, get))


def read_objects(path: Path, get: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a JSONL file; blank lines are skipped.

    Yields:
        `(file and line, object)`.

    Raises:
        BadInput: as `read_lines`; the file has no object; a line is not a JSON object: broken,
            nested two hundred deep, with half a surrogate pair, or with NaN. No message contains
            text of the file.
    """
    empty = True
    for where, line in read_lines(path, get):
        if line.strip():
            empty = False
            yield where, parse_json_object(where, line)
    if empty:
        raise BadInput(path, "empty", DOWNLOAD_AGAIN)


def parse_json_object(where: object, content: str) -> dict[str, Any]:
    """Parse a JSON object. Raises BadInput as `read_objects`."""
    value = parse_json(where, content)
    if not isinstance(value, dict):
        raise BadInput(where, "not a JSON object", DOWNLOAD_AGAIN)
    return value


def parse_json(where: object, content: str) -> Any:
    """Parse a JSON value. Raises BadInput as `read_objects`."""
    try:
        return from_json(content.strip(), allow_inf_nan=False)
    except ValueError as error:
        problem = str(error).replace(" at line 1 column ", ", column ")
        raise BadInput(where, f"not JSON: {problem}", DOWNLOAD_AGAIN) from None


def read_csv_rows(
    path: Path,
    get: str,
    *,
    needed: Iterable[str] = (),
    delimiter: str = ",",
    remedy: str = DOWNLOAD_AGAIN,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a CSV file whose first row has the column names; blank rows are skipped.

    Args:
        path: the file, or a `.gz` of it.
        get: how to get the file, for the error.
        needed: columns that it must have.
        delimiter: what separates fields.
        remedy: how to correct a row, for the error.

    Yields:
        `(file and first line, fields by name)`.

    Raises:
        BadInput: as `read_lines`; the file is empty; a column is missing or occurs twice; a quote
            is broken; a row has another length than the first; a field is longer than
            LONGEST_FIELD. No message contains text of the file.
    """
    csv.field_size_limit(LONGEST_FIELD)
    row_places: list[str] = []  # file and line of each line of the current row

    def note_places() -> Iterator[str]:
        for where, line in read_lines(path, get):
            row_places.append(where)
            yield line

    names: list[str] = []
    try:
        for row in csv.reader(note_places(), delimiter=delimiter, strict=True):
            where = row_places[0]
            row_places.clear()
            if not row:
                continue
            if names and len(row) != len(names):
                raise BadInput(where, f"{len(row)} fields, expected {len(names)}", remedy)
            if names:
                yield where, dict(zip(names, row, strict=True))
            else:
                names = _names(where, row, needed, remedy)
    except csv.Error as error:
        raise BadInput(row_places[0], f"not CSV: {error}", remedy) from None
    if not names:
        raise BadInput(path, "empty", remedy)


def _names(where: str, row: list[str], needed: Iterable[str], remedy: str) -> list[str]:
    names = [name.strip() for name in row]
    for name in needed:
        if name not in names:
            raise BadInput(where, f"no column '{name}'{nearest(name, names)}", remedy)
    if len(set(filter(None, names))) < len(list(filter(None, names))):
        raise BadInput(where, "two columns have the same name", remedy)
    return names


def read_json_records(
    path: Path, schema: type[RecordType], get: str
) -> Iterator[tuple[str, RecordType]]:
    """Yield `(file and line, record)` of JSONL; errors as of `read_objects` and `validate`."""
    for where, row in read_objects(path, get):
        yield where, validate(where, row, schema)


def read_wordings(
    path: Path, get: str, originals: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Read the templates of each relation from JSONL, by wording.

    The first template of a relation is its own, named `original`, unless `originals` has one.
    Others without a name are named by their places: `2`, `3`, and so on. A repeated template counts
    once.

    Raises:
        BadInput: as `read_json_records`; a relation has two templates of one wording.
    """
    templates: dict[str, dict[str, str]] = {
        relation: {ORIGINAL: template} for relation, template in (originals or {}).items()
    }
    for where, row in read_json_records(path, RelationTemplate, get):
        wordings = templates.setdefault(row.relation, {})
        if row.template in wordings.values():
            continue
        wording = row.wording or str(len(wordings) + 1) if wordings else ORIGINAL
        if wording in wordings:
            problem = f"relation {row.relation} already has a template of the wording {wording}"
            raise BadInput(where, problem, "rename one of them")
        wordings[wording] = row.template
    return templates


def read_csv_records(
    path: Path, schema: type[RecordType], get: str, remedy: str = DOWNLOAD_AGAIN
) -> Iterator[tuple[str, RecordType]]:
    """Yield `(file and first line, record)` of CSV; errors as of `read_csv_rows`, `validate`."""
    needed = [name for name, field in schema.model_fields.items() if field.is_required()]
    for where, row in read_csv_rows(path, get, needed=needed, remedy=remedy):
        yield where, validate(where, row, schema, remedy)
