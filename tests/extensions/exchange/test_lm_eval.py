"""A benchmark as tasks of lm-evaluation-harness, and what that says of a model.

The numbers of tests/fixtures/lm_eval are lm-eval's own. Where MEDPROBE_LM_EVAL names the program,
it is run here, too.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from helpers import FIXTURES
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables, Metadata
from medprobe.extensions.exchange.lm_eval import words_after
from medprobe.extensions.likelihood.methods.likelihood import Likelihood

FIXTURE = FIXTURES / "lm_eval"
OUT = Path("outputs/lm")
NEAR = {"atol": 2e-5, "rtol": 2.0**-22}  # two programs' sums in single precision


@pytest.fixture
def project(working_folder: Path) -> Path:
    """A project with the fixture's benchmark and model, to work in."""
    shutil.copytree(FIXTURE / "medlama", places.BENCHMARKS / "medlama")
    places.ABOUT.mkdir()
    shutil.copy(FIXTURE / "medlama.json", places.ABOUT)
    shutil.copytree(FIXTURE / "small", places.MODELS / "small")
    return working_folder


def exported(*arguments: str) -> tuple[int, str]:
    command = ["export-lm-eval", "medlama", *arguments]
    result = CliRunner().invoke(main, command)
    return result.exit_code, result.output


@pytest.fixture
def tasks(project: Path) -> Path:
    assert exported("--out", str(OUT))[0] == 0
    return OUT


class Loader(yaml.SafeLoader):
    """Reads `!function utils.x` as its name."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def task(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader)
    return content


@pytest.fixture
def utils(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The functions of the folder's Python file; of `datasets` it needs one."""
    library = ModuleType("datasets")
    library.Dataset = SimpleNamespace(from_list=list)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", library)
    path = tasks / "utils.py"
    content: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), content)
    return SimpleNamespace(**content)


def samples(folder: Path, ending: str) -> Iterator[dict[str, Any]]:
    """The samples of lm-eval's log of a task."""
    [path] = folder.glob(f"samples_medprobe_medlama_full_may_treat{ending}_2*.jsonl*")
    opened: Callable = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_each_relation_is_three_tasks_and_each_kind_a_group(tasks: Path) -> None:
    for subset in ("full", "hard"):
        for ending in ("", "_relation", "_generate"):
            group = task(tasks / f"medprobe_medlama_{subset}{ending}.yaml")
            assert group["task"] == [f"medprobe_medlama_{subset}_may_treat{ending}"]
            assert all(
                not aggregate["weight_by_size"] for aggregate in group["aggregate_metric_list"]
            )
            for name in group["task"]:
                content = task(tasks / f"{name}.yaml")
                assert content["task"] == name
                assert (tasks / content["dataset_kwargs"]["file"]).is_file()
    readme = (tasks / "README.md").read_text(encoding="utf-8")
    assert "lm-eval run" in readme and "UMLS Metathesaurus License" in readme


def test_a_task_ranks_the_names_that_a_method_ranks(tasks: Path, utils: SimpleNamespace) -> None:
    tables = BenchmarkTables.read(places.BENCHMARKS / "medlama")
    content = task(tasks / "medprobe_medlama_full_may_treat.yaml")
    lm_eval_queries = utils.queries(**content["dataset_kwargs"], **content["metadata"])["test"]
    queries = tables.queries[tables.queries["subset"] == "full"]
    assert [query["query_id"] for query in lm_eval_queries] == list(queries["query_id"])
    candidates = tables.candidates[tables.candidates["subset"] == "full"]
    names = sorted({*candidates["name"]})
    prompt = queries.iloc[0]["prompt"]
    assert utils.choices(lm_eval_queries[0]) == [prompt.replace("[Y]", name) for name in names]
    content = task(tasks / "medprobe_medlama_full_may_treat_relation.yaml")
    [first, *_] = utils.queries(**content["dataset_kwargs"])["test"]
    answers = {name for texts in queries["answers"] for name in texts}
    assert utils.choices(first) == [prompt.replace("[Y]", name) for name in sorted(answers)]


def test_a_tasks_accuracy_and_equality_are_ours(utils: SimpleNamespace) -> None:
    names = utils.names()["full"]
    doc = {"answers": [names[6]], "among": "full"}
    results = [(-1.0 - (i == 6), False) for i in range(len(names))]
    assert utils.ranked(doc, results) == {"acc": 0.0, "acc_at_5": 0.0, "acc_at_10": 0.0}
    results = [(-float(i), False) for i in range(len(names))]
    assert utils.ranked(doc, results) == {"acc": 0.0, "acc_at_5": 0.0, "acc_at_10": 1.0}
    results = [(-1.0, False) for _ in names]  # equal ones stand by name
    assert utils.ranked({**doc, "answers": [names[0]]}, results)["acc"] == 1.0
    assert utils.written([[" The Chronic  Pain.\nand more"]], [doc]) == [["chronic pain"]]


def test_the_log_likelihoods_and_ranks_of_lm_eval_are_ours(project: Path) -> None:
    assert_alike(FIXTURE / "results")


def assert_alike(results: Path) -> None:
    """Each name's log-likelihood and each query's ranking, lm-eval's and those of `likelihood`."""
    engine = EngineParams(device="cpu")
    method = Likelihood(places.MODELS / "small", Likelihood.Settings(lists=True), engine, 0)
    tables = BenchmarkTables.read(places.BENCHMARKS / "medlama")
    ours = pd.concat([method.predict(task, "") for task in method.tasks(tables, 1000)])
    asked = tables.queries[tables.queries[["relation", "subset"]].eq(["may_treat", "full"]).all(1)]
    ours = ours[ours["query_id"].isin(asked["query_id"])]
    theirs = []
    for sample in samples(results, ""):
        before, after = sample["doc"]["prompt"].split("[Y]")
        for number, [[score, _]] in enumerate(sample["resps"]):
            text = sample["arguments"][f"gen_args_{number}"]["arg_1"]
            name = text.removeprefix(before).removesuffix(after)
            theirs.append((sample["doc"]["query_id"], name, float(score)))
    table = pd.DataFrame(theirs, columns=["query_id", "prediction", "score"])
    both = ours.merge(table, on=["query_id", "prediction"], suffixes=("", "_theirs"))
    assert len(both) == len(ours) == len(table) == 36 * 71
    np.testing.assert_allclose(both["score"], both["score_theirs"], **NEAR)
    ranks = both.groupby("query_id")["score_theirs"].rank(ascending=False)
    assert list(ranks) == list(both["rank"])


def test_licensed_text_goes_below_outputs_or_where_one_says(project: Path) -> None:
    status, output = exported("--out", "elsewhere")
    assert status == 2 and "the text of medlama is licensed" in output
    assert not Path("elsewhere").exists()
    assert exported("--out", "elsewhere", "--licensed")[0] == 0
    status, output = exported("--out", "elsewhere", "--licensed")
    assert status == 2 and "already exists" in output
    status, output = exported("--out", "outputs/../away")
    assert status == 2 and not Path("away").exists()
    about = Path("outputs/about/medlama.json")
    replace(Metadata.read(about), terms="own").write(about)
    assert exported("--out", "away")[0] == 0


def test_what_cannot_be_exported_is_said(project: Path) -> None:
    about = json.loads((places.ABOUT / "medlama.json").read_text(encoding="utf-8"))
    text = json.dumps({**about, "primary_metric": "f1"})
    (places.ABOUT / "medlama.json").write_text(text, encoding="utf-8")
    status, output = exported("--out", str(OUT))
    assert status == 2 and "judged by f1" in output and not OUT.exists()
    other = ["export-lm-eval", "medlma", "--out", "x"]
    result = CliRunner().invoke(main, other)
    assert result.exit_code == 2 and "did you mean 'medlama'" in result.output


def test_an_answer_ends_where_all_prompts_go_on_alike() -> None:
    assert words_after(pd.DataFrame({"prompt": ["A treats [Y].", "B [Y]."]})) == ["\n", "."]
    assert words_after(pd.DataFrame({"prompt": ["A treats [Y] .", "B [Y] here"]})) == ["\n"]
    assert words_after(pd.DataFrame({"prompt": ["A treats [Y]", "B [Y] ."]})) == ["\n"]


def lm_eval(tasks: Path, *names: str) -> Path:
    """Run the program that MEDPROBE_LM_EVAL names, and give the folder of its results."""
    program = os.environ.get("MEDPROBE_LM_EVAL")
    if not program:
        pytest.skip("MEDPROBE_LM_EVAL names no program")
    command = [program, "run", "--model", "hf", "--device", "cpu", "--log_samples"]
    command += ["--model_args", f"pretrained={places.MODELS / 'small'}"]
    command += ["--include_path", str(tasks), "--tasks", ",".join(names), "--output_path", "out"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONPATH": ""}
    process = subprocess.run(
        command, env={**os.environ, **offline}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2000:]
    [results] = Path("out").glob("*/results_*.json")
    return results.parent


@pytest.mark.slow
def test_lm_eval_runs_the_folder_as_it_stands(tasks: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.move(tasks, moved)
    endings = ("", "_relation", "_generate")
    results = lm_eval(moved, *(f"medprobe_medlama_full{ending}" for ending in endings))
    assert_alike(results)
    [path] = results.glob("results_*.json")
    numbers = json.loads(path.read_text(encoding="utf-8"))["results"]
    fixture = next((FIXTURE / "results").glob("results_*.json"))
    recorded = json.loads(fixture.read_text(encoding="utf-8"))["results"]
    for name in recorded:
        assert {k: v for k, v in numbers[name].items() if "," in k} == pytest.approx(
            {k: v for k, v in recorded[name].items() if "," in k}
        )
