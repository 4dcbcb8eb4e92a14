"""The files of BioLAMA as released (Sung et al., 2021): one folder per source and relation.

`<source>/triples_processed/<relation>/{train,dev,test}.jsonl` and `<source>/prompts/manual.jsonl`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeGuard, get_args

from pydantic import Field, model_validator

from medprobe.core.errors import BadInput, nearest
from medprobe.sources.records import Name, Record, read_json_records, read_wordings

Source = Literal["ctd", "wikidata", "umls"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
SPLITS: Final = ("train", "dev", "test")
GET: Final = "put BioLAMA's files there"
TypeField = str | list[str] | None  # a type in the files: a name, a list of names, or null


class TripleLine(Record):
    """A line of triples: a subject, a relation and all its objects."""

    uuid: Name
    predicate_id: Name
    sub_label: Name
    sub_uri: Name
    sub_type: TypeField = None
    sub_aliases: list[str | None] | None = None
    obj_labels: list[str | None] = Field(min_length=1)
    obj_uris: list[Name] = Field(min_length=1)
    obj_types: list[TypeField] | None = None
    obj_aliases: list[list[str | None] | None] | None = None

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        for name in ("obj_uris", "obj_types", "obj_aliases"):
            if (values := getattr(self, name)) and len(values) != len(self.obj_labels):
                raise ValueError(f"{name} must be as long as obj_labels")
        return self


@dataclass(frozen=True)
class TripleObject:
    """One object of a triple; `type` is "" in CTD."""

    label: str
    id: str
    type: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Triple:
    """One row: a subject, a relation and all its objects."""

    uuid: str
    relation: str
    subject: str
    subject_id: str
    subject_type: str
    subject_aliases: tuple[str, ...]
    answers: tuple[TripleObject, ...]


def list_files(folder: str, settings: Any) -> list[str]:
    """List the patterns of the files that builders with the setting `sources` read of a folder."""
    files = ("prompts/manual.jsonl", "triples_processed/*/test.jsonl")
    return [f"{folder}/{source}/{file}" for source in settings.sources for file in files]


def list_relations(folder: Path) -> list[str]:
    """List the relations of one source, sorted. Raises BadInput if the folder has none."""
    triples = folder / "triples_processed"
    names = sorted(path.name for path in triples.glob("*") if path.is_dir())
    if not names:
        remedy = "put its files there, or leave it out of the builder's setting `sources`"
        raise BadInput(triples, "no relations", remedy)
    return names


def read_templates(folder: Path) -> dict[str, dict[str, str]]:
    """Read the manual templates of each relation, by wording."""
    return read_wordings(folder / "prompts" / "manual.jsonl", GET)


def read_relations(
    folder: Path, sources: Iterable[Source], wanted: Collection[str], builder: str
) -> dict[Source, dict[str, dict[str, str]]]:
    """Read the manual templates of each source's relations, by relation and wording."""
    listed = {source: list_relations(folder / source) for source in sources}
    every = sorted({name for names in listed.values() for name in names})
    for relation in wanted:
        if relation not in every:
            problem = f"no relation '{relation}'{nearest(relation, every)}"
            raise BadInput(f"params.yaml: benchmarks.{builder}", problem)
    chosen: dict[Source, dict[str, dict[str, str]]] = {}
    for source, names in listed.items():
        templates, chosen[source] = read_templates(folder / source), {}
        for relation in (name for name in names if name in wanted or not wanted):
            if relation not in templates:
                path = folder / source / "prompts" / "manual.jsonl"
                raise BadInput(path, f"no template for relation {relation}")
            chosen[source][relation] = templates[relation]
    return chosen


def read(folder: Path, relation: str, split: str) -> list[Triple]:
    """Read the triples of one relation and split, in the file's order.

    Objects and aliases whose name is null or blank are left out, so a triple can have no object.
    A small relation can have no triple in `dev`.
    """
    path = folder / "triples_processed" / relation / f"{split}.jsonl"
    if split == "dev" and path.is_file() and not path.stat().st_size:
        return []
    return [_triple(row) for _, row in read_json_records(path, TripleLine, GET)]


def _triple(row: TripleLine) -> Triple:
    types = row.obj_types or [None] * len(row.obj_labels)
    aliases = row.obj_aliases or [None] * len(row.obj_labels)
    answers = zip(row.obj_labels, row.obj_uris, types, aliases, strict=True)
    return Triple(
        row.uuid,
        row.predicate_id,
        row.sub_label,
        row.sub_uri,
        _join_types(row.sub_type),
        tuple(filter(_has_name, row.sub_aliases or [])),
        tuple(
            TripleObject(
                label,
                uri,
                _join_types(kind),
                tuple(name for name in names or [] if _has_name(name)),
            )
            for label, uri, kind, names in answers
            if _has_name(label)
        ),
    )


def _has_name(name: str | None) -> TypeGuard[str]:
    return name is not None and bool(name.strip())


def _join_types(kind: TypeField) -> str:
    return "|".join(kind) if isinstance(kind, list) else kind or ""
