"""The files of BioLAMA as released (Sung et al., 2021): a folder a source, a folder a relation.

`<source>/triples_processed/<relation>/{train,dev,test}.jsonl` and `<source>/prompts/manual.jsonl`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from medprobe.core.errors import BadInput, quoted
from medprobe.sources.jsonl import objects

Source = Literal["ctd", "wikidata", "umls"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
SPLITS: Final = ("train", "dev", "test")


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
    found = {}
    for where, row in _rows(folder / "prompts" / "manual.jsonl"):
        template = _text(row, "template", where)
        if template.count("[X]") != 1 or template.count("[Y]") != 1:
            raise BadInput(where, f"template {quoted(template)}", "it needs one [X] and one [Y]")
        found[_text(row, "relation", where)] = template
    return found


def read(folder: Path, relation: str, split: str) -> list[Triple]:
    """The triples of one relation and split, in the file's order. Objects and aliases whose name is
    null or blank are left out: a triple may be left without an object."""
    path = folder / "triples_processed" / relation / f"{split}.jsonl"
    return [_triple(row, where) for where, row in _rows(path)]


def _triple(row: dict[str, Any], where: str) -> Triple:
    labels, uris = row.get("obj_labels"), row.get("obj_uris")
    texts = isinstance(labels, list) and all(isinstance(label, str | None) for label in labels)
    if not labels or not texts or not isinstance(uris, list) or len(labels) != len(uris):
        raise BadInput(where, "obj_labels and obj_uris must be lists of one length, not empty")
    types = row.get("obj_types") or [""] * len(labels)
    aliases = row.get("obj_aliases") or [[]] * len(labels)
    parts = (types, aliases, *(aliases if isinstance(aliases, list) else ()))
    lists = all(isinstance(part, list | None) for part in parts)
    if not lists or len(types) != len(labels) or len(aliases) != len(labels):
        raise BadInput(where, "obj_types and obj_aliases must be as long as obj_labels")
    return Triple(
        _text(row, "uuid", where),
        _text(row, "predicate_id", where),
        _text(row, "sub_label", where),
        _text(row, "sub_uri", where),
        _type(row.get("sub_type")),
        tuple(
            Answer(str(label), str(uri), _type(kind), tuple(map(str, filter(_named, names or []))))
            for label, uri, kind, names in zip(labels, uris, types, aliases, strict=True)
            if _named(label)
        ),
    )


def _named(name: Any) -> bool:
    return name is not None and bool(str(name).strip())


def _type(kind: Any) -> str:
    """One type as text: files give a name, a list of names, or nothing."""
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind or "")


def _text(row: dict[str, Any], key: str, where: str) -> str:
    if not isinstance(row.get(key), str) or not row[key]:
        raise BadInput(where, f'expected a text under "{key}", found {quoted(row.get(key))}')
    return str(row[key])


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(file and line, row)` of a JSONL file."""
    return objects(path, "put BioLAMA's files there")
