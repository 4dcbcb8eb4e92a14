"""Plain documents: folders of text files and JSONL files. `Document` is what every reader gives."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from medprobe.core.errors import BadInput
from medprobe.sources.jsonl import Record, records


class Document(NamedTuple):
    """One text of a resource. Runs of blanks and line ends are one blank each."""

    id: str
    text: str


class Row(Record):
    """A line of a JSONL file of texts."""

    id: str | int
    text: str


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The documents of a `.jsonl` file (`id`, `text` in each row), of a `.txt` file, or of a folder
    of such files, in the order of their names. Counts in `skipped` what is left out, by rule.

    Raises BadInput with the file and line of a row that is no such object.
    """
    for file in files(path, (".txt", ".jsonl")):
        if file.suffix == ".jsonl":
            yield from _rows(file, skipped)
        else:
            yield from kept(Document(file.stem, _text(file)), skipped)


def files(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file itself, or the files with these endings anywhere below a folder, sorted by name."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(path, "no such file or folder", "put the resource there or correct its path")
    return sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)


def kept(document: Document, skipped: Counter[str]) -> Iterator[Document]:
    """The document with its blanks made single, or nothing where it is empty."""
    text = " ".join(document.text.split())
    if text:
        yield Document(document.id, text)
    else:
        skipped["empty"] += 1


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(file, f"not UTF-8 at byte {error.start}", "convert the file") from None


def _rows(file: Path, skipped: Counter[str]) -> Iterator[Document]:
    for _, row in records(file, Row, "put it there"):
        yield from kept(Document(str(row.id), row.text), skipped)
