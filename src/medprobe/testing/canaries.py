"""Marked words in every text of every source, and the search for them in what a pipeline leaves.

A marked word outside the data and the outputs is a leak of licensed text.
"""

import csv
import gzip
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from lxml import etree

TEXT: Final = re.compile(r"[^\W\d_]{2}.* .*[^\W\d_]{2}", re.DOTALL)  # two words and more
WORD: Final = "zq[0-9a-f]{10}"
KEPT: Final = {"MRSTY.RRF", "other-entities.txt"}  # of semantic types; of single names

Plant = Callable[[str], str]


def plant(data: Path) -> Counter[str]:
    """Give every text of the sources in a data folder a word of its own, equal texts the same; how
    many, by file and field. The sample world's names, which are none, stay as they are."""
    names = set((data / "sample/names.txt").read_text().splitlines())
    planted = Counter[str]()
    for path in sorted(data.rglob("*")):
        if path.is_dir() or path.name in KEPT or path.is_relative_to(data / "sample"):
            continue
        zipped = path.suffix == ".gz"
        content = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()

        def said(text: str, field: str, where: str = str(path.relative_to(data))) -> str:
            if not TEXT.search(text) or text in names:
                return text
            planted[f"{where}: {field}"] += 1
            return f"{text} zq{hashlib.sha256(text.encode()).hexdigest()[:10]}"

        form = FORMS[(path.with_suffix("") if zipped else path).suffix]
        changed = form(content, said)
        path.write_bytes(gzip.compress(changed) if zipped else changed)
    return planted


def _xml(content: bytes, said: Callable[[str, str], str]) -> bytes:
    root = etree.fromstring(content)
    for element in root.iter(etree.Element):
        if element.text:
            element.text = said(element.text, element.tag)
    return etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8")


def _json(content: bytes, said: Callable[[str, str], str]) -> bytes:
    def walk(node: Any, field: str) -> Any:
        if isinstance(node, dict):
            return {name: walk(value, name) for name, value in node.items()}
        if isinstance(node, list):
            return [walk(value, field) for value in node]
        return said(node, field) if isinstance(node, str) else node

    return json.dumps(walk(json.loads(content), "")).encode()


def _jsonl(content: bytes, said: Callable[[str, str], str]) -> bytes:
    return b"".join(_json(line, said) + b"\n" for line in content.splitlines())


def _csv(content: bytes, said: Callable[[str, str], str], between: str = ",") -> bytes:
    def cell(text: str, field: str) -> str:
        if text.startswith("['"):  # MedLAMA's lists
            return re.sub("'([^']*)'", lambda one: f"'{said(one[1], field)}'", text)
        return " || ".join(said(one, field) for one in text.split(" || "))

    head, *rows = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=between)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", delimiter=between)
    writer.writerow(head)
    writer.writerows([list(map(cell, row, head)) for row in rows])
    return out.getvalue().encode()


def _tsv(content: bytes, said: Callable[[str, str], str]) -> bytes:
    return _csv(content, said, "\t")


def _parquet(content: bytes, said: Callable[[str, str], str]) -> bytes:
    out = io.BytesIO()
    _frame(pd.read_parquet(io.BytesIO(content)), said).to_parquet(out)
    return out.getvalue()


def _xlsx(content: bytes, said: Callable[[str, str], str]) -> bytes:
    out = io.BytesIO()
    _frame(pd.read_excel(io.BytesIO(content)), said).to_excel(out, index=False)
    return out.getvalue()


def _frame(table: pd.DataFrame, said: Callable[[str, str], str]) -> pd.DataFrame:
    return table.apply(lambda column: column.map(lambda text: said(str(text), str(column.name))))


def _rrf(content: bytes, said: Callable[[str, str], str]) -> bytes:
    return _lines(content, lambda line: "|".join(said(one, "STR") for one in line.split("|")))


def _txt(content: bytes, said: Callable[[str, str], str]) -> bytes:
    return _lines(content, lambda line: "\t".join(said(one, "line") for one in line.split("\t")))


def _lines(content: bytes, change: Plant) -> bytes:
    return "".join(f"{change(line)}\n" for line in content.decode().split("\n")[:-1]).encode()


FORMS: Final = {
    ".xml": _xml,
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
    ".xlsx": _xlsx,
    ".RRF": _rrf,
    ".txt": _txt,
}


def canaries(data: Path) -> re.Pattern[str]:
    """What is looked for: the words that were planted, and the names of the sample world."""
    names = (data / "sample/names.txt").read_text().splitlines()
    found = [WORD, *map(re.escape, sorted(names, key=len, reverse=True))]
    return re.compile("|".join(found))


def leaks(project: Path, words: re.Pattern[str]) -> Iterator[str]:
    """Where a project tells what it must not: the files that hold one of the words, but those in
    data/ and outputs/, of which outputs/validation is for all to see."""
    for path in sorted(project.rglob("*")):
        place = path.relative_to(project)
        hidden = place.parts[0] == "data" or place.parts[:2] == (".dvc", "cache")
        if place.parts[0] == "outputs":
            hidden = place.parts[:2] != ("outputs", "validation")
        if not hidden and path.is_file():
            text = path.read_bytes().decode(errors="replace")
            if leak := words.search(text):
                yield f"{place}: {text[max(0, leak.start() - 100) : leak.end() + 20]!r}"


def spoil(folder: Path) -> None:
    """Break every column of a benchmark's tables, its ids aside, so that nearly all checks fail."""
    for path in folder.glob("*.parquet"):
        table = pd.read_parquet(path)
        for column in table:
            first = table[column].iloc[0] if len(table) else None
            if isinstance(first, str) and not column.endswith("id"):
                table[column] = table[column] + " [MASK]\x00 [Y]"
            elif isinstance(first, np.ndarray):
                table[column] = [[*items, *items, " "] for items in table[column]]
        pd.concat([table, table]).to_parquet(path, index=False)
