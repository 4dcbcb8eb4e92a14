"""Plain documents: folders of text files and JSONL files. `Document` is what every reader gives."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, json_records, text

GET: Final = "put the resource there or correct its path"


class Document(NamedTuple):
    """One text of a resource. Runs of blanks and line ends are one blank each."""

    id: str
    text: str


class Row(Record):
    """A line of a JSONL file of texts."""

    id: Name | int
    text: str


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The documents of a `.jsonl` file (`id`, `text` in each row), of a `.txt` file, or of a folder
    of such files, in the order of their names. Counts in `skipped` what is left out, by rule.

    Raises BadInput with the file and line of a row that is no such object.
    """
    for file in files(path, (".txt", ".jsonl")):
        if file.suffix == ".jsonl":
            for _, row in json_records(file, Row, GET):
                yield from kept(Document(str(row.id), row.text), skipped)
        else:
            yield from kept(Document(file.stem, text(file, GET)), skipped)


def files(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file itself, or the files with these endings anywhere below a folder, sorted by name."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(path, "no such file or folder", GET)
    return sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)


def kept(document: Document, skipped: Counter[str]) -> Iterator[Document]:
    """The document with its blanks made single, or nothing where it is empty."""
    text = " ".join(document.text.split())
    if text:
        yield Document(document.id, text)
    else:
        skipped["empty"] += 1
