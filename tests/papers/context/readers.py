"""What reads notes, articles and texts, and a file for each reader to damage."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Final

from helpers.damage import Reader, file, write_lines
from medprobe.papers.context import articles, notes, texts


def _notes(path: Path) -> object:
    return list(notes.read(path, Counter()))


READERS: Final[dict[str, Reader]] = {
    "notes": file("notes/NOTEEVENTS.csv", _notes),
    "zipped notes": file("notes/NOTEEVENTS.csv.gz", _notes),
    "articles": ("articles/*.xml", lambda d: list(articles.read(d / "articles", Counter()))),
    "texts": ("texts/a.jsonl", lambda d: list(texts.read(d / "texts", Counter()))),
    "plain texts": ("texts/b.txt", lambda d: list(texts.read(d / "texts", Counter()))),
}


def write_files(data: Path) -> None:
    """Write the files that the sample world lacks."""
    rows = [{"id": str(n), "text": f"some text {n}"} for n in range(20)]
    write_lines(data / "texts/a.jsonl", rows)
    (data / "texts/b.txt").write_text("a text of its own\n" * 20)
    plain = data / "notes/NOTEEVENTS.csv"
    plain.with_name("NOTEEVENTS.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
