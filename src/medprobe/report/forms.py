"""What a page of queries shows of a prediction table: ranked names and the perplexity of prompts,
the label of an example, or where a context's target stands after each step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, metric_of_predictions, read_table

SHOWN: Final = 10  # ranked names of a query
LABELS: Final = np.array(["no", "yes"])
STEPS: Final = ["context_id", "centre", "kind", "resource", "target", "target_id", "step"]

Cells = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]
"""Of predictions of one variant and the queries: rows of `query_id, replicate, rank`, which is the
place of the cell, `prediction, prediction_id, hit`. What is no name is its own identifier."""


@dataclass(frozen=True)
class Form:
    """What the pages of a benchmark have in common."""

    queries: Callable[[Path], pd.DataFrame]  # of the benchmark in a folder, as QUERY_COLUMNS
    cells: dict[str, Cells]  # by the family of the predictions
    heads: tuple[str, ...]  # of the cells; or a column `heads` of the queries has them
    numbers: dict[str, Cells] = field(default_factory=dict)  # of cells neither right nor wrong
    ranked: bool = False  # is a query right where one of the first is, or where the last cell is?
    right: str = "right"  # said of a model
    answers: str = "Right answers"  # said before the answers
    note: str = ""


def on_page(tables: Iterable[Path]) -> tuple[Form, dict[Path, str]] | None:
    """The form of a benchmark's page and the prediction tables on it, with their families; None
    where there is none: where no answer is right or wrong."""
    families = {path: metric_of_predictions(path) for path in sorted(tables)}
    for form in FORMS:
        if not form.cells.keys().isdisjoint(families.values()):
            shown = {*form.cells, *form.numbers}
            return form, {path: name for path, name in families.items() if name in shown}
    return None


def _names(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    return predictions[predictions["rank"] <= SHOWN]


def _perplexities(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    values = predictions["perplexity"].map("perplexity {:.3g}".format)
    return predictions.assign(prediction=values, prediction_id=values, hit=False)


def _labels(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    said = LABELS[predictions["prediction"].astype(int)]
    pairs = zip(said, predictions["score"], strict=True)
    values = [f"{label}, {score:.2f}" for label, score in pairs]
    return predictions.assign(prediction=values, prediction_id=values)


def _ranks(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Of each context's target; a hit is a place above that without a context."""
    steps = queries[["query_id", "steps", "target"]].explode("steps")
    steps["place"] = steps.groupby("query_id").cumcount() + 1
    keys = ["query_id", "prediction"]
    ranks = predictions[["replicate", *keys, "rank"]]
    rows = steps.merge(ranks, left_on=["steps", "target"], right_on=keys, suffixes=("", "_"))
    rows = rows.sort_values(["query_id", "replicate", "place"])
    alone = rows.groupby(["query_id", "replicate"])["rank"].transform("first")
    values = rows["rank"].astype(str)
    rows = rows.assign(prediction=values, prediction_id=values, hit=rows["rank"] < alone)
    return rows.assign(rank=rows["place"])


def _prompts(folder: Path) -> pd.DataFrame:
    return read_table(folder / "queries.parquet", QUERY_COLUMNS)


def _examples(folder: Path) -> pd.DataFrame:
    """Those that are there to test, with a premise and a disease that may follow from it."""
    examples = read_table(folder / "examples.parquet", ["example_id", "full_hypothesis"])
    splits = read_table(folder / "splits.parquet", ["target", "split", "example_id"])
    tests = splits[splits["split"] == "test"].drop_duplicates("example_id")
    rows = examples.merge(tests[["example_id", "target"]], on="example_id")
    labels = [[label] for label in LABELS[rows["label"].astype(int)]]
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


def _contexts(folder: Path) -> pd.DataFrame:
    """A row a context, with its `steps`, which are queries, and what each of them adds."""
    steps = read_table(folder / "queries.parquet", [*QUERY_COLUMNS, *STEPS, "added_role"])
    steps = steps.sort_values(["context_id", "step"], kind="stable")
    steps = steps.drop_duplicates(["context_id", "step"])
    contexts = steps.groupby("context_id", sort=True)
    first = contexts.first().drop(columns="query_id").reset_index(names="query_id")
    heads = steps["added_role"].map("+ {}".format).where(steps["step"] > 0, "alone")
    return first.assign(
        subset=first["centre"] + ", " + first["kind"] + ", " + first["resource"],
        answers=[[name] for name in first["target"]],
        answer_ids=[[name] for name in first["target_id"]],
        steps=[*contexts["query_id"].agg(list)],
        heads=[*heads.groupby(steps["context_id"]).agg(list)],
    )


FORMS: Final = (
    Form(
        _prompts,
        {"accuracy": _names, "judgment": _names},
        tuple(map(str, range(1, SHOWN + 1))),
        {"perplexity": _perplexities},
        ranked=True,
    ),
    Form(
        _examples,
        {"f1": _labels},
        ("does it follow?",),
        note="Does the hypothesis follow from the premise? The score after each answer runs from "
        "0 (no) to 1 (yes).",
    ),
    Form(
        _contexts,
        {"ucm": _ranks},
        (),
        right="higher",
        answers="Target",
        note="The target's rank, first alone, then after each step that adds to the context. ✓ "
        "marks a rank that is higher than alone. A model is judged by the last step.",
    ),
)
