"""Plain documents: folders of text files and JSONL files. Every reader yields `Document`s."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, read_json_records, read_text

GET: Final = "put the resource there or correct its path"


class Document(NamedTuple):
    """One text of a resource. Runs of blanks and line ends are one blank each.

    A note has a category, such as `Discharge summary`.
    """

    id: str
    text: str
    category: str = ""


class TextLine(Record):
    """A line of a JSONL file of texts."""

    id: Name | int
    text: str


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read documents, in the order of the files' names.

    Args:
        path: a `.jsonl` file (`id`, `text` in each row), a `.txt` file, or a folder of such files.
        skipped: counts documents that are left out, by rule.

    Raises:
        BadInput: a row is not such an object, with file and line.
    """
    for file in files(path, (".txt", ".jsonl")):
        if file.suffix == ".jsonl":
            for _, row in read_json_records(file, TextLine, GET):
                yield from keep_nonempty(Document(str(row.id), row.text), skipped)
        else:
            yield from keep_nonempty(Document(file.stem, read_text(file, GET)), skipped)


def files(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """List a file, or the files with these endings anywhere in a folder, sorted by name."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(path, "no such file or folder", GET)
    return sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes)


def keep_nonempty(document: Document, skipped: Counter[str]) -> Iterator[Document]:
    """Yield the document with its blanks made single, or nothing if it is empty."""
    text = " ".join(document.text.split())
    if text:
        yield document._replace(text=text)
    else:
        skipped["empty"] += 1
