"""A benchmark as tasks of lm-evaluation-harness.

The folder holds YAML, JSONL and one Python file. It can be moved, and needs nothing
of this package.

Each relation of each subset is three tasks: all candidates ranked by the log-likelihood of the
filled prompt, the answers of the relation ranked alone (`_relation`), and an answer written by the
model (`_generate`). Each of the three is a group over the relations, whose mean counts relations
alike.
"""

import inspect
import json
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from medprobe.core import places
from medprobe.core.answers import biolama, find_rule
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.tables import (
    DISTRACTOR,
    SLOT,
    BenchmarkTables,
    Metadata,
    candidate_hash,
    query_hash,
)
from medprobe.extensions.chat.prompt_texts import completion

UTILS: Final = Path(__file__).with_name("lm_eval_utils.py.jinja")
RANKED: Final = ("acc", "acc_at_5", "acc_at_10")
LONGEST: Final = 32  # tokens that are written at most


class Function(str):
    """The name of a function of utils.py."""


class Dumper(yaml.SafeDumper):
    """Writes a `Function` as lm-eval reads it."""


Dumper.add_representer(
    Function, lambda dumper, name: dumper.represent_scalar("!function", f"utils.{name}")
)


def export(name: str, out: Path, *, licensed: bool = False) -> None:
    """Write a benchmark that is built into a new folder.

    Licensed text goes below outputs/ only, unless `licensed` allows it in this folder.
    """
    if not (places.BENCHMARKS / name).is_dir():
        built = sorted(path.name for path in places.BENCHMARKS.glob("*") if path.is_dir())
        problem = f"no benchmark of this name is built{nearest(name, built)}"
        raise BadInput(name, problem, "run `medprobe repro`")
    metadata = Metadata.read(places.ABOUT / f"{name}.json")
    inside = out.resolve().is_relative_to(places.BENCHMARKS.parent.resolve())
    if not (metadata.terms in ("open", "own") or inside or licensed):
        problem = f"the text of {name} is licensed ({metadata.licence})"
        remedy = "write below outputs/, or pass --licensed if its licence allows this folder"
        raise BadInput(out, problem, remedy)
    if out.exists():
        raise BadInput(out, "already exists", "choose another folder")
    if not metadata.ranks_answers:
        problem = f"judged by {metadata.primary_metric}, not by ranks of its answers"
        raise BadInput(name, problem, "choose a benchmark whose answers are ranked")
    with replacing(out) as folder:
        folder.mkdir()
        groups = _write_tasks(name, BenchmarkTables.read(places.BENCHMARKS / name), folder)
        (folder / "README.md").write_text(_readme(name, metadata, groups), encoding="utf-8")


def _write_tasks(name: str, tables: BenchmarkTables, folder: Path) -> list[str]:
    """Write the tasks of a benchmark with what they need, and groups; return the groups."""
    rule = find_rule(tables.normalise)
    listed = tables.candidates[tables.candidates["type"] != DISTRACTOR]
    names: dict[str, list[str]] = {}  # by what they are the names of
    groups: dict[str, tuple[list[str], list[str]]] = {}  # a group's tasks and metrics
    parts = tables.queries.groupby(["subset", "relation"], sort=True)
    for (subset, relation), queries in parts:
        task = task_name(name, subset, relation)
        if (folder / f"{task}.jsonl").exists():
            raise BadInput(task, "two relations would have this name", "rename one of them")
        _write_queries(queries, rule, folder / f"{task}.jsonl")
        of_subset = sorted({*listed.loc[listed["subset"] == subset, "name"]})
        named = {name for texts in queries["answers"] for name in texts}
        of_relation = [name for name in of_subset if name in named]
        names |= {subset: of_subset, f"{subset}/{relation}": of_relation}
        about = _about(queries, of_subset)
        tasks = {
            "": _ranking(task, subset, about),
            "_relation": _ranking(task, f"{subset}/{relation}", about),
            "_generate": _writing(task, words_after(queries), about),
        }
        for ending, content in tasks.items():
            _dump({"task": f"{task}{ending}", **content}, folder / f"{task}{ending}.yaml")
            group = f"{task_name(name, subset)}{ending}"
            metrics = [metric["metric"] for metric in content["metric_list"]]
            groups.setdefault(group, ([], metrics))[0].append(f"{task}{ending}")
    for group, (of_group, metrics) in groups.items():
        means = [{"metric": name, "weight_by_size": False} for name in metrics]
        content = {"group": group, "task": of_group, "aggregate_metric_list": means}
        _dump({**content, "metadata": {"version": 1.0}}, folder / f"{group}.yaml")
    (folder / "names.json").write_text(
        json.dumps(names, ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
    )
    (folder / "utils.py").write_text(_utils(name, rule), encoding="utf-8")
    return sorted(groups)


def _utils(name: str, rule: Callable[[str], str]) -> str:
    """The code of a benchmark's tasks, with that of its rule for equal answers."""
    from jinja2 import Environment

    environment = Environment(keep_trailing_newline=True, autoescape=False)  # Python
    rules = {used.__name__: inspect.getsource(used) for used in (biolama, rule)}
    template = environment.from_string(UTILS.read_text(encoding="utf-8"))
    return template.render(name=name, rule=rule.__name__, rules=rules.values(), slot=SLOT)


def _write_queries(queries: pd.DataFrame, rule: Callable[[str], str], path: Path) -> None:
    """Write queries; a text that a model wrote is compared by the rule, then by BioLAMA's."""
    with path.open("w", encoding="utf-8") as file:
        for query in queries.itertuples():
            line = {
                "query_id": query.query_id,
                "prompt": query.prompt,
                "text": completion(query.prompt, [], "\n").partition(SLOT)[0].rstrip(),
                "answers": [*query.answers],
                "targets": sorted({biolama(rule(answer)) for answer in query.answers}),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _about(queries: pd.DataFrame, names: list[str]) -> dict[str, Any]:
    """What lm-eval keeps with its results, so that they can be held against the benchmark."""
    return {
        "version": 1.0,
        "medprobe": version("medprobe"),
        "queries_sha256": query_hash(queries),
        "candidates_sha256": candidate_hash(names),
    }


def _ranking(task: str, among: str, about: dict[str, Any]) -> dict[str, Any]:
    """A task that ranks names."""
    return {
        "custom_dataset": Function("queries"),
        "dataset_kwargs": {"file": f"{task}.jsonl", "among": among},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "",
        "target_delimiter": "",  # else a blank begins each text
        "doc_to_choice": Function("choices"),
        "doc_to_target": "answers",
        "process_results": Function("ranked"),
        "num_fewshot": 0,
        "metric_list": [_mean(name) for name in RANKED],
        "metadata": about,
    }


def _writing(task: str, until: list[str], about: dict[str, Any]) -> dict[str, Any]:
    """A task whose answers the model writes."""
    steps = [{"function": "custom", "filter_fn": Function("written")}, {"function": "take_first"}]
    return {
        "custom_dataset": Function("queries"),
        "dataset_kwargs": {"file": f"{task}.jsonl"},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "text",
        "doc_to_target": "targets",
        "generation_kwargs": {"until": until, "max_gen_toks": LONGEST, "do_sample": False},
        "filter_list": [{"name": "medprobe", "filter": steps}],
        "num_fewshot": 0,
        "metric_list": [_mean("exact_match")],
        "metadata": about,
    }


def _mean(metric: str) -> dict[str, Any]:
    return {"metric": metric, "aggregation": "mean", "higher_is_better": True}


def _dump(content: dict[str, Any], path: Path) -> None:
    text = yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(text, encoding="utf-8")


def _readme(name: str, about: Metadata, groups: list[str]) -> str:
    listed = "\n".join(f"- `{group}`" for group in groups)
    return f"""# {name}: {about.description}

Tasks for lm-evaluation-harness, written by medprobe. They need nothing but this folder:

```
lm-eval run --model hf --model_args pretrained=MODEL --include_path . --tasks {groups[0]} \\
  --output_path results --log_samples
```

Groups, whose tasks are relations:

{listed}

A group without an ending ranks all candidates by the log-likelihood of the prompt filled with each.
In `_relation` only the answers of the relation are ranked. In `_generate` the model writes the
answer. `acc` is acc@1: a query is right where any of its answers comes first. Distractors are left
out.

Citation: {about.citation}

Licence: {about.licence}
"""


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
