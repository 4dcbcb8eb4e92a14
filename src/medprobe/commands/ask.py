"""`medprobe ask`: a model's best answers to one prompt, over a benchmark's candidates."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe import methods
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, check_prompts

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
    plugin = methods.find(method)
    if plugin.METRIC != "accuracy":
        raise BadInput(f"ask --method {method}", "this method ranks no candidates")
    folder = Path(model) if Path(model).is_dir() else places.MODELS / model
    kind = plugin.KINDS[0] if Path(model).is_dir() else params.models.kind(model)
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
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    own = tables.candidates[tables.candidates["type"] != DISTRACTOR].assign(subset="")
    choices = params.methods.get(kind, {}).get(method, {}).get(benchmark, {})
    settings = section(
        plugin.Settings, choices, f"params.yaml: methods.{kind}.{method}.{benchmark}"
    )
    prober = plugin(folder, settings, params.engine, params.seed)
    [task] = prober.tasks(replace(tables, queries=queries, candidates=own), k)
    predictions = prober.predict(task, prober.passes()[0])
    if predictions.empty:
        raise BadInput(f"ask --method {method}", "no answer", "try another method")
    first = predictions["variant"].iloc[0]
    best = predictions[predictions["variant"] == first]
    return best.sort_values("rank").reset_index(drop=True)
