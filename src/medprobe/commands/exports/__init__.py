"""`medprobe export benchmark`: a benchmark in the form of another tool.

One file is one tool, found by its name, and has a function `write(benchmark, folder)`. The folder
it writes can be moved, and needs nothing of this package.
"""

import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.answers import biolama, find_rule
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.tables import DISTRACTOR, SLOT, BenchmarkTables, Metadata

TOOLS: Final = {"lm-eval": "lm_eval", "inspect": "inspect_ai", "datasets": "hub_dataset"}


@dataclass(frozen=True)
class Exported:
    """A benchmark as it goes out."""

    name: str
    metadata: Metadata
    tables: BenchmarkTables

    def names(self, subset: str) -> list[str]:
        """The candidates of a subset, distractors left out, in the order of the methods."""
        table = self.tables.candidates
        rows = table[(table["subset"] == subset) & (table["type"] != DISTRACTOR)]
        return sorted(set(rows["name"]))

    def equal(self, text: str) -> str:
        """Return a text that a model wrote as answers are compared.

        The benchmark's rule is applied, and then that of BioLAMA's evaluator.
        """
        return biolama(find_rule(self.tables.normalise)(text))

    def render(self, template: Path, **values: Any) -> str:
        """Fill a Jinja template of Python code.

        It also receives `name`, and the rule for equal answers: `rule`, a function's name, and
        `rules`, its code.
        """
        from jinja2 import Environment

        environment = Environment(keep_trailing_newline=True, autoescape=False)  # Python
        chosen = find_rule(self.tables.normalise)
        rules = {rule.__name__: inspect.getsource(rule) for rule in (biolama, chosen)}
        return environment.from_string(template.read_text(encoding="utf-8")).render(
            name=self.name, rule=chosen.__name__, rules=rules.values(), **values
        )


def export(name: str, tool: str, out: Path, *, licensed: bool = False) -> None:
    """Write a benchmark that is built for a tool (a key of TOOLS) into a new folder.

    Licensed text goes below outputs/ only, unless `licensed` allows it in this folder.

    Raises:
        BadInput: The benchmark is not built, its text may not go there, or the tool cannot ask it.
    """
    if not (places.BENCHMARKS / name).is_dir():
        built = sorted(path.name for path in places.BENCHMARKS.glob("*") if path.is_dir())
        problem = f"no benchmark of this name is built{nearest(name, built)}"
        raise BadInput(name, problem, "run `medprobe repro`")
    metadata = Metadata.read(places.ABOUT / f"{name}.json")
    inside = out.resolve().is_relative_to(places.BENCHMARKS.parent.resolve())
    if metadata.terms != "open" and not (inside or licensed):
        problem = f"the text of {name} is licensed ({metadata.licence})"
        remedy = "write below outputs/, or pass --licensed if its licence allows this folder"
        raise BadInput(out, problem, remedy)
    if out.exists():
        raise BadInput(out, "already exists", "choose another folder")
    benchmark = Exported(name, metadata, BenchmarkTables.read(places.BENCHMARKS / name))
    write: Callable[[Exported, Path], None]
    write = importlib.import_module(f"{__name__}.{TOOLS[tool]}").write
    with replacing(out) as folder:
        folder.mkdir()
        write(benchmark, folder)


def check_ranked(benchmark: Exported, tool: str) -> None:
    """Raise BadInput for a benchmark that is not judged by which answers come first."""
    if not benchmark.metadata.ranks_answers:
        problem = f"judged by {benchmark.metadata.primary_metric}, not by ranks of its answers"
        raise BadInput(benchmark.name, f"{problem}: {tool} cannot ask it so", "use --to datasets")


def task_name(*names: str) -> str:
    """The name of a task or group.

    >>> task_name("medlama", "full", "may treat")
    'medprobe_medlama_full_may-treat'
    """
    return "_".join(["medprobe", *(re.sub(r"[^A-Za-z0-9_-]+", "-", name) for name in names)])


def words_after(queries: pd.DataFrame) -> list[str]:
    """Return what ends an answer.

    A line's end does, and the first word behind the slot if it is the same in all prompts.

    >>> words_after(pd.DataFrame({"prompt": ["A treats [Y] .", "B treats [Y] ."]}))
    ['\\n', ' .']
    """
    tails = {prompt.partition(SLOT)[2].rstrip() for prompt in queries["prompt"]}
    firsts = {tail[: len(tail) - len(tail.lstrip())] + tail.split()[0] for tail in tails if tail}
    return ["\n", *(firsts if len(firsts) == 1 and "" not in tails else ())]
