"""A small made-up project on disk: a benchmark of known answers, and predictions of known rank."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from medprobe import methods
from medprobe.core.params import ModelParams, Models, Params
from medprobe.core.places import PARTS
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    Metadata,
    write_predictions,
)
from medprobe.methods import Method
from medprobe.pipeline.stages.score import score

METADATA = Metadata("made-up facts", "nobody, never", "none", (), "acc_at_1", invented=True)
METHODS = ("answering", "contrastive", "likelihood", "perplexity")
NAMED: dict[str, Any] = {  # what `project` has, as sections of params.yaml
    "benchmarks": {"medlama": {"made_up": {}}},
    "models": Models(masked={"taught": ModelParams(), "untaught": ModelParams()}),
    "methods": {"masked": {method: {"made_up": {}} for method in METHODS}},
}
NAMES = ["alba", "brena", "corvin", "a long name of some fever", "a very long name of an ailment"]
CANDIDATES = pd.DataFrame(
    [(name, f"C{i}", "", "full") for i, name in enumerate(NAMES)], columns=CANDIDATE_COLUMNS
)


def query(number: int, relation: str = "may_treat", subset: str = "full", answer: int = 0) -> tuple:
    name = f"{subset}-{relation}-{number}"
    prompt = f"drug {number} might treat [Y] ."
    answers = ([NAMES[answer]], [f"C{answer}"])
    return (name, "made_up", relation, f"drug {number}", f"S{number}", prompt, *answers, subset)


def queries(*rows: tuple) -> pd.DataFrame:
    """Each query is a cluster of its own."""
    table = pd.DataFrame(list(rows), columns=QUERY_COLUMNS)
    return table.assign(cluster=table["query_id"], answer=table["query_id"])


def ranked(query_id: str, hits: str, variant: str = "", replicate: str = "") -> list[tuple]:
    """Predictions of one query from a picture of its ranks: `.x.` is a hit at rank 2 of 3."""
    return [
        (variant, replicate, query_id, rank, f"name {rank}", f"C{rank}", -float(rank), mark == "x")
        for rank, mark in enumerate(hits, 1)
    ]


def predictions(*parts: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame([row for part in parts for row in part], columns=PREDICTION_COLUMNS)


VARIANTS = ("", "original", "step-50", "step-100")


def project(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variants: Sequence[str] = VARIANTS
) -> None:
    """Work in `folder`, with the benchmark `made_up` and two models' predictions of it: `taught`
    is right on 15 of 20 queries at rank 1, `untaught` on 1."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    find, absent = methods.find, {*METHODS} - {*methods.list_names()}  # in the kernel alone
    monkeypatch.setattr(methods, "find", lambda name: Method if name in absent else find(name))
    rows = [query(i, r, answer=i % 5) for r in ("may_treat", "may_prevent") for i in range(10)]
    query_table = queries(*rows)
    folder = Path("outputs/benchmarks/made_up")
    BenchmarkTables(query_table, CANDIDATES, builder="medlama").write(folder)
    METADATA.write(Path("outputs/about/made_up.json"))
    for model, right in (("taught", 15), ("untaught", 1)):
        parts = [
            ranked(name, "x.." if i < right - (5 if variant else 0) else "...", variant, replicate)
            for variant in variants
            for replicate in ("set-0", "set-1")
            for i, name in enumerate(query_table["query_id"])
        ]
        path = Path(f"outputs/predictions/{model}/contrastive/made_up.parquet")
        write_predictions(predictions(*parts), path, "accuracy")


STORED: dict[str, Path] = {}  # by the settings of scoring, the parts of a project


def score_once(params: Params) -> None:
    """Score `project`; what another test's project has stored of the same scores is used again."""
    if stored := STORED.get(params.score.model_dump_json()):
        shutil.copytree(stored, PARTS, dirs_exist_ok=True)
    score(params)
    STORED[params.score.model_dump_json()] = PARTS.resolve()
