"""What families cost: four wordings under three names against the benchmark's own query.

    python -m bench.families            # after `dvc repro`, with the sample world's models
    python -m bench.families --facts 1  # a single fact

Both are tasks of the same facts and candidates, each with a model of its own that has read nothing.
What wordings and names share (vectors of candidates, their tokens and tries) is computed once a
task. Prints CPU seconds, the tokens that the network reads (padding counted), and their ratios.
"""

import argparse
import time
from collections.abc import Callable
from typing import Final

import pandas as pd

from bench.made import CPU
from medprobe.benchmarks.families import FamilySettings, SubjectName, Wording, with_families
from medprobe.core.places import BENCHMARKS, MODELS
from medprobe.core.tables import FAMILIES, ORIGINAL, BenchmarkTables
from medprobe.engine.load import token_counter, use_threads
from medprobe.extensions.likelihood.methods.likelihood import Likelihood
from medprobe.methods import Method, Task
from medprobe.methods.mask_average import MaskAverage
from medprobe.papers.medlama.benchmarks.medlama.prompts import HUMAN_PROMPTS
from medprobe.papers.medlama.benchmarks.medlama.wordings import WORDINGS
from medprobe.papers.medlama.methods.contrastive import ORIGINAL as UNREWIRED
from medprobe.papers.medlama.methods.contrastive import Contrastive

RELATION: Final = "may_treat"
METHODS: Final[dict[str, tuple[Callable[[], Method], str]]] = {  # and the pass that is measured
    "mask_average": (lambda: MaskAverage(MODELS / "taught", MaskAverage.Settings(), CPU, 0), ""),
    "likelihood": (
        lambda: Likelihood(MODELS / "taught-causal", Likelihood.Settings(lists=True), CPU, 0),
        "",
    ),
    "contrastive": (
        lambda: Contrastive(MODELS / "taught", Contrastive.Settings(sets=("set-0",)), CPU, 0),
        UNREWIRED,
    ),
}


def main() -> None:
    """Print a line for each method."""
    parser = argparse.ArgumentParser(prog="python -m bench.families")
    parser.add_argument("--facts", type=int, default=36)
    options = parser.parse_args()
    use_threads()
    single, families = tasks(options.facts)
    print(f"{len(single.queries)} queries, {len(families.queries)} in families")
    for name, (make, pass_) in METHODS.items():
        make().predict(single, pass_)  # warm
        (seconds, tokens), (family_seconds, family_tokens) = (
            measure(make(), task, pass_) for task in (single, families)
        )
        ratios = (
            f"{family_seconds / seconds:.1f}× the time, {family_tokens / tokens:.1f}× the tokens"
        )
        print(f"{name}: {seconds:.2f} s, families {family_seconds:.2f} s; {ratios}")


def tasks(facts: int) -> tuple[Task, Task]:
    """The first facts of a relation of the sample's MedLAMA, alone and in families."""
    tables = BenchmarkTables.read(BENCHMARKS / "medlama")
    queries = tables.queries.query(f"subset == 'full' and relation == '{RELATION}'").head(facts)
    wordings = [Wording(ORIGINAL, HUMAN_PROMPTS[RELATION])]
    wordings += [Wording(str(at), text) for at, text in enumerate(WORDINGS[RELATION][:3])]
    names = {
        row.query_id: [SubjectName(kind, f"{row.subject} {kind}") for kind in ("acid", "salt")]
        for row in queries.itertuples()
    }
    family_queries, candidates = with_families(
        queries,
        tables.candidates,
        dict.fromkeys(queries["query_id"], wordings),
        names,
        settings=FamilySettings(),
        seed=0,
    )
    single, families = (
        Task(
            subset,
            family_queries[family_queries["subset"] == subset].reset_index(drop=True),
            candidates[candidates["subset"] == subset],
            10,
        )
        for subset in ("full", FAMILIES)
    )
    return single, families


def measure(method: Method, task: Task, pass_: str) -> tuple[float, int]:
    """The CPU seconds of a task, and the tokens that are read for it."""
    begun, read = time.process_time(), token_counter["tokens"]
    table: pd.DataFrame = method.predict(task, pass_)
    if table.empty:
        raise RuntimeError("nothing was predicted")
    return time.process_time() - begun, token_counter["tokens"] - read


if __name__ == "__main__":
    main()
