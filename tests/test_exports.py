"""A benchmark as tasks of Inspect, and as a data set."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml

from medprobe.commands.exports import export
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables

FIXTURE = Path(__file__).parent / "fixtures" / "lm_eval"
OUT = Path("outputs/out")


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchmarkTables:
    """The benchmark of a project to work in."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURE / "medlama", places.BENCHMARKS / "medlama")
    places.ABOUT.mkdir()
    shutil.copy(FIXTURE / "medlama.json", places.ABOUT)
    return BenchmarkTables.read(places.BENCHMARKS / "medlama")


def test_a_data_set_has_the_tables_and_a_card_that_names_them(tables: BenchmarkTables) -> None:
    export("medlama", "datasets", OUT)
    _, head, text = (OUT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    configs = yaml.safe_load(head)["configs"]
    assert [config["config_name"] for config in configs] == ["queries", "candidates"]
    for config, table in zip(configs, (tables.queries, tables.candidates), strict=True):
        [file] = config["data_files"]
        pd.testing.assert_frame_equal(pd.read_parquet(OUT / file["path"]), table)
    assert "| full | 36 | 1 | 71 |" in text and "UMLS Metathesaurus License" in text


def test_a_task_of_inspect_asks_every_query_of_a_subset(tables: BenchmarkTables) -> None:
    export("medlama", "inspect", OUT)
    queries = tables.queries[tables.queries["subset"] == "hard"]
    lines = (OUT / "medprobe_medlama_hard.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    assert [sample["id"] for sample in samples] == list(queries["query_id"])
    for sample, query in zip(samples, queries.itertuples(), strict=True):
        assert sample["input"].endswith(query.prompt.replace("[Y]", "____"))
        assert sample["target"] == [*query.answers]


def test_inspects_scorer_compares_as_the_benchmark_does(
    tables: BenchmarkTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stand-ins for what the file takes from Inspect."""
    export("medlama", "inspect", OUT)

    def anything(*arguments: Any, **named: Any) -> Any:
        return SimpleNamespace(arguments=arguments, **named)

    def undecorated(*_: Any, **__: Any) -> Any:
        return lambda function: function

    inspect_ai = ModuleType("inspect_ai")
    vars(inspect_ai).update(Task=anything, task=lambda function: function)
    names = ("accuracy", "grouped", "stderr", "generate", "json_dataset", "Score")
    content = {
        **dict.fromkeys(names, anything),
        "scorer": undecorated,
        "CORRECT": 1,
        "INCORRECT": 0,
    }
    monkeypatch.setitem(sys.modules, "inspect_ai", inspect_ai)
    for part in ("dataset", "scorer", "solver"):
        module = ModuleType(f"inspect_ai.{part}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    path = OUT / "tasks.py"
    tasks: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), tasks)
    score = tasks["names"]()
    for text, right in ((" The Chronic  pain.\nMore", 1), ("chronic", 0), ("", 0)):
        state = SimpleNamespace(output=SimpleNamespace(completion=text))
        assert asyncio.run(score(state, ["chronic pain", "ache"])).value == right
    assert "medprobe_medlama_full" in tasks and "medprobe_medlama_hard" in tasks


def test_what_is_not_judged_by_ranks_goes_out_as_a_data_set_only(tables: BenchmarkTables) -> None:
    about = json.loads((places.ABOUT / "medlama.json").read_text(encoding="utf-8"))
    text = json.dumps({**about, "primary_metric": "f1"})
    (places.ABOUT / "medlama.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="use --to datasets"):
        export("medlama", "inspect", OUT)
    assert not OUT.exists()
    export("medlama", "datasets", OUT)
