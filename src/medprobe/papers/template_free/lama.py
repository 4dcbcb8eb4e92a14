"""The files of LAMA as released (Petroni et al., 2019): one reader per data set.

Every fact becomes an `Item`. Its `sentences` are texts with `[MASK]` in the object's
place, each with the words that it replaces: T-REx has one per evidence, the others have a list.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, read_json_records, read_wordings

MASK = "[MASK]"
GET = "unpack LAMA's data there"

# Google-RE's templates are in LAMA's code, not in a file of its data.
GOOGLE_RE_TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
    "place_of_death": "[X] died in [Y] .",
}


class RaterJudgment(Record):
    """One rater's judgment of a fact of Google-RE."""

    judgment: str


class GoogleRE(Record):
    """A line of Google-RE."""

    uuid: Name
    sub: Name
    sub_label: Name
    sub_aliases: list[str] = Field([])
    obj: str | None
    obj_label: Name
    judgments: list[RaterJudgment]
    masked_sentences: list[str]


class EvidenceSentence(Record):
    """A sentence of T-REx, and the words for the object in it."""

    masked_sentence: str
    obj_surface: str


class TREx(Record):
    """A line of T-REx."""

    uuid: Name
    sub_label: Name
    sub_uri: Name
    obj_label: Name
    obj_uri: Name
    evidences: list[EvidenceSentence]


class ConceptNet(Record):
    """A line of ConceptNet."""

    uuid: Name
    pred: Name
    sub: str | None = None
    obj_label: Name
    masked_sentences: list[str]


class SQuAD(Record):
    """A line of SQuAD."""

    id: Name | int
    sub_label: str
    obj_label: Name
    masked_sentences: list[str]


@dataclass(frozen=True)
class Item:
    """One fact of LAMA: `accepted` is false where more raters denied it than confirmed it."""

    id: str
    relation: str
    subject: str
    subject_id: str
    object: str
    object_id: str
    sentences: tuple[tuple[str, str], ...]  # (text with [MASK], the words it replaces)
    accepted: bool = True
    subject_aliases: tuple[str, ...] = ()


def read_google_re(folder: Path) -> Iterator[Item]:
    """Read Google-RE: `Google_RE/<relation>_test.jsonl` of those of the three relations that exist.

    A fact can have sentences without a mask.
    """
    paths = [folder / "Google_RE" / f"{relation}_test.jsonl" for relation in GOOGLE_RE_TEMPLATES]
    for path in _existing(paths, folder / "Google_RE"):
        relation = path.name.removesuffix("_test.jsonl")
        for _, row in read_json_records(path, GoogleRE, GET):
            answer = row.obj_label
            yes = sum(vote.judgment == "yes" for vote in row.judgments)
            yield Item(
                row.uuid,
                relation,
                row.sub_label,
                row.sub,
                answer,
                row.obj or answer,
                _with_answer(row.masked_sentences, answer),
                2 * yes >= len(row.judgments),
                tuple(row.sub_aliases),
            )


def read_trex(folder: Path) -> Iterator[Item]:
    """Read T-REx: `TREx/P*.jsonl`, one file per relation."""
    paths = sorted((folder / "TREx").glob("P*.jsonl"), key=lambda path: (len(path.stem), path.stem))
    for path in _existing(paths, folder / "TREx"):
        for _, row in read_json_records(path, TREx, GET):
            texts = tuple(
                (evidence.masked_sentence, evidence.obj_surface) for evidence in row.evidences
            )
            subject, answer = (row.sub_label, row.sub_uri), (row.obj_label, row.obj_uri)
            yield Item(row.uuid, path.stem, *subject, *answer, texts)


def read_conceptnet(folder: Path) -> Iterator[Item]:
    """Read ConceptNet: `ConceptNet/test.jsonl`.

    A fact can lack its subject. Its own id stands for the subject's, so that it is a cluster of its
    own.
    """
    for _, row in read_json_records(folder / "ConceptNet" / "test.jsonl", ConceptNet, GET):
        subject, answer = row.sub or "", row.obj_label
        texts = _with_answer(row.masked_sentences, answer)
        yield Item(row.uuid, row.pred, subject, subject or row.uuid, answer, answer, texts)


def read_squad(folder: Path) -> Iterator[Item]:
    """Read SQuAD: `Squad/test.jsonl`; all facts have one relation, `squad`.

    Every fact names the data set as its subject. Its own id stands for the subject's, so that it
    is a cluster of its own.
    """
    for _, row in read_json_records(folder / "Squad" / "test.jsonl", SQuAD, GET):
        answer = row.obj_label
        texts = _with_answer(row.masked_sentences, answer)
        yield Item(str(row.id), "squad", row.sub_label, str(row.id), answer, answer, texts)


READERS: Final[dict[str, tuple[str, Callable[[Path], Iterator[Item]]]]] = {
    "google-re": ("Google_RE", read_google_re),  # a data set: its folder, what reads it
    "t-rex": ("TREx", read_trex),
    "conceptnet": ("ConceptNet", read_conceptnet),
    "squad": ("Squad", read_squad),
}


def read_templates(
    folder: Path, originals: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Read the templates of each relation of `relations.jsonl`, by wording.

    `originals` are templates that relations have already.
    """
    return read_wordings(folder / "relations.jsonl", GET, originals)


def _with_answer(texts: list[str], answer: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, answer) for text in texts)


def _existing(paths: list[Path], folder: Path) -> list[Path]:
    files = [path for path in paths if path.is_file()]
    if not files:
        raise BadInput(folder, "no file of this data set", GET)
    return files
