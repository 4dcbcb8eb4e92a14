"""Facts in a table of one's own, a row a fact: CSV, TSV, JSONL or parquet, or a folder of such
files. The columns' names are ours (`subject, relation, object`), or those of LAMA, BioLAMA and
lm-pub-quiz (`sub_label, predicate_id, obj_label`).
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import pandas as pd
from pyarrow.parquet import ParquetFile
from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field

from medprobe.core.errors import BadInput
from medprobe.sources.records import (
    Name,
    Record,
    Template,
    checked,
    json_object,
    objects,
    rows,
    text,
)

Row = tuple[str, dict[str, Any]]  # file and line, and its fields

CORRECT: Final = "correct its path in params.yaml"
LARGEST: Final = 2**30  # bytes of a parquet file, unzipped
MOST_ROWS: Final = 10_000_000
SEPARATOR: Final = "|"  # between aliases, where a field is one text


def _aliases(value: object) -> object:
    return [name for name in value.split(SEPARATOR) if name] if isinstance(value, str) else value


def _either(*names: str) -> Any:
    return AliasChoices(*names)


class Fact(Record):
    """One row: an object of a relation and subject. `aliases` are the object's other names."""

    model_config = ConfigDict(strict=False, str_strip_whitespace=True, coerce_numbers_to_str=True)

    subject: Name = Field(validation_alias=_either("subject", "sub_label"))
    relation: Name = Field(validation_alias=_either("relation", "predicate_id"))
    object: Name = Field(validation_alias=_either("object", "obj_label"))
    subject_id: str = Field("", validation_alias=_either("subject_id", "sub_id", "sub_uri"))
    object_id: str = Field("", validation_alias=_either("object_id", "obj_id", "obj_uri"))
    aliases: Annotated[tuple[str, ...], BeforeValidator(_aliases)] = Field(
        (), validation_alias=_either("aliases", "obj_aliases")
    )
    type: str = ""  # of the object
    prompt: str = ""  # with [Y]; where it is empty, the relation's template serves


class RelationTemplate(Record):
    """The template of a relation."""

    model_config = ConfigDict(str_strip_whitespace=True)

    relation: Name = Field(validation_alias=_either("relation", "predicate_id"))
    template: Template = Field(validation_alias=_either("template", "prompt"))


class Listed(Record):
    """The templates of a relation as lm-pub-quiz lists them."""

    templates: list[str] = Field(min_length=1)


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
    for where, row in _templates(path):
        one = checked(where, row, RelationTemplate, "give each relation one template")
        if one.relation in found:
            raise BadInput(where, f"relation {one.relation} has a template already", "leave one")
        found[one.relation] = one.template
    return found


def _fact(where: str, row: dict[str, Any]) -> Fact:
    return checked(where, row, Fact, "a row needs subject, relation and object")


def _templates(path: Path) -> Iterator[Row]:
    if path.suffix.lower() != ".json":
        yield from _rows(path)
        return
    for relation, about in json_object(path, text(path, CORRECT)).items():
        where = f"{path}, relation {relation}"
        listed = checked(where, about, Listed, 'expected {"templates": [...]}')
        yield where, {"relation": relation, "template": listed.templates[0]}


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*") if file.suffix.lower() in FORMS)
    if not files:
        raise BadInput(path, "no such file, or no facts in it", f"one of {', '.join(FORMS)}")
    return files


def _rows(file: Path) -> Iterator[Row]:
    if not file.is_file():
        raise BadInput(file, "no such file", CORRECT)
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise BadInput(file, f"files of facts end in {', '.join(FORMS)}", "save it as one of these")
    return form(file)


def _delimited(file: Path) -> Iterator[Row]:
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    remedy = "quote fields that hold the separator"
    return rows(file, CORRECT, delimiter=delimiter, remedy=remedy)


def _jsonl(file: Path) -> Iterator[Row]:
    return objects(file, CORRECT)


def _parquet(file: Path) -> Iterator[Row]:
    """A small file may hold billions of rows, or of characters: neither is read."""
    try:
        with ParquetFile(file) as table:
            groups = map(table.metadata.row_group, range(table.num_row_groups))
            size, count = sum(group.total_byte_size for group in groups), table.metadata.num_rows
            if size > LARGEST or count > MOST_ROWS:
                problem = f"{count:,} rows of {size:,} bytes unzipped"
                most = f"expected at most {MOST_ROWS:,} rows of {LARGEST:,} bytes"
                raise BadInput(file, f"{problem}, {most}", "save it as several files in a folder")
            listed = (row for batch in table.iter_batches(1000) for row in batch.to_pylist())
            for number, row in enumerate(listed, start=1):
                yield f"{file}, row {number}", _fields(row)
    except BadInput:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise BadInput(file, f"not parquet ({type(error).__name__})", "save it anew") from None


def _records(table: pd.DataFrame, name: object) -> Iterator[Row]:
    for number, row in enumerate(table.to_dict("records"), start=1):
        yield f"{name}, row {number}", _fields(row)


def _fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    fields = {str(column): _plain(value) for column, value in row.items()}
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    """A cell as JSON would have it; a missing one is None."""
    if pd.api.types.is_list_like(value):
        return list(value)
    return None if pd.isna(value) else value


FORMS: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
