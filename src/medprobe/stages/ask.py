"""`medprobe ask`: a model's best answers to one prompt, over a benchmark's candidates."""

from pathlib import Path
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe import methods, places
from medprobe.errors import BadInput
from medprobe.params import Params, section
from medprobe.tables import CANDIDATE_COLUMNS, DISTRACTOR, check_prompts, read_table

K: Final = 10


def ask(model: str, prompt: str, method: str, benchmark: str, params: Params) -> None:
    """Print the ten best answers, with scores, that a method finds for a prompt with a slot `[Y]`.

    `model` is a name of params.yaml, or a folder. The answers are those of the method's first
    pass and variant: the paper's. Raises BadInput for a prompt without exactly one slot.
    """
    found = answers(model, prompt, method, benchmark, params, k=K)
    table = Table("rank", "answer", "score", title=prompt)
    for row in found.itertuples():
        table.add_row(str(row.rank), row.prediction, f"{row.score:.4f}")
    Console().print(table)


def answers(
    model: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int
) -> pd.DataFrame:
    """The first k predictions for one prompt: columns rank, prediction, score."""
    query = {
        "query_id": "ask",
        "benchmark": benchmark,
        "relation": "",
        "subject": "",
        "subject_id": "",
        "prompt": prompt,
        "answers": [],
        "answer_ids": [],
        "subset": "",
    }
    queries = pd.DataFrame([query])
    check_prompts(queries)
    candidates = read_table(places.BENCHMARKS / benchmark / "candidates.parquet", CANDIDATE_COLUMNS)
    candidates = candidates[candidates["type"] != DISTRACTOR]
    found = methods.find(method)
    if not hasattr(found, "rank"):
        raise BadInput(f"ask --method {method}", "this method ranks no candidates")
    choices = {**params.methods.get(method, {})}
    choices.pop("benchmarks", None)
    settings = section(found.Settings, choices, f"params.yaml: methods.{method}")
    folder = Path(model) if Path(model).is_dir() else places.MODELS / model
    if not Path(model).is_dir():
        params.models.find(model)
    prober = found(folder.name, folder, settings, params.engine, params.seed)
    if hasattr(prober, "sets"):
        prober.sets = params.rewire.get("sets")
    ranked = prober.rank(queries, candidates, k, methods.passes(prober)[0])
    if ranked.empty:
        raise BadInput(f"ask --method {method}", "no answer", "try another method")
    first = ranked["variant"].iloc[0]
    return ranked[ranked["variant"] == first].sort_values("rank").reset_index(drop=True)
