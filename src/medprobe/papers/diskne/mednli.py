"""MedNLI and MEDIQA-NLI: pairs of a clinical note's sentence and a statement about the patient.

Sources: Romanov and Shivade 2018 (MedNLI); Ben Abacha et al. 2019 (MEDIQA-NLI). Both are licensed
and are read from where the user put them. The parses of the sentences are ignored.
"""

from collections import Counter
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, read_csv_records, read_json_records

Label = Literal["entailment", "neutral", "contradiction", "-"]
MEDNLI: Final = ("mli_train_v1.jsonl", "mli_dev_v1.jsonl", "mli_test_v1.jsonl")
MEDIQA: Final = "mednli_bionlp19_shared_task.jsonl"
MEDIQA_LABELS: Final = "mednli_bionlp19_shared_task_ground_truth.csv"
UNDECIDED: Final = "-"  # the label of a pair on which the annotators did not agree
COLUMNS: Final = ["pair_id", "label", "premise", "hypothesis"]
GET: Final = "get it from PhysioNet and put it there"


class NliPair(Record):
    """A line of MedNLI, or of MEDIQA-NLI, which has its labels in a separate file."""

    pairID: Name  # noqa: N815 - a field of the file
    sentence1: str
    sentence2: str
    gold_label: Label | None = None


class GoldLabel(Record):
    """A row of MEDIQA-NLI's ground truth."""

    pair_id: Name
    label: Label


def read(mednli: Path, mediqa: Path, dropped: Counter[str] | None = None) -> pd.DataFrame:
    """Read all pairs of MedNLI and MEDIQA-NLI.

    Returns:
        Columns `pair_id, label, premise, hypothesis`; labels are entailment, neutral,
        contradiction.

    Pairs on which their annotators did not agree (label `-`) are left out.
    """
    tables = [_rows(mednli / name, {}) for name in MEDNLI]
    labels = _read_labels(mediqa / MEDIQA_LABELS)
    tables.append(_rows(mediqa / MEDIQA, {pair: label for pair, (_, label) in labels.items()}))
    ids = set(tables[-1]["pair_id"])
    for pair, (where, _) in labels.items():
        if pair not in ids:
            raise BadInput(where, f"pair {pair} is not in {MEDIQA}", "download both files again")
    pairs = pd.concat(tables, ignore_index=True)
    for pair in pairs.loc[pairs["pair_id"].duplicated(), "pair_id"].head(1):
        raise BadInput(mednli, f"pair {pair} occurs twice", "download the files again")
    is_undecided = pairs["label"] == UNDECIDED
    if dropped is not None:
        dropped["pair: without a decision"] += int(is_undecided.sum())
    return pairs[~is_undecided].reset_index(drop=True)


def _read_labels(path: Path) -> dict[str, tuple[str, str]]:
    """Return the place and the label of each pair of MEDIQA-NLI's ground truth."""
    labels: dict[str, tuple[str, str]] = {}
    for where, row in read_csv_records(path, GoldLabel, GET):
        if row.pair_id in labels:
            line = labels[row.pair_id][0].rpartition(" ")[2]
            problem = f"pair {row.pair_id} has a label on line {line} already"
            raise BadInput(where, problem, "leave the right one")
        labels[row.pair_id] = (where, row.label)
    return labels


def _rows(path: Path, labels: dict[str, str]) -> pd.DataFrame:
    """The pairs of a JSONL file; `labels` are those of pairs without a gold_label."""
    rows = []
    for where, row in read_json_records(path, NliPair, GET):
        label = row.gold_label or labels.get(row.pairID)
        if label is None:
            raise BadInput(where, f"pair {row.pairID} has no label", f"look in {MEDIQA_LABELS}")
        rows.append((row.pairID, label, row.sentence1, row.sentence2))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)
