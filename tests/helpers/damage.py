"""Damaged files for every reader: a reader returns a table, or refuses the file in one line.

The tests try a few files per reader.
"""

import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from medprobe.core.errors import BadInput
from medprobe.sources import facts, rrf, triples

Read = Callable[[Path], object]  # reads a source of a data folder
Reader = tuple[str, Read]  # the file to damage, and what reads it


def file(name: str, read: Read) -> Reader:
    """A file to damage, which is read alone."""
    return name, lambda data: read(data / name)


def _triples(data: Path) -> object:
    folder = data / "triples"
    relation = triples.list_relations(folder)[0]
    return triples.read(folder, relation, "test")


READERS: Final[dict[str, Reader]] = {  # the kernel's, by name
    "MRCONSO": ("umls/MRCONSO.RRF", lambda d: rrf.read_english_names(d / "umls")),
    "MRREL": (
        "umls/MRREL.RRF",
        lambda d: rrf.read_mrrel(d / "umls", ["CUI1"], relations=["may_treat"]),
    ),
    "MRSTY": ("umls/MRSTY.RRF", lambda d: rrf.read_mrsty(d / "umls", rrf.MRSTY)),
    "triples": ("triples/triples_processed/*/test.jsonl", _triples),
    "the prompts of triples": (
        "triples/prompts/manual.jsonl",
        lambda d: triples.read_templates(d / "triples"),
    ),
    **{
        f"facts in {ending}": file(f"tables/facts.{ending}", lambda f: list(facts.read(f)))
        for ending in ("csv", "tsv", "jsonl", "parquet")
    },
    **{
        f"templates in {ending}": file(f"tables/templates.{ending}", facts.read_templates)
        for ending in ("csv", "json")
    },
}


def write_world(data: Path) -> None:
    """Write a small sample world, and the kernel's files that it lacks."""
    from medprobe.pipeline.sample import sample

    sample(data, {"queries": 20, "reserve": 8}, 1)
    triple = {"predicate_id": "R1", "sub_uri": "Q1", "sub_label": "some oil"}
    answers = {"obj_uris": ["Q2", "Q3"], "obj_labels": ["dry eye", "a cold"], "obj_types": []}
    answers["obj_aliases"] = [[], []]
    lines = [triple | answers | {"uuid": f"u{number}"} for number in (1, 2)]
    write_lines(data / "triples/triples_processed/R1/test.jsonl", lines)
    template = {"relation": "R1", "template": "[X] often treats [Y] ."}
    write_lines(data / "triples/prompts/manual.jsonl", [template, template | {"relation": "R2"}])
    (folder := data / "tables").mkdir()
    columns = ("subject", "relation", "object", "aliases")
    words = ("drug number", "ailment number", "illness number")
    rows = [
        (f"{words[0]} {n}", "treats", *(f"{word} {n}" for word in words[1:])) for n in range(20)
    ]
    table = pd.DataFrame(rows, columns=list(columns))
    table.to_csv(folder / "facts.csv", index=False)
    table.to_csv(folder / "facts.tsv", index=False, sep="\t")
    table.to_json(folder / "facts.jsonl", orient="records", lines=True)
    table.to_parquet(folder / "facts.parquet")
    (folder / "templates.csv").write_text("relation,template\ntreats,[X] often treats [Y] .\n")
    (folder / "templates.json").write_text('{"treats": {"templates": ["[X] often treats [Y] ."]}}')


def write_lines(path: Path, rows: Iterable[object]) -> None:
    """Write lines of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def find_target_file(data: Path, reader: Reader) -> Path:
    """Find the file to damage for a reader."""
    path: Path = min(data.glob(reader[0]))
    return path


def damage_content(content: bytes, rng: random.Random) -> bytes:
    """Damage a copy of a file's content in one to three places."""
    zipped = content[:2] == b"\x1f\x8b" and rng.random() < 0.7  # damage inside, or the zip itself
    content = gzip.decompress(content) if zipped else content
    for _ in range(rng.randint(1, 3)):
        content = rng.choice(DAMAGES)(content, rng)
    return gzip.compress(content) if zipped else content


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flip(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]


def _swap(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    first_line, second_line = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first_line], lines[second_line] = lines[second_line], lines[first_line]
    return b"\n".join(lines)


def _drop(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.randint(1, 80) :]


def _insert(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.choice(INSERTS) + content[place:]


def _empty(content: bytes, rng: random.Random) -> bytes:
    return rng.choice([b"", b"\n", content.split(b"\n")[0] + b"\n"])


def _field(content: bytes, rng: random.Random) -> bytes:
    """Another value in a field of a JSON line, or of a table's."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    try:
        row: Any = json.loads(lines[place])
        row[rng.choice(sorted(row))] = rng.choice(VALUES)
        lines[place] = json.dumps(row).encode()
    except (ValueError, TypeError, IndexError, AttributeError, RecursionError):
        mark = rng.choice([b",", b"|", b"\t", b"<"])
        fields = lines[place].split(mark)
        fields[rng.randrange(len(fields))] = rng.choice(INSERTS)
        lines[place] = mark.join(fields)
    return b"\n".join(lines)


DAMAGES: Final = (_truncate, _flip, _swap, _drop, _insert, _empty, _field, _field)
VALUES: Final[list[Any]] = [
    *(None, 7, -1.5, True, "", " ", "abc", "\x00", "\u200b", "\ud800", [], [None], [[]], {}),
    *({"a": [1]}, ["a", "b"], [1, 2], "x" * 200_000),
]
INSERTS: Final = [
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", "\u200b".encode(), b'"', b"'", b",", b"|", b"\t"),
    *(b"\n", b"\r", b"<", b"&x;", b"]", b"{", b"NaN", b"-1", b"1e999", b"9" * 5000, b"x" * 200_000),
    *(b"[" * 3000, b'{"a":' * 3000),
]


def try_reader(data: Path, reader: Reader, rng: random.Random) -> str:
    """Read a damaged file, and restore it.

    Returns:
        `read`, `refused`, or the crash.
    """
    path = find_target_file(data, reader)
    try:
        with content_of(data, path, damage_content(path.read_bytes(), rng)):
            reader[1](data)
    except BadInput as refusal:
        return "refused" if "\n" not in str(refusal) else f"two lines: {refusal}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:120]!r}"
    return "read"


@contextmanager
def content_of(data: Path, path: Path, content: bytes) -> Iterator[None]:
    """Give a file of a data folder another content, and restore it."""
    sound = path.read_bytes()
    try:
        path.write_bytes(content)
        yield
    finally:
        path.write_bytes(sound)
        shutil.rmtree(data.parent / "cache", ignore_errors=True)


def find_refusal(data: Path, reader: Reader, content: bytes) -> str:
    """What a reader says of a file with this content, which it refuses."""
    path = find_target_file(data, reader)
    with content_of(data, path, content), pytest.raises(BadInput) as caught:
        reader[1](data)
    assert path.name in str(caught.value)
    return str(caught.value)


def find_refusal_of_nothing(data: Path, reader: Reader) -> str:
    """What a reader says of a file without content, zipped or not."""
    is_zipped = find_target_file(data, reader).suffix == ".gz"
    return find_refusal(data, reader, gzip.compress(b"") if is_zipped else b"")
