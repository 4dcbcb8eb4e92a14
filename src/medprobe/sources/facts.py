"""Facts in a table of one's own, a row a fact: CSV, TSV, JSONL or parquet, or a folder of such
files. The columns' names are ours (`subject, relation, object`), or those of LAMA, BioLAMA and
lm-pub-quiz (`sub_label, predicate_id, obj_label`).
"""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import pandas as pd
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from medprobe.core.errors import BadInput, quoted

Row = tuple[str, dict[str, Any]]  # file and line, and its fields

SEPARATOR: Final = "|"  # between aliases, where a field is one text


def _aliases(value: object) -> object:
    return [name for name in value.split(SEPARATOR) if name] if isinstance(value, str) else value


def _either(*names: str) -> Any:
    return AliasChoices(*names)


class Fact(BaseModel):
    """One row: an object of a relation and subject. `aliases` are the object's other names."""

    model_config = ConfigDict(
        frozen=True, str_strip_whitespace=True, coerce_numbers_to_str=True, extra="ignore"
    )

    subject: str = Field(min_length=1, validation_alias=_either("subject", "sub_label"))
    relation: str = Field(min_length=1, validation_alias=_either("relation", "predicate_id"))
    object: str = Field(min_length=1, validation_alias=_either("object", "obj_label"))
    subject_id: str = Field("", validation_alias=_either("subject_id", "sub_id", "sub_uri"))
    object_id: str = Field("", validation_alias=_either("object_id", "obj_id", "obj_uri"))
    aliases: Annotated[tuple[str, ...], BeforeValidator(_aliases)] = Field(
        (), validation_alias=_either("aliases", "obj_aliases")
    )
    type: str = ""  # of the object
    prompt: str = ""  # with [Y]; where it is empty, the relation's template serves


def read(path: Path) -> Iterator[tuple[str, Fact]]:
    """`(file and line, fact)` in the order of the files' names and rows. In a folder, a row that
    names no relation is of its file's.

    Raises BadInput with file, line and field.
    """
    for file in _files(path):
        for where, row in _rows(file):
            yield where, _fact(where, row if path.is_file() else {"relation": file.stem, **row})


def of_frame(table: pd.DataFrame) -> Iterator[tuple[str, Fact]]:
    """`(row, fact)` of a data frame with the columns of a file of facts, rows counted from 1.

    Raises BadInput with row and field.
    """
    for where, row in _records(table, "facts"):
        yield where, _fact(where, row)


def templates(path: Path) -> dict[str, str]:
    """The template of each relation: rows `relation, template` (or `prompt`) in one of the forms of
    facts; or a `.json` map from relations to `{"templates": [...]}`, as lm-pub-quiz has it, of
    which the first is taken.

    Raises BadInput unless each has one [X] and one [Y], and for a relation with two.
    """
    found: dict[str, str] = {}
    for where, relation, template in _templates(path):
        if template.count("[X]") != 1 or template.count("[Y]") != 1:
            raise BadInput(where, f"template {quoted(template)}", "it needs one [X] and one [Y]")
        if relation in found:
            raise BadInput(where, f"relation {relation} has a template already", "leave one")
        found[relation] = template
    return found


def _fact(where: str, row: dict[str, Any]) -> Fact:
    try:
        return Fact.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        problem = "no such column" if first["type"] == "missing" else first["msg"]
        remedy = "a row needs subject, relation and object"
        raise BadInput(where, f"{field}: {problem}", remedy) from None


def _templates(path: Path) -> Iterator[tuple[str, str, str]]:
    if path.suffix.lower() == ".json":
        for relation, about in _object(str(path), _text(path)).items():
            listed = about.get("templates") if isinstance(about, dict) else None
            if not isinstance(listed, list) or not listed:
                problem = f'relation {relation}: expected {{"templates": [...]}}'
                raise BadInput(path, problem, "give each relation a template")
            yield f"{path}, relation {relation}", relation, str(listed[0])
        return
    for where, row in _rows(path):
        texts = [
            row.get("relation", row.get("predicate_id")),
            row.get("template", row.get("prompt")),
        ]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise BadInput(where, "expected a relation and its template")
        yield where, str(texts[0]).strip(), str(texts[1]).strip()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*") if file.suffix.lower() in FORMS)
    if not files:
        raise BadInput(path, "no such file, or no facts in it", f"one of {', '.join(FORMS)}")
    return files


def _rows(file: Path) -> Iterator[Row]:
    if not file.is_file():
        raise BadInput(file, "no such file", "correct its path in params.yaml")
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise BadInput(file, f"files of facts end in {', '.join(FORMS)}", "save it as one of these")
    return form(file)


def _delimited(file: Path) -> Iterator[Row]:
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    text = _text(file).removeprefix("\ufeff")
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    try:
        for fields in reader:
            where = f"{file}, line {reader.line_num}"
            if header is None:
                header = [name.strip() for name in fields]
            elif len(fields) != len(header):
                problem = f"{len(fields)} fields, the first line names {len(header)}"
                raise BadInput(where, problem, "quote fields that hold the separator")
            else:
                yield where, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise BadInput(f"{file}, line {reader.line_num}", f"not CSV: {error}") from None


def _jsonl(file: Path) -> Iterator[Row]:
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if line.strip():
            where = f"{file}, line {number}"
            yield where, _object(where, line)


def _parquet(file: Path) -> Iterator[Row]:
    try:
        table = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise BadInput(file, f"not parquet: {str(error).splitlines()[0]}") from None
    yield from _records(table, file)


def _records(table: pd.DataFrame, name: object) -> Iterator[Row]:
    for number, row in enumerate(table.to_dict("records"), start=1):
        fields = {str(column): _plain(value) for column, value in row.items()}
        yield f"{name}, row {number}", {n: v for n, v in fields.items() if v is not None}


def _plain(value: Any) -> Any:
    """A cell as JSON would have it; a missing one is None."""
    if pd.api.types.is_list_like(value):
        return list(value)
    return None if pd.isna(value) else value


def _object(where: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput(where, "not a JSON object")
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(file, "no such file", "correct its path in params.yaml") from None
    except UnicodeDecodeError as error:
        raise BadInput(file, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None


FORMS: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
