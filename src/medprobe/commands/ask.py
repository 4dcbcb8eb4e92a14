"""`medprobe ask`: a model's best answers to one prompt, over a benchmark's candidates."""

from dataclasses import replace
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe import methods
from medprobe.commands import asked
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import DISTRACTOR, QUERY_COLUMNS, BenchmarkTables, check_prompts

K: Final = 10


def ask(model: str, prompt: str, method: str, benchmark: str, params: Params) -> None:
    """Print the ten best answers, with scores, that a method finds for a prompt with a slot `[Y]`,
    and which of them are right where the benchmark has this prompt.

    `model` is a name of params.yaml, or a folder. The answers are those of the method's first
    pass and variant: the paper's. Raises BadInput for a prompt without exactly one slot.
    """
    found = answers(model, prompt, method, benchmark, params, k=K)
    columns = ["rank", "answer", "score", *(["right"] if "hit" in found else [])]
    table = Table(*columns, title=prompt)
    for row in found.to_dict("records"):
        right = ["yes" if row["hit"] else "no"] if "hit" in found else []
        table.add_row(str(row["rank"]), row["prediction"], f"{row['score']:.4f}", *right)
    Console().print(table)


def answers(
    model: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int
) -> pd.DataFrame:
    """The first k predictions for one prompt: columns rank, prediction, score, and hit where the
    benchmark has a query of this prompt."""
    plugin = methods.find(method)
    if plugin.METRIC != "accuracy":
        able = [name for name in methods.names() if methods.find(name).METRIC == "accuracy"]
        raise BadInput(
            f"ask --method {method}", "it ranks no candidates", f"one of {', '.join(able)}"
        )
    tables = asked.tables(benchmark, params)
    own = tables.candidates[tables.candidates["type"] != DISTRACTOR].assign(subset="")
    queries, known = _queries(prompt, tables)
    check_prompts(queries)
    prober = asked.prober(model, method, benchmark, params)
    asked_now = replace(tables, queries=queries, candidates=own.drop_duplicates("name"))
    [task] = prober.tasks(asked_now, k)
    predictions = prober.predict(task, prober.passes()[0])
    if predictions.empty:
        raise BadInput(f"ask --method {method}", "no answer", "try another method")
    first = predictions["variant"].iloc[0]
    best = predictions[(predictions["variant"] == first) & (predictions["rank"] <= k)]
    best = best.sort_values("rank").reset_index(drop=True)
    return with_hits(best, asked_now) if known else best.drop(columns="hit", errors="ignore")


def _queries(prompt: str, tables: BenchmarkTables) -> tuple[pd.DataFrame, bool]:
    """The prompt as a table of one query: the benchmark's own, where it has it. Is it known?"""
    own = tables.queries[tables.queries["prompt"] == prompt].head(1)
    if len(own):
        return own.assign(subset="").reset_index(drop=True), True
    blank = dict.fromkeys(QUERY_COLUMNS, "")
    query = {**blank, "query_id": "ask", "prompt": prompt, "answers": [], "answer_ids": []}
    return pd.DataFrame([query]), False
