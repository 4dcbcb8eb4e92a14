"""The documents of a text resource, each once; folders of text files and JSONL files."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput, quote
from medprobe.sources.records import Name, Record, read_json_records, read_text

RANDOM: Final = "knowledge-random"  # the kind of a context whose parts are drawn
GET: Final = "put the resource there or correct its path"


@dataclass(frozen=True)
class Document:
    """One text of a resource. Runs of blanks and line ends are one blank each.

    A note has a category, such as `Discharge summary`. `place` is its file and line.
    """

    id: str
    text: str
    category: str = ""
    place: str = field(default="", compare=False)

    @property
    def digest(self) -> bytes:
        """What tells its content from another one's."""
        content = f"{self.category}\n{self.text}".encode("utf-8", "surrogatepass")
        return hashlib.md5(content, usedforsecurity=False).digest()


class Seen:
    """The ids of documents that were read, each with its digest and place."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[bytes, str]] = {}

    def has(self, name: str, digest: bytes, place: str) -> bool:
        """Whether the document was read before, here or at another place."""
        is_known = name in self._first
        first_digest, first_place = self._first.setdefault(name, (digest, place))
        if first_digest != digest:
            problem = f"another text has the same id {quote(name)}: {first_place}"
            raise BadInput(place, problem, "take one of the two out, or give it another id")
        return is_known


@dataclass(frozen=True)
class Reader:
    """Reads the documents of resources of one form, each once, in the order of the files' names.

    It counts what it leaves out: empty documents, those that were read before, files without any
    document and files with other endings.

    Attributes:
        read_file: the documents of a file as they stand there; it counts what it leaves out.
        endings: of the files that it reads, also as `.gz`.
    """

    read_file: Callable[[Path, Counter[str]], Iterable[Document]]
    endings: tuple[str, ...]

    def __call__(self, path: Path, skipped: Counter[str]) -> Iterator[Document]:
        """Read a file, or the files anywhere in a folder."""
        return self.read(self.list_files(path, skipped), skipped)

    def list_files(self, path: Path, skipped: Counter[str]) -> list[Path]:
        """List the files that are read; hidden ones are passed over."""
        if path.is_file():
            return [path]
        if not path.is_dir():
            raise BadInput(path, "no such file or folder", GET)
        visible = [file for file in sorted(path.rglob("[!.]*")) if file.is_file()]
        files = [file for file in visible if unzipped(file).suffix in self.endings]
        others = Counter(f"file {file.suffix or file.name}" for file in {*visible} - {*files})
        skipped.update(others)
        if not files:
            raise BadInput(
                path, f"no file that ends in {', '.join(self.endings)}{said(others)}", GET
            )
        return files

    def read(self, files: Iterable[Path], skipped: Counter[str]) -> Iterator[Document]:
        """Read files in their order."""
        seen = Seen()
        for file in files:
            is_empty = True
            for found in self.read_file(file, skipped):
                is_empty = False
                document = replace(found, text=" ".join(found.text.split()))
                if not document.text:
                    skipped["empty"] += 1
                elif seen.has(document.id, document.digest, document.place):
                    skipped["read before"] += 1
                else:
                    yield document
            skipped.update(["file without a document"] if is_empty else [])


def said(counts: Counter[str]) -> str:
    """Counts in brackets, for an error, or nothing."""
    return f" ({'; '.join(f'{rule}: {n}' for rule, n in sorted(counts.items()))})" if counts else ""


def unzipped(file: Path) -> Path:
    """The file without `.gz`, and with its ending in lower case.

    >>> unzipped(Path("notes/A.TXT.gz")).suffix
    '.txt'
    """
    name = file.with_suffix("") if file.suffix == ".gz" else file
    return name.with_suffix(name.suffix.lower())


class TextLine(Record):
    """A line of a JSONL file of texts."""

    id: Name | int
    text: str


def _read_file(file: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The rows of a `.jsonl` file (`id`, `text`), or the text of another one, named as the file."""
    name = unzipped(file)
    if name.suffix != ".jsonl":
        yield Document(name.stem, read_text(file, GET), place=str(file))
        return
    for where, row in read_json_records(file, TextLine, GET):
        yield Document(str(row.id), row.text, place=where)


read: Final = Reader(_read_file, (".txt", ".jsonl"))
