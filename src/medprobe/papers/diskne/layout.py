"""Query pages of DisKnE: each test example, and the label that each model gave it."""

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.tables import read_table
from medprobe.report.layouts import Layout

LABELS: Final = ("no", "yes")


def _labels(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    labels = np.array(LABELS)[predictions["prediction"].astype(int)]
    pairs = zip(labels, predictions["score"], strict=True)
    values = [f"{label}, {score:.2f}" for label, score in pairs]
    return predictions.assign(prediction=values, prediction_id=values)


def _examples(folder: Path) -> pd.DataFrame:
    """The test examples as queries, with premise and hypothesis."""
    examples = read_table(folder / "examples.parquet", ["example_id", "full_hypothesis"])
    splits = read_table(folder / "splits.parquet", ["target", "split", "example_id"])
    tests = splits[splits["split"] == "test"].drop_duplicates("example_id")
    rows = examples.merge(tests[["example_id", "target"]], on="example_id")
    labels = [[label] for label in np.array(LABELS)[rows["label"].astype(int)]]
    return pd.DataFrame(
        {
            "query_id": rows["example_id"],
            "relation": rows["target"],
            "subject": rows["hypothesis"],
            "subject_id": rows["cui"],
            "prompt": rows["premise"] + " " + rows["full_hypothesis"],
            "answers": labels,
            "answer_ids": labels,
            "subset": rows["category"],
        }
    )


LAYOUT: Final = Layout(
    _examples,
    {"f1": _labels},
    ("does it follow?",),
    labels=LABELS,
    note="Does the hypothesis follow from the premise? The score after each answer runs from "
    "0 (no) to 1 (yes).",
)
