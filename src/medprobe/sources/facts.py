"""Facts in a user's table, one row per fact.

The table is CSV, TSV, JSONL or parquet, or a folder of such files. The columns' names are ours
(`subject, relation, object`), or those of LAMA, BioLAMA and lm-pub-quiz (`sub_label, predicate_id,
obj_label`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pydantic import AliasChoices, ConfigDict, Field, model_validator

from medprobe.core.errors import BadInput
from medprobe.core.tables import ORIGINAL
from medprobe.sources.parquet import partition_fields, read_parquet_rows
from medprobe.sources.records import (
    Name,
    NameList,
    Record,
    Template,
    check_fields,
    find_unknown,
    parse_json_object,
    read_csv_rows,
    read_objects,
    read_text,
    validate,
)

SourceRow = tuple[str, dict[str, Any]]  # file and line, and its fields

CORRECT: Final = "correct its path in params.yaml"
LARGEST: Final = 2**30  # bytes of a parquet file, unzipped
SHARD: Final = re.compile(r"(part|shard|chunk)?[-_.]?\d+.*|.*\d+[-_]of[-_]\d+.*|[\da-f-]{32,}.*")
SPACE: Final = ("answer_space_labels", "answer_space")  # lm-pub-quiz's names of the field
PROMPT: Final = "prompt_"  # begins the name of a column of prompts; the rest names the wording


def _either(*names: str) -> Any:
    return AliasChoices(*names)


class FactRow(Record):
    """One row: an object of a relation and subject. `aliases` are the object's other names."""

    model_config = ConfigDict(strict=False, str_strip_whitespace=True, coerce_numbers_to_str=True)

    subject: Name = Field(validation_alias=_either("subject", "sub_label"))
    relation: Name = Field(validation_alias=_either("relation", "predicate_id"))
    object: Name = Field(validation_alias=_either("object", "obj_label"))
    subject_id: str = Field("", validation_alias=_either("subject_id", "sub_id", "sub_uri"))
    object_id: str = Field("", validation_alias=_either("object_id", "obj_id", "obj_uri"))
    aliases: NameList = Field(
        (), validation_alias=_either("aliases", "object_aliases", "obj_aliases")
    )
    subject_aliases: NameList = Field(
        (), validation_alias=_either("subject_aliases", "sub_aliases")
    )
    type: str = ""  # of the object
    prompt: str = ""  # with [Y]; if empty, the relation's template is used
    wordings: Mapping[str, str] = Field({})  # further prompts, from columns prompt_<wording>
    unread: tuple[str, ...] = ()  # columns that mean nothing here


class TemplateRow(Record):
    """A template of a relation. The wording names it where a relation has several."""

    model_config = ConfigDict(str_strip_whitespace=True)

    wording: Name = ORIGINAL
    relation: Name = Field(validation_alias=_either("relation", "predicate_id"))
    template: Template = Field(validation_alias=_either("template", "prompt"))


class TemplateList(Record):
    """The templates of a relation as lm-pub-quiz lists them, and the names that may answer it."""

    model_config = ConfigDict(strict=False, coerce_numbers_to_str=True)

    templates: list[str] = Field(min_length=1)
    answer_space: list[Name] = Field([], validation_alias=_either(*SPACE))
    answer_space_ids: list[Name] = Field([])

    @model_validator(mode="after")
    def _check_ids(self) -> "TemplateList":
        ids, names = self.answer_space_ids, self.answer_space
        if ids and len(ids) != len(names):
            raise ValueError(f"{len(ids)} answer_space_ids for {len(names)} answer_space_labels")
        if len(set(ids)) < len(ids):
            raise ValueError("answer_space_ids has an entry twice")
        return self


def read(path: Path) -> Iterator[tuple[str, FactRow]]:
    """Read facts."""
    for file in _files(path):
        given = (path.is_dir() and _partition(file.relative_to(path))) or {}
        for where, row in _table_rows(file):
            yield where, _fact(where, {**given, **row})


def read_frame(table: pd.DataFrame) -> Iterator[tuple[str, FactRow]]:
    """Read the facts of a data frame with the columns of a file of facts."""
    for number, row in enumerate(table.to_dict("records"), start=1):
        where = f"facts, row {number}"
        yield where, _fact(where, _fields(row))


def read_templates(path: Path) -> dict[str, dict[str, str]]:
    """Read the templates of each relation, by wording.

    Args:
        path: rows `relation, template` (or `prompt`) in a file as for facts, with a column
            `wording` where a relation has several; or a `.json` map from relations to
            `{"templates": [...]}`, as of lm-pub-quiz. The first wording of a relation is its own.
            In JSON the others are named by their places: `2`, `3`, and so on.
    """
    templates: dict[str, dict[str, str]] = {}
    for where, fields in _template_rows(path):
        check_fields(where, fields.keys(), TemplateRow)
        row = check_template(where, fields)
        wordings = templates.setdefault(row.relation, {})
        wording = row.wording if wordings else ORIGINAL
        if wording in wordings:
            problem = f"relation {row.relation} already has a template of the wording {wording}"
            raise BadInput(where, problem, "leave one, or name the wordings in a column wording")
        wordings[wording] = row.template
    return templates


def check_template(where: str, fields: Mapping[str, Any]) -> TemplateRow:
    """Check the template of a relation."""
    return validate(where, fields, TemplateRow, "a row needs a relation and a template")


def read_answer_spaces(path: Path) -> dict[str, dict[str, str]]:
    """Read the names that may answer each relation, from a file of templates."""
    return {
        relation: dict(zip(row.answer_space_ids or row.answer_space, row.answer_space, strict=True))
        for _, relation, row in _template_lists(path)
        if row.answer_space
    }


def _fact(where: str, row: dict[str, Any]) -> FactRow:
    remedy = "a row needs subject, relation and object"
    wordings = {name.removeprefix(PROMPT): row[name] for name in row if name.startswith(PROMPT)}
    wordings = {name: prompt for name, prompt in wordings.items() if prompt}
    others = {name for name in row if not name.startswith(PROMPT)}
    check_fields(where, {*others, "wordings"}, FactRow)
    unread = find_unknown(frozenset(others), FactRow)
    return validate(where, {**row, "wordings": wordings, "unread": unread}, FactRow, remedy)


def _template_rows(path: Path) -> Iterator[SourceRow]:
    if path.suffix.lower() != ".json":
        yield from _table_rows(path)
        return
    for where, relation, row in _template_lists(path):
        for place, template in enumerate(row.templates, start=1):
            yield where, {"relation": relation, "wording": str(place), "template": template}


def _template_lists(path: Path) -> Iterator[tuple[str, str, TemplateList]]:
    """Yield where each relation of a `.json` file is, its name and its templates.

    Other files, which are tables, give nothing.
    """
    if path.suffix.lower() != ".json":
        return
    for relation, content in parse_json_object(path, read_text(path, CORRECT)).items():
        where = f"{path}, relation {relation}"
        row = validate(where, content, TemplateList, 'expected {"templates": [...]}')
        yield where, relation, row


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    visible = (f for f in path.rglob("[!._]*") if f.suffix.lower() in FORMS and f.is_file())
    files = sorted(file for file in visible if _partition(file.relative_to(path)) is not None)
    if not files:
        problem = "no such file, or a folder without facts"
        remedy = f"one of {', '.join(FORMS)}; in subfolders only where they are relation=NAME"
        raise BadInput(path, problem, remedy)
    return files


def _partition(file: Path) -> dict[str, str] | None:
    """The fields that a file's folders give its rows, or its own name; None in other subfolders.

    A shard of one table, such as `part-00000`, names no relation.

    >>> _partition(Path("relation=may%20treat/part-0.parquet")), _partition(Path("a/b.csv"))
    ({'relation': 'may treat'}, None)
    """
    folders = file.parts[:-1]
    if not folders:
        return {} if SHARD.fullmatch(file.stem) else {"relation": file.stem}
    fields = partition_fields(folders)
    if len(fields) < len(folders):
        return None
    return {name: value for name, value in fields.items() if value is not None}


def _table_rows(file: Path) -> Iterator[SourceRow]:
    if not file.is_file():
        raise BadInput(file, "no such file", CORRECT)
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise BadInput(file, f"files of facts end in {', '.join(FORMS)}", "save it as one of these")
    return form(file)


def _delimited(file: Path) -> Iterator[SourceRow]:
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    remedy = "quote fields that hold the separator"
    return read_csv_rows(file, CORRECT, delimiter=delimiter, remedy=remedy)


def _jsonl(file: Path) -> Iterator[SourceRow]:
    """Rows of JSONL; pandas writes a missing value as null."""
    for where, row in read_objects(file, CORRECT):
        yield where, {name: value for name, value in row.items() if value is not None}


def _parquet(file: Path) -> Iterator[SourceRow]:
    for where, row in read_parquet_rows(file, LARGEST):
        yield where, _fields(row)


def _fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    fields = {str(column): _plain(value) for column, value in row.items()}
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    """A cell as JSON would represent it; a missing one is None."""
    if pd.api.types.is_list_like(value):
        return list(value)
    return None if pd.isna(value) else value


FORMS: Final[dict[str, Callable[[Path], Iterator[SourceRow]]]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
