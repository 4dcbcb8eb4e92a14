"""Marked words in every text of every source, and the search for them in a project's files.

A marked word outside the data and the outputs is a leak of licensed text.
"""

import csv
import gzip
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from lxml import etree

TEXT: Final = re.compile(r"[^\W\d_]{2}.* .*[^\W\d_]{2}", re.DOTALL)  # two words and more
WORD: Final = "zq[0-9a-f]{10}"
UNMARKED: Final = {"MRSTY.RRF", "other-entities.txt"}  # of semantic types; of single names


def plant_canaries(data: Path) -> Counter[str]:
    """Add a marked word to every text of the sources in a data folder.

    Equal texts get the same word. The names of the sample world are not texts and are not marked.

    Returns:
        How many texts were marked, by file and field.
    """
    names = set((data / "sample/names.txt").read_text().splitlines())
    planted = Counter[str]()
    for path in sorted(data.rglob("*")):
        if path.is_dir() or path.name in UNMARKED or path.is_relative_to(data / "sample"):
            continue
        zipped = path.suffix == ".gz"
        content = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()

        def mark(text: str, field: str, where: str = str(path.relative_to(data))) -> str:
            if not TEXT.search(text) or text in names:
                return text
            planted[f"{where}: {field}"] += 1
            return f"{text} zq{hashlib.sha256(text.encode()).hexdigest()[:10]}"

        form = FORMS[(path.with_suffix("") if zipped else path).suffix]
        changed = form(content, mark)
        path.write_bytes(gzip.compress(changed) if zipped else changed)
    return planted


def _xml(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    root = etree.fromstring(content)
    for element in root.iter(etree.Element):
        if element.text:
            element.text = mark(element.text, element.tag)
    return etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8")


def _json(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    def walk(node: Any, field: str) -> Any:
        if isinstance(node, dict):
            return {name: walk(value, name) for name, value in node.items()}
        if isinstance(node, list):
            return [walk(value, field) for value in node]
        return mark(node, field) if isinstance(node, str) else node

    return json.dumps(walk(json.loads(content), "")).encode()


def _jsonl(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    return b"".join(_json(line, mark) + b"\n" for line in content.splitlines())


def _csv(content: bytes, mark: Callable[[str, str], str], delimiter: str = ",") -> bytes:
    def cell(text: str, field: str) -> str:
        if text.startswith("['"):  # MedLAMA's lists
            return re.sub("'([^']*)'", lambda part: f"'{mark(part[1], field)}'", text)
        return " || ".join(mark(part, field) for part in text.split(" || "))

    head, *rows = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", delimiter=delimiter)
    writer.writerow(head)
    writer.writerows([list(map(cell, row, head)) for row in rows])
    return out.getvalue().encode()


def _parquet(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    out = io.BytesIO()
    _frame(pd.read_parquet(io.BytesIO(content)), mark).to_parquet(out)
    return out.getvalue()


def _frame(table: pd.DataFrame, mark: Callable[[str, str], str]) -> pd.DataFrame:
    return table.apply(lambda column: column.map(lambda text: mark(str(text), str(column.name))))


def _rrf(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    return _lines(content, lambda line: "|".join(mark(field, "STR") for field in line.split("|")))


def _txt(content: bytes, mark: Callable[[str, str], str]) -> bytes:
    return _lines(content, lambda line: "\t".join(mark(cell, "line") for cell in line.split("\t")))


def _lines(content: bytes, change: Callable[[str], str]) -> bytes:
    return "".join(f"{change(line)}\n" for line in content.decode().split("\n")[:-1]).encode()


FORMS: Final[dict[str, Callable[[bytes, Callable[[str, str], str]], bytes]]] = {
    ".xml": _xml,
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": partial(_csv, delimiter="\t"),
    ".parquet": _parquet,
    ".RRF": _rrf,
    ".txt": _txt,
}


def compile_canaries(data: Path) -> re.Pattern[str]:
    """A pattern of the marked words and of the names of the sample world."""
    names = (data / "sample/names.txt").read_text().splitlines()
    return re.compile(f"{WORD}|{_any_of(names, letters=3)}")


def _any_of(words: Iterable[str], letters: int) -> str:
    """A pattern of words by their first letters, of which a search tries few at each place."""
    if not letters:
        return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[:1], []).append(word[1:])
    return "|".join(
        f"{re.escape(start)}(?:{_any_of(rest, letters - 1)})"
        for start, rest in sorted(rests.items(), reverse=True)  # what ends here comes last
    )


def find_leaks(project: Path, words: re.Pattern[str]) -> Iterator[str]:
    """Find licensed text in a project: files with one of the words outside data/ and outputs/.

    outputs/validation is searched too, since it is meant to be shown.
    """
    for path in sorted(project.rglob("*")):
        place = path.relative_to(project)
        hidden = place.parts[0] == "data" or place.parts[:2] == (".dvc", "cache")
        if place.parts[0] == "outputs":
            hidden = place.parts[:2] != ("outputs", "validation")
        if not hidden and path.is_file():
            text = path.read_bytes().decode(errors="replace")
            if leak := words.search(text):
                yield f"{place}: {text[max(0, leak.start() - 100) : leak.end() + 20]!r}"


def spoil_tables(folder: Path) -> None:
    """Break every column of a benchmark's tables but the ids, so that nearly all checks fail."""
    for path in folder.glob("*.parquet"):
        table = pd.read_parquet(path)
        for column in table:
            first_value = table[column].iloc[0] if len(table) else None
            if isinstance(first_value, str) and not column.endswith("id"):
                table[column] = table[column] + " [MASK]\x00 [Y]"
            elif isinstance(first_value, np.ndarray):
                table[column] = [[*items, *items, " "] for items in table[column]]
        pd.concat([table, table]).to_parquet(path, index=False)
