"""MedNLI and MEDIQA-NLI: pairs of a clinical note's sentence and a statement about the patient.

Sources: Romanov and Shivade 2018 (MedNLI); Ben Abacha et al. 2019 (MEDIQA-NLI). Both are licensed
and are read from where the user put them. The parses of the sentences are ignored.
"""

from pathlib import Path
from typing import Final, Literal

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, read_csv_records, read_json_records

Label = Literal["entailment", "neutral", "contradiction"]
MEDNLI: Final = ("mli_train_v1.jsonl", "mli_dev_v1.jsonl", "mli_test_v1.jsonl")
MEDIQA: Final = "mednli_bionlp19_shared_task.jsonl"
MEDIQA_LABELS: Final = "mednli_bionlp19_shared_task_ground_truth.csv"
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


def read(mednli: Path, mediqa: Path) -> pd.DataFrame:
    """Read all pairs of MedNLI and MEDIQA-NLI.

    Args:
        mednli: the folder of MedNLI's three files.
        mediqa: the folder of MEDIQA-NLI's two files.

    Returns:
        Columns `pair_id, label, premise, hypothesis`; labels are entailment, neutral,
        contradiction.

    Raises:
        BadInput: a row is malformed (with file and line), or a pair's id occurs twice.
    """
    tables = [_rows(mednli / name, {}) for name in MEDNLI]
    gold_labels = read_csv_records(mediqa / MEDIQA_LABELS, GoldLabel, GET)
    tables.append(_rows(mediqa / MEDIQA, {row.pair_id: row.label for _, row in gold_labels}))
    pairs = pd.concat(tables, ignore_index=True)
    for pair in pairs.loc[pairs["pair_id"].duplicated(), "pair_id"].head(1):
        raise BadInput(mednli, f"pair {pair} occurs twice", "download the files again")
    return pairs


def _rows(path: Path, labels: dict[str, Label]) -> pd.DataFrame:
    """The pairs of a JSONL file; `labels` are those of pairs without a gold_label."""
    rows = []
    for where, row in read_json_records(path, NliPair, GET):
        label = row.gold_label or labels.get(row.pairID)
        if label is None:
            raise BadInput(where, f"pair {row.pairID} has no label", f"look in {MEDIQA_LABELS}")
        rows.append((row.pairID, label, row.sentence1, row.sentence2))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)
