"""Rows of other people's files: text of bounded length, one schema per format, one kind of error.

A reader declares a `Record` with a type per field and reads rows by `read_json_records` or
`read_csv_records`. A reader of another format splits its rows itself and calls `validate`.
"""

import ast
import csv
import difflib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic_core import PydanticCustomError, from_json

from medprobe.core.errors import BadInput, nearest, quote, quoting
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
NEAR: Final = 0.8  # similarity of an unknown field to a known one that it is likely meant to be
SLOTS: Final = "slots"  # the kind of pydantic's error on a template
SEPARATORS: Final = ("|", ";")  # of a list in one text, the first one that occurs
SEPARATED_BY: Final = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}
OTHER_FORM: Final = re.compile(r"\s*([{<]|\[\s*(\{|$))")  # what JSON and HTML begin with
JOINED_QUOTES: Final = re.compile(r"""['"]\s+['"]""")  # which Python reads as one text
TRUE: Final = ("1", "true", "t", "yes", "y")
FALSE: Final = ("", "0", "false", "f", "no", "n", "nan", "none", "null")


def _kind(expected: str, holds: Callable[[str], object]) -> AfterValidator:
    def check(value: str) -> str:
        if holds(value):
            return value
        raise PydanticCustomError("kind", "{expected}", {"expected": expected})

    return AfterValidator(check)


def _is_visible(text: str) -> bool:
    return not INVISIBLE.fullmatch(text) and "\0" not in text and len(text) <= LONGEST_NAME


def _check_slots(text: str) -> str:
    for slot in ("[X]", "[Y]"):
        if (count := text.count(slot)) != 1:
            raise PydanticCustomError(SLOTS, f"has {count or 'no'} {slot}")
    return text


def split_list(value: object) -> object:
    """Return the texts of a list that a table holds as one text; another value as it is.

    The text is a list in the notation of JSON or Python, as pandas writes one, or texts between
    `|`, or between `;` if it has no `|`.

    >>> split_list("a; b"), split_list("a;1|b"), split_list("['a', 'b']")
    (['a', 'b'], ['a;1', 'b'], ['a', 'b'])
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] in ("[", "(") and text[-1:] in ("]", ")"):
        try:
            items = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            items = None
        is_list = isinstance(items, list | tuple) and all(isinstance(x, str) for x in items)
        if is_list and not JOINED_QUOTES.search(text):
            return [*filter(str.strip, items)]
        if text[0] == "[":
            raise ValueError("names between | or a list of texts, such as ['a', 'b']")
    separator = next((mark for mark in SEPARATORS if mark in text), SEPARATORS[0])
    return [item for part in text.split(separator) if (item := part.strip())]


def _flag(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.strip().casefold().removesuffix(".0")
    if text in (*TRUE, *FALSE):
        return text in TRUE
    raise ValueError("1 or 0")


# The types of field. Labels are a `Literal`, texts of any length and content `str`.
Name = Annotated[str, _kind(f"visible text of at most {LONGEST_NAME:,} characters", _is_visible)]
Cui = Annotated[str, _kind("C and 7 digits", CUI.fullmatch)]
Template = Annotated[str, AfterValidator(_check_slots)]
Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]  # also as a text
Count = Annotated[int, Field(strict=False, ge=0, lt=10**9)]  # also as a text
Flag = Annotated[bool, BeforeValidator(_flag)]  # as a program writes it: 1, 1.0, True, t; "" is no
NameList = Annotated[tuple[str, ...], BeforeValidator(split_list)]


class Record(BaseModel):
    """The schema of a row.

    A field of the wrong type is an error. Other fields are ignored, unless one is near to a field
    that the row lacks (`check_fields`).
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class RelationTemplate(Record):
    """A line of templates. The wording names it where a relation has several."""

    relation: Name
    template: Template
    wording: Name | None = None


RecordType = TypeVar("RecordType", bound=BaseModel)


MOST_NAMED: Final = 8  # fields that an error lists


def validate(
    where: str, row: Any, schema: type[RecordType], remedy: str = DOWNLOAD_AGAIN
) -> RecordType:
    """Check a row against its schema."""
    try:
        return schema.model_validate(row)
    except ValidationError as error:
        details = error.errors(include_url=False)
        detail = details[0]
    field, value = ".".join(str(part) for part in detail["loc"]), detail["input"]
    expected = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if detail["type"] == "missing":
        names = row if isinstance(row, dict) else ()
        others = [str(name) for name in names if name not in schema.model_fields]
        similar = hint = nearest(field, others)
        are_names = 0 < len(others) <= MOST_NAMED and all(map(str.isidentifier, others))
        if not hint and are_names and quoting.get():  # without a header they are the first row
            hint = f", but {', '.join(others)}"
        required = [name for name, one in schema.model_fields.items() if one.is_required()]
        missing = [one for one in details if one["type"] == "missing"]
        is_json = any(isinstance(row.get(name), dict) for name in others)  # which has no header
        if not is_json and len(missing) == len(required) > 1 and not similar:
            hint += " (is the header missing?)"
        raise BadInput(where, f"no field '{field}'{hint}", remedy)
    if detail["type"] == SLOTS:
        remedy = "write [X] once, for the subject, and [Y] once, for the answer"
        raise BadInput(where, f"{field} {expected}", remedy)
    if not field:
        is_other = detail["type"] == "model_type"
        raise BadInput(where, "not an object" if is_other else expected, remedy)
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        raise BadInput(where, f"{field} is empty", remedy)
    description = KINDS.get(type(value), "of another type")
    if isinstance(value, str):
        labels = re.findall(r"'(\w+)'", expected) if detail["type"] == "literal_error" else []
        quotation = quote(value) + nearest(value, labels) if len(value) <= LONGEST_QUOTATION else ""
        description = quotation or (f"a text of {len(value):,} characters" if value else "empty")
    raise BadInput(where, f"{field} is {description}, expected {expected}", remedy)


def check_fields(where: str, fields: Collection[str], schema: type[BaseModel]) -> None:
    """Refuse two fields that are one, and an unknown one near to an optional one that is not there.

    It would be ignored, and what it holds lost without a word.
    """
    if twice := _find_twice(frozenset(fields), schema):
        raise BadInput(where, f"'{twice[0]}' and '{twice[1]}' are one field", "leave one of them")
    if mistaken := _find_mistaken(frozenset(fields), schema):
        unknown, meant = mistaken
        problem = f"unknown field '{unknown}' (did you mean '{meant}'?)"
        raise BadInput(where, problem, "rename it, or leave it out")


@cache
def find_unknown(fields: frozenset[str], schema: type[BaseModel]) -> tuple[str, ...]:
    """Return the fields that a schema does not read, sorted."""
    names = [_spellings(name, field) for name, field in schema.model_fields.items()]
    return tuple(sorted(fields.difference(*names)))


@cache
def _find_twice(fields: frozenset[str], schema: type[BaseModel]) -> list[str]:
    """Return two fields that a schema reads as one, or nothing."""
    names = (_spellings(name, field) for name, field in schema.model_fields.items())
    present = ([name for name in of_field if name in fields] for of_field in names)
    return next((found for found in present if len(found) > 1), [])


@cache
def _find_mistaken(fields: frozenset[str], schema: type[BaseModel]) -> tuple[str, str] | None:
    spellings = {name: _spellings(name, field) for name, field in schema.model_fields.items()}
    absent = {
        spelling: schema.model_fields[name].is_required()
        for name, names in spellings.items()
        if fields.isdisjoint(names)
        for spelling in names
    }
    for unknown in sorted(fields.difference(*spellings.values()) if absent else ()):
        meant = max(absent, key=lambda name: _similarity(unknown, name))
        if (
            not absent[meant] and _similarity(unknown, meant) >= NEAR
        ):  # `validate` names required ones
            return unknown, meant
    return None


def _spellings(name: str, field: Any) -> list[str]:
    alias = field.validation_alias
    return [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else [name]


def _similarity(field: str, other: str) -> float:
    first, second = (re.sub(r"[\W_]", "", text.casefold()) for text in (field, other))
    return difflib.SequenceMatcher(None, first, second).ratio()


def read_lines(path: Path, get: str) -> Iterator[tuple[str, str]]:
    """Read a text file, or a `.gz` of one, line by line."""
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
    """Read the objects of a JSONL file; blank lines are skipped."""
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
        remedy = "write one object there, or download the file again"
        raise BadInput(where, "not a JSON object", remedy)
    return value


def parse_json(where: object, content: str) -> Any:
    """Parse a JSON value. Raises BadInput as `read_objects`."""
    try:
        value = from_json(content.strip(), allow_inf_nan=False)
        json.loads(content, object_pairs_hook=_check_keys)  # the other parser takes the last one
    except _RepeatedKeyError:
        problem = "a key of an object occurs twice"
        raise BadInput(where, problem, "leave one of the two") from None
    except ValueError as error:
        problem = str(error).replace(" at line 1 column ", ", column ")
        raise BadInput(where, f"not JSON: {problem}", DOWNLOAD_AGAIN) from None
    return value


class _RepeatedKeyError(Exception):
    """A key of a JSON object occurs twice."""


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedKeyError


def read_csv_rows(
    path: Path,
    get: str,
    *,
    needed: Iterable[str] = (),
    delimiter: str = ",",
    remedy: str = DOWNLOAD_AGAIN,
    name_column: Callable[[str], str] = str,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a CSV file whose first row has the column names.

    Rows without any text are skipped, as a spreadsheet saves them below a table. Where a tab
    separates, most programs quote nothing: a quotation mark is then a character, unless the names
    of the columns are quoted, or a field is as a program quotes one that holds quotation marks
    (`_unquote`).
    """
    csv.field_size_limit(LONGEST_FIELD)
    row_places: list[str] = []  # file and line of each line of the current row

    def note_places() -> Iterator[str]:
        for number, (where, line) in enumerate(read_lines(path, get)):
            if number == 0 and OTHER_FORM.match(line):
                raise BadInput(where, "JSON or HTML, not CSV", "save or download it again as CSV")
            row_places.append(where)
            yield line

    names: list[str] = []
    try:
        for row in _split_rows(note_places(), delimiter):
            where = row_places[0]
            row_places.clear()
            if not any(map(str.strip, row)) or (not names and row[0] == "sep="):
                continue
            if names and len(row) != len(names):
                raise BadInput(where, f"{len(row)} fields, expected {len(names)}", remedy)
            if names:
                yield where, dict(zip(names, row, strict=True))
            else:
                names = _names(where, [*map(name_column, row)], needed, remedy, delimiter)
    except csv.Error as error:
        is_open = "unexpected end" in str(error)
        problem = "a quotation mark is never closed" if is_open else str(error)
        raise BadInput(row_places[0], f"not CSV: {problem}", remedy) from None
    if not names:
        raise BadInput(path, "empty, expected a line of column names", "save or download it again")


def _split_rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    if delimiter != "\t":
        yield from csv.reader(lines, delimiter=delimiter, strict=True)
        return
    if not (first := next(lines, "")):
        return
    if first.startswith('"'):
        yield from csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        return
    for line in chain([first], lines):
        yield [_unquote(field) for field in line.rstrip("\n").split(delimiter)]


def _unquote(field: str) -> str:
    """Return the text of a field that is quoted because it holds quotation marks, or the field."""
    content = field[1:-1]
    is_quoted = len(field) > 1 and field[0] == field[-1] == '"' and '""' in content
    if not is_quoted or '"' in content.replace('""', ""):
        return field
    return content.replace('""', '"')


def _names(
    where: str, row: list[str], needed: Iterable[str], remedy: str, delimiter: str
) -> list[str]:
    names = [name.strip() for name in row]
    if "\0" in "".join(names):
        raise BadInput(where, "no text in UTF-8, but in UTF-16", "save it as UTF-8")
    if len(names) == 1 and (
        mark := next((mark for mark in SEPARATED_BY if mark in names[0]), None)
    ):
        right, wrong = SEPARATED_BY[delimiter], SEPARATED_BY[mark]
        raise BadInput(where, "one column", f"separate the fields by {right}, not by {wrong}")
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
        check_fields(where, row.keys(), schema)
        yield where, validate(where, row, schema)


def read_wordings(
    path: Path, get: str, originals: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Read the templates of each relation from JSONL, by wording.

    The first template of a relation is its own, named `original`, unless `originals` has one.
    Others without a name are named by their places: `2`, `3`, and so on. A repeated template counts
    once.
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
    path: Path, schema: type[RecordType], get: str, name_column: Callable[[str], str] = str
) -> Iterator[tuple[str, RecordType]]:
    """Yield `(file and first line, record)` of CSV; errors as of `read_csv_rows`, `validate`."""
    needed = [name for name, field in schema.model_fields.items() if field.is_required()]
    for where, row in read_csv_rows(path, get, needed=needed, name_column=name_column):
        check_fields(where, row.keys(), schema)
        yield where, validate(where, row, schema)
