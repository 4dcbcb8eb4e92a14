"""The files of LAMA as released (Petroni et al., 2019): one reader a data set.

Every fact becomes an `Item`. Its `sentences` are texts with `[MASK]` where the object stood, each
with the words that stood there: T-REx has one an evidence, the others have a list of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medprobe.core.errors import BadInput, quoted
from medprobe.sources.jsonl import objects

MASK = "[MASK]"

# Google-RE's templates stand in LAMA's code, not in a file of its data.
GOOGLE_RE_TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
    "place_of_death": "[X] died in [Y] .",
}


@dataclass(frozen=True)
class Item:
    """One fact of LAMA: `accepted` is false where more raters denied it than confirmed it."""

    id: str
    relation: str
    subject: str
    subject_id: str
    object: str
    object_id: str
    sentences: tuple[tuple[str, str], ...]  # (text with [MASK], what stood there)
    accepted: bool = True


def google_re(folder: Path) -> Iterator[Item]:
    """Google-RE: `Google_RE/<relation>_test.jsonl` for the three relations, those that exist. Not
    every sentence of a fact holds a mask."""
    paths = [folder / "Google_RE" / f"{relation}_test.jsonl" for relation in GOOGLE_RE_TEMPLATES]
    for path in _existing(paths, folder / "Google_RE"):
        yield from _items(path, lambda row: _google_re(row, path))  # noqa: B023


def trex(folder: Path) -> Iterator[Item]:
    """T-REx: `TREx/P*.jsonl`, a file a relation."""
    paths = sorted((folder / "TREx").glob("P*.jsonl"), key=lambda path: (len(path.stem), path.stem))
    for path in _existing(paths, folder / "TREx"):
        yield from _items(path, lambda row: _trex(row, path))  # noqa: B023


def conceptnet(folder: Path) -> Iterator[Item]:
    """ConceptNet: `ConceptNet/test.jsonl`; a fact may lack its subject."""
    return _items(folder / "ConceptNet" / "test.jsonl", _conceptnet)


def squad(folder: Path) -> Iterator[Item]:
    """SQuAD: `Squad/test.jsonl`; all of it is one relation, `squad`."""
    return _items(folder / "Squad" / "test.jsonl", _squad)


def templates(folder: Path) -> dict[str, str]:
    """The template of each relation of `relations.jsonl`, `[X]` the subject, `[Y]` the object."""
    path = folder / "relations.jsonl"
    found = {}
    for where, row in _rows(path):
        if missing := [name for name in ("relation", "template") if name not in row]:
            raise BadInput(where, f"no field {missing[0]!r}", "expected LAMA's format")
        template = str(row["template"])
        if template.count("[X]") != 1 or template.count("[Y]") != 1:
            raise BadInput(where, f"template {quoted(template)}", "expected one [X] and one [Y]")
        found[str(row["relation"])] = template
    return found


def _google_re(row: dict[str, Any], path: Path) -> Item:
    votes = [str(vote["judgment"]) == "yes" for vote in row["judgments"]]
    return Item(
        row["uuid"],
        path.name.removesuffix("_test.jsonl"),
        row["sub_label"],
        row["sub"],
        row["obj_label"],
        row["obj"] or row["obj_label"],
        _listed(row),
        2 * sum(votes) >= len(votes),
    )


def _trex(row: dict[str, Any], path: Path) -> Item:
    evidences = row["evidences"]
    return Item(
        row["uuid"],
        path.stem,
        row["sub_label"],
        row["sub_uri"],
        row["obj_label"],
        row["obj_uri"],
        tuple((str(one["masked_sentence"]), str(one["obj_surface"])) for one in evidences),
    )


def _conceptnet(row: dict[str, Any]) -> Item:
    subject = str(row.get("sub") or "")
    answer = row["obj_label"]
    return Item(row["uuid"], row["pred"], subject, subject, answer, answer, _listed(row))


def _squad(row: dict[str, Any]) -> Item:
    subject, answer = row["sub_label"], row["obj_label"]
    return Item(str(row["id"]), "squad", subject, subject, answer, answer, _listed(row))


def _listed(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(text), str(row["obj_label"])) for text in row["masked_sentences"])


def _existing(paths: list[Path], folder: Path) -> list[Path]:
    found = [path for path in paths if path.is_file()]
    if not found:
        raise BadInput(folder, "no file of this data set", "unpack LAMA's data there")
    return found


def _items(path: Path, read: Callable[[dict[str, Any]], Item]) -> Iterator[Item]:
    for where, row in _rows(path):
        try:
            yield read(row)
        except KeyError as error:
            raise BadInput(where, f"no field {error.args[0]!r}", "expected LAMA's format") from None
        except (TypeError, AttributeError):
            raise BadInput(where, "a field of the wrong type", "expected LAMA's format") from None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(where, row)` for each line of a JSONL file."""
    return objects(path, "unpack LAMA's data there")
