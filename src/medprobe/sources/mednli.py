"""MedNLI and MEDIQA-NLI: pairs of a clinical note's sentence and a statement about the patient.

Sources: Romanov and Shivade 2018 (MedNLI); Ben Abacha et al. 2019 (MEDIQA-NLI). Both are licensed
and are read from where the user put them. Parses that stand beside the sentences are ignored.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, quoted
from medprobe.sources.jsonl import Record, records

LABELS: Final = ("entailment", "neutral", "contradiction")
MEDNLI: Final = ("mli_train_v1.jsonl", "mli_dev_v1.jsonl", "mli_test_v1.jsonl")
MEDIQA: Final = "mednli_bionlp19_shared_task.jsonl"
MEDIQA_LABELS: Final = "mednli_bionlp19_shared_task_ground_truth.csv"
COLUMNS: Final = ["pair_id", "label", "premise", "hypothesis"]
GET: Final = "get it from PhysioNet and put it there"


class Pair(Record):
    """A line of MedNLI, or of MEDIQA-NLI, where labels stand in a file of their own."""

    pairID: str
    sentence1: str
    sentence2: str
    gold_label: str | None = None


def read(mednli: Path, mediqa: Path) -> pd.DataFrame:
    """All pairs of MedNLI's three files in `mednli` and of MEDIQA-NLI's in `mediqa`.

    Columns `pair_id, label, premise, hypothesis`; labels are entailment, neutral, contradiction.
    Raises BadInput with the file and line of the first row that is amiss, and for an id twice.
    """
    tables = [_rows(mednli / name, {}) for name in MEDNLI]
    tables.append(_rows(mediqa / MEDIQA, _labels(mediqa / MEDIQA_LABELS)))
    pairs = pd.concat(tables, ignore_index=True)
    for pair in pairs.loc[pairs["pair_id"].duplicated(), "pair_id"].head(1):
        raise BadInput(mednli, f"pair {pair} stands there twice", "fetch the files anew")
    return pairs


def _rows(path: Path, labels: dict[str, str]) -> pd.DataFrame:
    """The pairs of a JSONL file; `labels` are those of pairs without a gold_label."""
    rows = []
    for where, row in records(path, Pair, GET):
        label = labels.get(row.pairID) if row.gold_label is None else row.gold_label
        if label is None:
            raise BadInput(where, f"pair {row.pairID} has no label", f"look in {MEDIQA_LABELS}")
        rows.append((row.pairID, _label(where, label), row.sentence1, row.sentence2))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)


def _labels(path: Path) -> dict[str, str]:
    """Label by pair id, from MEDIQA-NLI's ground truth (`pair_id,label`)."""
    labels = {}
    for number, row in enumerate(_table(path), start=1):
        where = f"{path}, line {number}"
        if len(row) != 2:
            raise BadInput(where, f"{len(row)} fields, expected 2")
        if number == 1:
            if [name.strip() for name in row] != ["pair_id", "label"]:
                raise BadInput(where, "expected the header pair_id,label")
        else:
            labels[row[0]] = _label(where, row[1])
    return labels


def _table(path: Path) -> Iterator[list[str]]:
    """The rows of a CSV file that are not blank."""
    if not path.is_file():
        raise BadInput(path, "no such file", GET)
    try:
        text = path.read_bytes().decode("utf-8")
        yield from filter(None, csv.reader(text.splitlines()))
    except csv.Error as error:
        raise BadInput(path, f"no CSV file: {error}", "fetch the file anew") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "fetch the file anew") from None


def _label(where: str, label: str) -> str:
    if label not in LABELS:
        raise BadInput(where, f"label {quoted(label)}", f"expected one of {', '.join(LABELS)}")
    return label
