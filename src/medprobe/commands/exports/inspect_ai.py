"""A benchmark as tasks of Inspect: a Python file with the tasks, and the queries as JSONL.

The model is asked in words and writes the answer. A candidate's probability cannot be asked so.
"""

import json
from pathlib import Path
from typing import Final

from medprobe.commands.exports import Exported, check_ranked, task_name
from medprobe.core.tables import BLANK, SLOT

TASKS: Final = Path(__file__).with_name("inspect_tasks.py.jinja")
QUESTION: Final = "Fill in the blank with a name and nothing else: "


def write(benchmark: Exported, folder: Path) -> None:
    """Write the tasks, one per subset. Raises BadInput for a benchmark that is not one of ranks."""
    check_ranked(benchmark, "Inspect")
    subsets = [subset for subset, _, _ in benchmark.tables.subsets()]
    files = {task_name(benchmark.name, subset).replace("-", "_"): subset for subset in subsets}
    for name, subset in files.items():
        queries = benchmark.tables.queries[benchmark.tables.queries["subset"] == subset]
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for query in queries.itertuples():
                line = {
                    "id": query.query_id,
                    "input": QUESTION + query.prompt.replace(SLOT, BLANK),
                    "target": [*query.answers],
                    "metadata": {"relation": query.relation},
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    (folder / "tasks.py").write_text(benchmark.render(TASKS, tasks=[*files]), encoding="utf-8")
    (folder / "README.md").write_text(_readme(benchmark, [*files]), encoding="utf-8")


def _readme(benchmark: Exported, names: list[str]) -> str:
    about = benchmark.metadata
    listed = "\n".join(f"- `tasks.py@{name}`" for name in names)
    return f"""# {benchmark.name}: {about.description}

Tasks for Inspect, written by medprobe. They need nothing but this folder:

```
inspect eval tasks.py@{names[0]} --model PROVIDER/MODEL --log-format json
```

{listed}

The model is asked in words. Its first line is right where it equals one of the answers by the rule
`{benchmark.tables.normalise}`, letter case, punctuation and articles aside.

`medprobe import results logs` brings the answers back: intervals, paired tests, page.

A model behind a service reads the prompts, which may be licensed: see the licence first.

Citation: {about.citation}

Licence: {about.licence}
"""
