"""MedNLI- and UMLS-shaped files around the ids, spans and concepts of DisKnE's annotation files.

What an annotation points to is licensed. Here each pair gets an invented premise, and a hypothesis
that has an invented name of the disease at the annotated span; each concept invented names.
"""

import json
import random
import zlib
from pathlib import Path

import pandas as pd

from medprobe.papers.diskne import mednli
from medprobe.papers.diskne.annotation import is_premise, read_released
from papers.diskne import diskne_world

SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
CATEGORIES = {  # how often a premise names a disease, in per cent
    "terminological": 90
}


def word(rng: random.Random, length: int) -> str:
    """An invented word of so many letters."""
    return "".join(rng.choices(SYLLABLES, k=length // 2 + 1))[:length]


def name(key: str, length: int) -> str:
    """An invented name of so many characters, always the same for a key."""
    rng = random.Random(zlib.crc32(f"{key} {length}".encode()))
    if length < 5:
        return "".join(rng.choices("BCDFGKLMNPRSTVXZ", k=length))
    head = length - 1 - min(8, length // 2)
    return f"{word(rng, head)} {word(rng, length - 1 - head)}"


def write(data: Path, *folders: Path, premises: bool = True) -> None:
    """Write `mednli/`, `mediqa/` and `umls/` below `data`, around the annotation files of these
    folders. Without `premises`, no pair has the premises that stand in place of ids."""
    paths = sorted(path for folder in folders for path in folder.glob("DisknE_*_annotation.csv"))
    rows = pd.concat([read_released(path) for path in paths])
    write_pairs(data, rows[rows["label"] == 1].drop_duplicates("pair_id"), premises=premises)
    write_umls(data / "umls", sorted({*rows["cui"], *rows["original_cui"]}))


def write_pairs(data: Path, positives: pd.DataFrame, *, premises: bool) -> None:
    texts = []
    rng = random.Random(1)
    odd = is_premise(positives["pair_id"])
    for row, by_premise in zip(positives.itertuples(), odd, strict=True):
        premise = " ".join(word(rng, rng.randint(4, 9)) for _ in range(rng.randint(5, 15)))
        if rng.randrange(100) < CATEGORIES.get(str(row.category), 10):
            premise += f" , history of {name(row.cui, 20)}"
        disease = name(row.cui, row.end - row.start)
        before = ("The patient has had a long lasting and proven case of " * 3)[: row.start]
        pair = row.pair_id
        if by_premise:
            premise, pair = (f"{pair} .", f"{len(texts):08x}-0000-11e7-0000-000000000000")
        if not by_premise or premises:
            texts.append((pair, premise, f"{before}{disease} .", "entailment"))
            texts.append((f"{pair}-n", premise, "The patient is well .", "neutral"))
    lines = [
        json.dumps(
            dict(zip(("pairID", "sentence1", "sentence2", "gold_label"), pair_text, strict=True))
        )
        for pair_text in texts
    ]
    for place, file in enumerate(mednli.MEDNLI):
        diskne_world.lines(data / "mednli" / file, lines[place::3])
    diskne_world.lines(data / "mediqa" / mednli.MEDIQA, [diskne_world.other_pair(0)])
    diskne_world.write_csv(data / "mediqa" / mednli.MEDIQA_LABELS, [["pair_id", "label"]])


def write_umls(folder: Path, cuis: list[str]) -> None:
    rows = []
    for cui in cuis:
        for place, concept_name in enumerate((name(cui, 20), name(cui, 13), name(cui, 4))):
            rank, term = ("S", "SY") if place else ("P", "PT")
            rows.append(
                f"{cui}|ENG|{rank}|L|PF|S|Y|A{place}||||SNOMEDCT_US|{term}|{cui}|{concept_name}|9|N||"
            )
    diskne_world.lines(folder / "MRCONSO.RRF", rows)
    parents = [
        f"{cui}||CUI|PAR|C9999999||CUI|inverse_isa|R{row}||SNOMEDCT_US|SNOMEDCT_US|||N||"
        for row, cui in enumerate(cuis)
    ]
    diskne_world.lines(folder / "MRREL.RRF", parents)
