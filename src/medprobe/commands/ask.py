"""`medprobe ask`: a model's best answers to one prompt, over a benchmark's candidates."""

from dataclasses import replace
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe import methods
from medprobe.commands import asked
from medprobe.core.errors import BadInput
from medprobe.core.params import MODEL_KINDS, Params
from medprobe.core.tables import DISTRACTOR
from medprobe.library import model as library

DEFAULTS: Final = ("contrastive", "likelihood")  # every model can be asked by one of them


def ask(model: str, prompt: str, method: str | None, benchmark: str, params: Params) -> None:
    """Print the ten best answers, with scores, that a method finds for a prompt with a slot `[Y]`,
    and which of them are right where the benchmark has this prompt.

    `model` is a name of params.yaml, or a folder; without a `method` the first of DEFAULTS that
    can ask it is taken. The answers are those of the method's first
    pass and variant: the paper's. Raises BadInput for a prompt without exactly one slot.
    """
    if method is None:
        serves = {*asked.model(model, params).kinds}
        method = next((one for one in DEFAULTS if serves & {*methods.find(one).KINDS}), DEFAULTS[0])
    found = answers(model, prompt, method, benchmark, params)
    columns = ["rank", "answer", "score", *(["right"] if "hit" in found else [])]
    table = Table(*columns, title=f"{prompt} ({method})")
    for row in found.to_dict("records"):
        right = ["yes" if row["hit"] else "no"] if "hit" in found else []
        table.add_row(str(row["rank"]), row["prediction"], f"{row['score']:.4f}", *right)
    Console().print(table)


def answers(
    model: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int = methods.K
) -> pd.DataFrame:
    """The first k predictions for one prompt: columns rank, prediction, score, and hit where the
    benchmark has a query of this prompt."""
    if methods.find(method).METRIC != library.ANSWERS:
        able = ", ".join(library.answering(MODEL_KINDS))
        raise BadInput(f"ask --method {method}", "it ranks no candidates", f"one of {able}")
    tables = asked.tables(benchmark, params)
    own = tables.candidates[tables.candidates["type"] != DISTRACTOR]
    queries = tables.queries[tables.queries["prompt"] == prompt].head(1).reset_index(drop=True)
    if queries.empty:
        queries, own = library.asked(prompt).assign(benchmark=benchmark), own.assign(subset="")
    own = own[own["subset"] == queries["subset"].item()]
    asking = asked.model(model, params)
    prober = asking.prober(method, asked.settings(asking, method, benchmark, params))
    asked_now = replace(tables, queries=queries, candidates=own.drop_duplicates("name"))
    return library.answers(prober, asked_now, k)
