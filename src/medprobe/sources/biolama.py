"""The files of BioLAMA as released (Sung et al., 2021): a folder a source, a folder a relation.

`<source>/triples_processed/<relation>/{train,dev,test}.jsonl` and `<source>/prompts/manual.jsonl`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self, TypeGuard, get_args

from pydantic import Field, model_validator

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, Template, json_records

Source = Literal["ctd", "wikidata", "umls"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
SPLITS: Final = ("train", "dev", "test")
GET: Final = "put BioLAMA's files there"
Kind = str | list[str] | None  # one type, as files give it: a name, a list of names, or nothing


class Prompt(Record):
    """A line of the manual prompts."""

    relation: Name
    template: Template


class Row(Record):
    """A line of triples: a subject and all objects of a relation."""

    uuid: Name
    predicate_id: Name
    sub_label: Name
    sub_uri: Name
    sub_type: Kind = None
    obj_labels: list[str | None] = Field(min_length=1)
    obj_uris: list[Name] = Field(min_length=1)
    obj_types: list[Kind] | None = None
    obj_aliases: list[list[str | None] | None] | None = None

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        for name in ("obj_uris", "obj_types", "obj_aliases"):
            if (found := getattr(self, name)) and len(found) != len(self.obj_labels):
                raise ValueError(f"{name} must be as long as obj_labels")
        return self


@dataclass(frozen=True)
class Answer:
    """One object of a triple; `type` is "" in CTD."""

    label: str
    id: str
    type: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Triple:
    """One row: a subject, a relation and all objects it holds for."""

    uuid: str
    relation: str
    subject: str
    subject_id: str
    subject_type: str
    answers: tuple[Answer, ...]


def relations(folder: Path) -> list[str]:
    """The relations of one source, by name. Raises BadInput where the folder has none."""
    triples = folder / "triples_processed"
    found = sorted(path.name for path in triples.glob("*") if path.is_dir())
    if not found:
        remedy = "put BioLAMA's files there, or leave it out of benchmarks.biolama.sources"
        raise BadInput(triples, "no relations", remedy)
    return found


def templates(folder: Path) -> dict[str, str]:
    """The manual template of each relation. Raises BadInput unless it has one [X] and one [Y]."""
    rows = json_records(folder / "prompts" / "manual.jsonl", Prompt, GET)
    return {row.relation: row.template for _, row in rows}


def read(folder: Path, relation: str, split: str) -> list[Triple]:
    """The triples of one relation and split, in the file's order. Objects and aliases whose name is
    null or blank are left out: a triple may be left without an object."""
    path = folder / "triples_processed" / relation / f"{split}.jsonl"
    return [_triple(row) for _, row in json_records(path, Row, GET)]


def _triple(row: Row) -> Triple:
    types = row.obj_types or [None] * len(row.obj_labels)
    aliases = row.obj_aliases or [None] * len(row.obj_labels)
    answers = zip(row.obj_labels, row.obj_uris, types, aliases, strict=True)
    return Triple(
        row.uuid,
        row.predicate_id,
        row.sub_label,
        row.sub_uri,
        _type(row.sub_type),
        tuple(
            Answer(label, uri, _type(kind), tuple(name for name in names or [] if _named(name)))
            for label, uri, kind, names in answers
            if _named(label)
        ),
    )


def _named(name: str | None) -> TypeGuard[str]:
    return name is not None and bool(name.strip())


def _type(kind: Kind) -> str:
    return "|".join(kind) if isinstance(kind, list) else kind or ""
