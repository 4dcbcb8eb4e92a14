"""MedNLI and MEDIQA-NLI: pairs of a clinical note's sentence and a statement about the patient.

Sources: Romanov and Shivade 2018 (MedNLI); Ben Abacha et al. 2019 (MEDIQA-NLI). Both are licensed
and are read from where the user put them. Parses that stand beside the sentences are ignored.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput

LABELS: Final = ("entailment", "neutral", "contradiction")
MEDNLI: Final = ("mli_train_v1.jsonl", "mli_dev_v1.jsonl", "mli_test_v1.jsonl")
MEDIQA: Final = "mednli_bionlp19_shared_task.jsonl"
MEDIQA_LABELS: Final = "mednli_bionlp19_shared_task_ground_truth.csv"
COLUMNS: Final = ["pair_id", "label", "premise", "hypothesis"]


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
    for where, line in _lines(path):
        try:
            row = json.loads(line)
            pair, premise, hypothesis = (row[k] for k in ("pairID", "sentence1", "sentence2"))
        except (ValueError, KeyError, TypeError):
            problem = "expected a JSON object with pairID, sentence1 and sentence2"
            raise BadInput(where, problem, "fetch the file anew") from None
        label = row.get("gold_label", labels.get(pair))
        if label is None:
            raise BadInput(where, f"pair {pair} has no label", f"look for it in {MEDIQA_LABELS}")
        rows.append((pair, _label(where, label), premise, hypothesis))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)


def _labels(path: Path) -> dict[str, str]:
    """Label by pair id, from MEDIQA-NLI's ground truth (`pair_id,label`)."""
    rows = list(csv.reader(line for _, line in _lines(path)))
    if not rows or [name.strip() for name in rows[0]] != ["pair_id", "label"]:
        raise BadInput(f"{path}, line 1", "expected the header pair_id,label")
    labels = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 2:
            raise BadInput(f"{path}, line {number}", f"{len(row)} fields, expected 2")
        labels[row[0]] = _label(f"{path}, line {number}", row[1])
    return labels


def _label(where: str, label: str) -> str:
    if label not in LABELS:
        raise BadInput(where, f"label {label!r}", f"expected one of {', '.join(LABELS)}")
    return label


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """`(file and line number, line)` of the lines that are not blank."""
    if not path.is_file():
        raise BadInput(path, "no such file", "get it from PhysioNet and put it there")
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}, line {number}", line
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "fetch the file anew") from None
