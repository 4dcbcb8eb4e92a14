"""Damaged files for every reader: a reader returns a table, or refuses the file in one line.

The tests try a few files per reader, `python -m bench.faults` a thousand.
"""

import gzip
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.context import articles, notes, texts
from medprobe.papers.diskne import annotation, cui2vec, hierarchy, mednli
from medprobe.papers.medlama import sentences, sheets
from medprobe.papers.medlama import source as medlama
from medprobe.papers.template_free import entities, lama, lipid, pubmed
from medprobe.sources import facts, rrf
from medprobe.sources import triples as biolama

Read = Callable[[Path], object]  # reads a source of a data folder


def _file(name: str, read: Read) -> tuple[str, Read]:
    """A file to damage, which is read alone."""
    return name, lambda data: read(data / name)


def _notes(path: Path) -> object:
    return list(notes.read(path, Counter()))


def _biolama(data: Path) -> object:
    folder = data / "biolama/ctd"
    relation = biolama.list_relations(folder)[0]
    return biolama.read(folder, relation, "test")


def _pubmed(folder: Path) -> object:
    return [list(pubmed.read_records(path)) for path in pubmed.list_files(folder)]


def _ratings(ending: str) -> tuple[str, Read]:
    """An expert's sheet of this format, and what reads it."""
    folder = f"sheets-{ending}"
    items = pd.DataFrame({"item": ["a-1", "a-2"], "asked": "prompts"})
    return f"{folder}/anna.{ending}", lambda data: sheets.read_ratings(data / folder, items)


READERS: Final[dict[str, tuple[str, Read]]] = {  # by name: the file to damage, and what reads it
    "MRCONSO": ("umls/MRCONSO.RRF", lambda d: rrf.read_english_names(d / "umls")),
    "MRREL": (
        "umls/MRREL.RRF",
        lambda d: rrf.read_mrrel(d / "umls", ["CUI1"], relations=["may_treat"]),
    ),
    "MRSTY": ("umls/MRSTY.RRF", lambda d: rrf.read_mrsty(d / "umls", rrf.MRSTY)),
    "hierarchy": ("umls/MRREL.RRF", lambda d: hierarchy.Hierarchy.read(d / "umls")),
    "MedLAMA": _file("released/may_treat_2.csv", lambda f: medlama.read_queries(f, "may_treat")),
    "BioLAMA": ("biolama/ctd/triples_processed/*/test.jsonl", _biolama),
    "BioLAMA's prompts": (
        "biolama/ctd/prompts/manual.jsonl",
        lambda d: biolama.read_templates(d / "biolama/ctd"),
    ),
    "Google-RE": (
        "lama/Google_RE/place_of_birth_test.jsonl",
        lambda d: list(lama.read_google_re(d / "lama")),
    ),
    "T-REx": ("lama/TREx/P19.jsonl", lambda d: list(lama.read_trex(d / "lama"))),
    "ConceptNet": ("lama/ConceptNet/test.jsonl", lambda d: list(lama.read_conceptnet(d / "lama"))),
    "SQuAD": ("lama/Squad/test.jsonl", lambda d: list(lama.read_squad(d / "lama"))),
    "LAMA's templates": ("lama/relations.jsonl", lambda d: lama.read_templates(d / "lama")),
    "PubMed": ("pubmed/*.xml.gz", lambda d: _pubmed(d / "pubmed")),
    "an entity list": _file("entities/chemicals.txt", entities.read_names),
    "CHEMDNER": _file("entities/c.annotations.txt", entities.read_names),
    "notes": _file("notes/NOTEEVENTS.csv", _notes),
    "zipped notes": _file("notes/NOTEEVENTS.csv.gz", _notes),
    "articles": ("articles/*.xml", lambda d: list(articles.read(d / "articles", Counter()))),
    "texts": ("texts/a.jsonl", lambda d: list(texts.read(d / "texts", Counter()))),
    "plain texts": ("texts/b.txt", lambda d: list(texts.read(d / "texts", Counter()))),
    "sentences": _file("sentences/set-0.txt", sentences.read_sentences),
    "cui2vec": (
        "cui2vec/cui2vec_pretrained.csv",
        lambda d: cui2vec.read(d / "cui2vec/cui2vec_pretrained.csv", d.parent / "cache"),
    ),
    "MedNLI": ("mednli/mli_dev_v1.jsonl", lambda d: mednli.read(d / "mednli", d / "mediqa")),
    "MEDIQA": (
        "mediqa/mednli_bionlp19_shared_task_ground_truth.csv",
        lambda d: mednli.read(d / "mednli", d / "mediqa"),
    ),
    "the annotation": _file("diskne/annotation.csv", annotation.read_sheet),
    "the released annotation": _file(
        "released/DisknE_symptoms_annotation.csv", annotation.read_released
    ),
    **{
        f"facts in {ending}": _file(f"tables/facts.{ending}", lambda f: list(facts.read(f)))
        for ending in ("csv", "tsv", "jsonl", "parquet")
    },
    **{
        f"templates in {ending}": _file(f"tables/templates.{ending}", facts.read_templates)
        for ending in ("csv", "json")
    },
    **{f"ratings in {ending}": _ratings(ending) for ending in ("csv", "xlsx")},
    "LIPID's prompts": _file("released/LIPID.json", lipid.read),
}


def write_world(data: Path) -> None:
    """Write a small sample world, and files of the formats that it lacks."""
    from medprobe.pipeline.sample import sample

    sample(data, {"queries": 20, "reserve": 8}, 1)
    (data / "texts").mkdir()
    rows = [json.dumps({"id": str(n), "text": f"some text {n}"}) for n in range(20)]
    (data / "texts/a.jsonl").write_text("\n".join(rows) + "\n")
    (data / "texts/b.txt").write_text("a text of its own\n" * 20)
    row = "123\tT\t0\t8\t{}\tTRIVIAL\n"
    names = "".join(
        row.format(name) for name in ("acid of aspirin", "Acid of aspirin", "ibuprofen")
    )
    (data / "entities/c.annotations.txt").write_text(names)
    plain = data / "notes/NOTEEVENTS.csv"
    (data / "notes/NOTEEVENTS.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    released = data / "released"
    released.mkdir()
    head = ",".join(medlama.COLUMNS)
    line = "C1,some oil,may_treat,\"['C2', 'C3']\",\"['dry eye', 'cold']\",dry eye || cold,C2 || C3"
    line += ",2,2,0.0,0.5"
    (released / "may_treat_2.csv").write_text(f"{head}\n{line}\n{line}\n")
    head = "pair_id,CUI,label,original_cui,start_index,end_index,category"
    line = "p1,C0000001,entailment,C0000001,0,4,symptoms_diseases"
    (released / "DisknE_symptoms_annotation.csv").write_text(f"{head}\n{line}\n{line}\n")
    prompts = [{"type": "gene", "prompt": f"{n} is [MASK].", "answer": f"G{n}"} for n in range(9)]
    (released / "LIPID.json").write_text(json.dumps(prompts, indent=1))
    _tables(data)


def _tables(data: Path) -> None:
    """Facts, templates and filled sheets, each in all forms."""
    folder = data / "tables"
    folder.mkdir()
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
    sheet = pd.DataFrame({"item": ["a-1", "a-2"], "text": "some text", "rating": ["yes", "no"]})
    for ending, write in (("csv", sheet.to_csv), ("xlsx", sheet.to_excel)):
        (data / f"sheets-{ending}").mkdir()
        write(data / f"sheets-{ending}/anna.{ending}", index=False)


def find_target_file(data: Path, reader: str) -> Path:
    """Find the file to damage for a reader."""
    path: Path = min(data.glob(READERS[reader][0]))
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


def try_reader(data: Path, reader: str, rng: random.Random) -> str:
    """Read a damaged file, and restore it.

    Returns:
        `read`, `refused`, or the crash.
    """
    path = find_target_file(data, reader)
    sound = path.read_bytes()
    try:
        path.write_bytes(damage_content(sound, rng))
        READERS[reader][1](data)
    except BadInput as refusal:
        return "refused" if "\n" not in str(refusal) else f"two lines: {refusal}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:120]!r}"
    finally:
        path.write_bytes(sound)
        shutil.rmtree(data.parent / "cache", ignore_errors=True)
    return "read"


def try_all_readers(data: Path, cases: int) -> Iterator[tuple[str, Counter[str]]]:
    """Yield each reader with the counts of its results on so many damaged files."""
    for reader in READERS:
        yield reader, Counter(try_reader(data, reader, random.Random(n)) for n in range(cases))
