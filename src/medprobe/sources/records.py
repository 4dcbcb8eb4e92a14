"""Rows of foreign files: read as text of bounded length, held against one schema a format, and
refused in one way.

A reader names a `Record` with a kind a field, and gets it by `json_records` or `csv_records`; what
is neither JSON nor CSV is taken apart by the reader and held against its schema by `checked`.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError, from_json

from medprobe.core.errors import BadInput, nearest, quote

LONGEST: Final = 64_000_000  # bytes of a line
LONGEST_FIELD: Final = 4_000_000  # characters of a table's field: more is a quote never closed
LONGEST_NAME: Final = 10_000  # characters
KINDS: Final[dict[type, str]] = {
    **{type(None): "null", bool: "true or false", int: "a number", float: "a number"},
    **{list: "a list", dict: "an object"},
}
SHOWN: Final = 80  # characters of a wrong field that an error shows
ANEW: Final = "fetch the file anew"
INVISIBLE: Final = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*")
CUI: Final = re.compile(r"C\d{7}")


def _kind(expected: str, holds: Callable[[str], object]) -> AfterValidator:
    def check(value: str) -> str:
        if holds(value):
            return value
        raise PydanticCustomError("kind", "{expected}", {"expected": expected})

    return AfterValidator(check)


def _visible(text: str) -> bool:
    return not INVISIBLE.fullmatch(text) and "\0" not in text and len(text) <= LONGEST_NAME


def _slots(text: str) -> bool:
    return text.count("[X]") == text.count("[Y]") == 1


# The kinds of field. Labels are a `Literal`, texts of any length and content `str`.
Name = Annotated[str, _kind(f"a text that shows, of at most {LONGEST_NAME:,} characters", _visible)]
Cui = Annotated[str, _kind("C and 7 digits", CUI.fullmatch)]
Template = Annotated[str, _kind("one [X] and one [Y]", _slots)]
Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]  # also as a text
Count = Annotated[int, Field(strict=False, ge=0, lt=10**9)]  # also as a text


class Record(BaseModel):
    """The schema of a row: fields of the wrong kind are errors, further ones are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


RecordType = TypeVar("RecordType", bound=BaseModel)


def checked(where: str, row: Any, schema: type[RecordType], remedy: str = ANEW) -> RecordType:
    """A row held against its schema. Raises BadInput with the field, what it is, and what was
    expected; of a field that is no text, or a long one, its type or length only."""
    try:
        return schema.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    field, found = ".".join(str(part) for part in first["loc"]), first["input"]
    expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if first["type"] == "missing":
        raise BadInput(where, f"no field '{field}'", remedy)
    if not field:
        raise BadInput(where, expected, remedy)
    shown = KINDS.get(type(found), "of another kind")
    if isinstance(found, str):
        known = re.findall(r"'(\w+)'", expected) if first["type"] == "literal_error" else []
        short = quote(found) + nearest(found, known) if len(found) <= SHOWN else ""
        shown = short or f"a text of {len(found):,} characters"
    raise BadInput(where, f"{field} is {shown}, expected {expected}", remedy)


def lines(path: Path, get: str) -> Iterator[tuple[str, str]]:
    """`(file and line, text)` for each line of a file, `.gz` too, its end (LF or CRLF) as LF; `get`
    says how to get the file.

    Raises BadInput for a file that is not there or no gzip, and with its line for bytes that are
    not UTF-8 (counted from 0 in the file, unzipped) and for what is longer than LONGEST.
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
                    raise BadInput(where, f"longer than {LONGEST:,} bytes", ANEW)
                text = line.decode("utf-8").replace("\r\n", "\n")
                yield where, text.removeprefix("\ufeff") if number == 1 else text
                offset += len(line)
    except UnicodeDecodeError as error:
        raise BadInput(
            where, f"not UTF-8 at byte {offset + error.start}", "save it as UTF-8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path}, after line {number}", f"broken gzip ({error})", ANEW) from None


def text(path: Path, get: str) -> str:
    """All of a file's text. Raises BadInput as `lines` does."""
    return "".join(line for _, line in lines(path, get))


def objects(path: Path, get: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(file and line, object)` for each line of a JSONL file that is not blank.

    Raises BadInput as `lines` does, for a file without any, and for what is no JSON object: broken,
    nested two hundred deep, with half a surrogate pair, or NaN. No message holds text.
    """
    empty = True
    for where, line in lines(path, get):
        if line.strip():
            empty = False
            yield where, json_object(where, line)
    if empty:
        raise BadInput(path, "empty", ANEW)


def json_object(where: object, content: str) -> dict[str, Any]:
    """A JSON object. Raises BadInput as `objects` does."""
    value = json_value(where, content)
    if not isinstance(value, dict):
        raise BadInput(where, "not a JSON object", ANEW)
    return value


def json_value(where: object, content: str) -> Any:
    """What a text of JSON holds. Raises BadInput as `objects` does."""
    try:
        return from_json(content.strip(), allow_inf_nan=False)
    except ValueError as error:
        problem = str(error).replace(" at line 1 column ", ", column ")
        raise BadInput(where, f"not JSON: {problem}", ANEW) from None


def rows(
    path: Path,
    get: str,
    *,
    needed: Iterable[str] = (),
    delimiter: str = ",",
    remedy: str = ANEW,
) -> Iterator[tuple[str, dict[str, str]]]:
    """`(file and first line, fields by name)` for each row of a table that is not blank; the first
    row holds the names, the `needed` ones among them.

    Raises BadInput as `lines` does, for an empty file, a column that is missing or named twice, a
    broken quote, a row of another length than the first, and a field longer than LONGEST_FIELD. No
    message holds text.
    """
    csv.field_size_limit(LONGEST_FIELD)
    begun: list[str] = []  # where the lines begin of the row that is being read

    def read() -> Iterator[str]:
        for where, line in lines(path, get):
            begun.append(where)
            yield line

    names: list[str] = []
    try:
        for row in csv.reader(read(), delimiter=delimiter, strict=True):
            where = begun[0]
            begun.clear()
            if not row:
                continue
            if names and len(row) != len(names):
                raise BadInput(where, f"{len(row)} fields, expected {len(names)}", remedy)
            if names:
                yield where, dict(zip(names, row, strict=True))
            else:
                names = _names(where, row, needed, remedy)
    except csv.Error as error:
        raise BadInput(begun[0], f"not CSV: {error}", remedy) from None
    if not names:
        raise BadInput(path, "empty", remedy)


def _names(where: str, row: list[str], needed: Iterable[str], remedy: str) -> list[str]:
    names = [name.strip() for name in row]
    for name in needed:
        if name not in names:
            raise BadInput(where, f"no column '{name}'{nearest(name, names)}", remedy)
    if len(set(filter(None, names))) < len(list(filter(None, names))):
        raise BadInput(where, "two columns of one name", remedy)
    return names


def json_records(
    path: Path, schema: type[RecordType], get: str
) -> Iterator[tuple[str, RecordType]]:
    """`(file and line, record)` for each line of JSONL; errors as of `objects`, `checked`."""
    for where, row in objects(path, get):
        yield where, checked(where, row, schema)


def csv_records(
    path: Path, schema: type[RecordType], get: str, remedy: str = ANEW
) -> Iterator[tuple[str, RecordType]]:
    """`(file and first line, record)` for each row of a table; errors as of `rows`, `checked`."""
    needed = [name for name, field in schema.model_fields.items() if field.is_required()]
    for where, row in rows(path, get, needed=needed, remedy=remedy):
        yield where, checked(where, row, schema, remedy)
