"""The layouts of query pages.

They show ranked names and the perplexity of prompts, the labels of examples, or the rank of a
context's target after each step.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, metric_of_predictions, read_table

DEPTH: Final = 10  # ranked names of a query
LABELS: Final = np.array(["no", "yes"])
STEPS: Final = ["context_id", "centre", "kind", "resource", "target", "target_id", "step"]

Cells = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]
"""From the predictions of one variant and the queries: rows with `query_id`, `replicate`, `rank`
(the number of the cell), `prediction`, `prediction_id` and `hit`. A number or label is its own
identifier."""


@dataclass(frozen=True)
class Layout:
    """What the query pages of a kind of benchmark contain."""

    queries: Callable[[Path], pd.DataFrame]  # of the benchmark in a folder, as QUERY_COLUMNS
    cells: dict[str, Cells]  # by the family of the predictions
    heads: tuple[str, ...]  # of the cells; if empty, a column `heads` of the queries has them
    numbers: dict[str, Cells] = field(default_factory=dict)  # of cells neither right nor wrong
    ranked: bool = False  # whether any of the first cells can be right, or only the last cell
    verdict: str = "right"  # the word for a successful model
    answers: str = "Right answers"  # the label of the answers
    note: str = ""


def find_layout(tables: Iterable[Path]) -> tuple[Layout, dict[Path, str]] | None:
    """Find the layout of a benchmark's query page.

    Args:
        tables: the prediction tables of the benchmark.

    Returns:
        The layout, and the tables on the page with their families; None if no answer is right or
        wrong, so that there is no page.
    """
    families = {path: metric_of_predictions(path) for path in sorted(tables)}
    for layout in LAYOUTS:
        if not layout.cells.keys().isdisjoint(families.values()):
            names = {*layout.cells, *layout.numbers}
            return layout, {path: name for path, name in families.items() if name in names}
    return None


def _names(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    return predictions[predictions["rank"] <= DEPTH]


def _perplexities(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    values = predictions["perplexity"].map("perplexity {:.3g}".format)
    return predictions.assign(prediction=values, prediction_id=values, hit=False)


def _labels(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    labels = LABELS[predictions["prediction"].astype(int)]
    pairs = zip(labels, predictions["score"], strict=True)
    values = [f"{label}, {score:.2f}" for label, score in pairs]
    return predictions.assign(prediction=values, prediction_id=values)


def _ranks(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """The ranks of each context's target; a hit is a better rank than without a context."""
    steps = queries[["query_id", "steps", "target"]].explode("steps")
    steps["place"] = steps.groupby("query_id").cumcount() + 1
    keys = ["query_id", "prediction"]
    ranks = predictions[["replicate", *keys, "rank"]]
    rows = steps.merge(ranks, left_on=["steps", "target"], right_on=keys, suffixes=("", "_"))
    rows = rows.sort_values(["query_id", "replicate", "place"])
    without_context = rows.groupby(["query_id", "replicate"])["rank"].transform("first")
    values = rows["rank"].astype(str)
    rows = rows.assign(prediction=values, prediction_id=values, hit=rows["rank"] < without_context)
    return rows.assign(rank=rows["place"])


def _prompts(folder: Path) -> pd.DataFrame:
    return read_table(folder / "queries.parquet", QUERY_COLUMNS)


def _examples(folder: Path) -> pd.DataFrame:
    """The test examples as queries, with premise and hypothesis."""
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
    """One row per context, with its queries in `steps` and what each step adds in `heads`."""
    steps = read_table(folder / "queries.parquet", [*QUERY_COLUMNS, *STEPS, "added_role"])
    steps = steps.sort_values(["context_id", "step"], kind="stable")
    steps = steps.drop_duplicates(["context_id", "step"])
    contexts = steps.groupby("context_id", sort=True)
    starts = contexts.first().drop(columns="query_id").reset_index(names="query_id")
    heads = steps["added_role"].map("+ {}".format).where(steps["step"] > 0, "alone")
    return starts.assign(
        subset=starts["centre"] + ", " + starts["kind"] + ", " + starts["resource"],
        answers=[[name] for name in starts["target"]],
        answer_ids=[[name] for name in starts["target_id"]],
        steps=[*contexts["query_id"].agg(list)],
        heads=[*heads.groupby(steps["context_id"]).agg(list)],
    )


LAYOUTS: Final = (
    Layout(
        _prompts,
        {"accuracy": _names, "judgment": _names},
        tuple(map(str, range(1, DEPTH + 1))),
        {"perplexity": _perplexities},
        ranked=True,
    ),
    Layout(
        _examples,
        {"f1": _labels},
        ("does it follow?",),
        note="Does the hypothesis follow from the premise? The score after each answer runs from "
        "0 (no) to 1 (yes).",
    ),
    Layout(
        _contexts,
        {"ucm": _ranks},
        (),
        verdict="higher",
        answers="Target",
        note="The target's rank without a context, then after each step that adds to the context. "
        "✓ marks a better rank than without a context. The last step counts.",
    ),
)
