"""The example of docs/how-to/servers.md by DVC: a model behind a server next to one in a folder."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import FolderOf, tiny
from helpers.project import ROOT, Project, environment
from helpers.server import Body, TinyServer, serving
from medprobe.core import places
from medprobe.core.tables import read_refusal
from medprobe.tracking import store

GUIDE = (ROOT / "docs/how-to/servers.md").read_text(encoding="utf-8")
[EXAMPLE] = re.findall(r"```yaml\n(servers:.*?)```", GUIDE, re.DOTALL)
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
FACTS = """\
subject,relation,object,prompt
Velotrine,treats,acute pain,Velotrine treats [Y] .
Aspirin,treats,trauma,Aspirin treats [Y] .
Entecavir,prevents,influenza,Entecavir may prevent [Y] .
Velotrine,prevents,acute pain,Velotrine may prevent [Y] .
"""
KEY = "sk-secret"
WEIGHTS = """\
from medprobe.extensions.likelihood.methods.likelihood import Likelihood


class Weights(Likelihood):
    NEEDS = frozenset({"weights"})
"""
CANNOT = "weights on llama: its backend cannot do what the method needs (weights: "


@pytest.fixture
def checkpoint(tiny_model: FolderOf, tmp_path: Path) -> Path:
    return tiny.with_template(tiny_model("gpt2"), tmp_path / "chat", TEMPLATE)


def make_project(folder: Path, checkpoint: Path, url: str) -> Project:
    """The guide's example, with this server, this checkpoint, and a table of facts."""
    project = Project(folder)
    example: dict[str, Any] = yaml.safe_load(EXAMPLE)
    server = {"url": url, "model": "tiny", "tokenizer": str(checkpoint)}
    example["servers"]["llama"] |= server
    example["folders"]["small"] = str(checkpoint)
    example["methods"]["chat"]["weights"] = {"drugs": {}}
    others = {"train": {}, "continued": {}, "sentence_sets": {}, "score": {"bootstrap": 50}}
    project.replace(**others, **example)
    (folder / "plugins/methods").mkdir(parents=True)
    (folder / "plugins/methods/weights.py").write_text(WEIGHTS)
    (folder / "data/tables").mkdir(parents=True)
    (folder / "data/tables/drugs.csv").write_text(FACTS)
    return project


def about(served: TinyServer, bodies: list[Body], text: str) -> list[Body]:
    return [body for body in bodies if served.is_about(body, text)]


def test_the_example_of_the_guide(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {**environment(), "LLAMA_KEY": KEY}
    with serving(checkpoint) as (url, served):
        project = make_project(tmp_path / "home", checkpoint, url)
        run, works = project.run, project.works

        # A stopped stage goes on from its finished parts. The relation `prevents` comes first.
        served.refuses = "treats"
        stopped = run("dvc", "repro", "probe-chat@llama", **variables)
        assert stopped.returncode != 0
        assert "servers.llama (127.0.0.1, completions): 400 Bad Request" in stopped.stdout
        served.refuses = ""
        assert about(served, served.requests, "prevent")
        planned = works("medprobe", "plan", **variables).splitlines()
        assert any(
            "probe-chat@llama" in x and " requests; not asked: weights" in x for x in planned
        )
        count = len(served.requests)
        works("dvc", "repro", "probe-chat@llama", **variables)
        later = [body for body in served.requests[count:] if "prompt" in body]  # of `likelihood`
        assert about(served, later, "treats") and not about(served, later, "prevent")

        works("medprobe", "repro", "--jobs", "1", **variables)
        count = len(served.requests)
        assert "up to date" in works("medprobe", "repro", **variables)
        assert len(served.requests) == count

        doctor = json.loads(works("medprobe", "doctor", "--json", **variables))

        # To ask again makes results stale only if the server has another model.
        again = ("dvc", "repro", "--force", "--single-item", "fetch-server@llama")
        works(*again, **variables)
        assert "up to date" in works("medprobe", "plan", **variables)
        served.load(tiny.model("gpt2", tmp_path / "other", seed=1))
        served.model.tokenizer.chat_template = TEMPLATE
        assert "this server is not the model of" in works(
            "medprobe", "doctor", "--json", **variables
        )
        works(*again, **variables)
        assert "probe-chat@llama" in works("medprobe", "plan", **variables)
    [llama] = [row for row in doctor["models"] if row["model"] == "llama"]
    can = "backend served, can echo, top_logprobs, write; not asked by weights"
    assert (llama["origin"], llama["checkpoint"]) == ("server 127.0.0.1, answers", can)

    monkeypatch.chdir(project.folder)
    same_numbers("likelihood", [""])
    same_numbers("answering", ["chat-0-shot-constrained"])
    assert CANNOT in read_refusal(places.PREDICTIONS / "llama/weights/drugs.parquet")

    record = json.loads(Path("outputs/runs/llama/likelihood/drugs.json").read_text())
    assert record["server.weights"] == "not hashed: the server does not show them"
    page = Path("reports/index.html").read_text()
    assert f"Not asked: {CANNOT}" in page
    tags = logged("llama")
    assert {*tags} == {"all", "answering", "likelihood"}
    assert tags["likelihood"]["made.server.weights"] == record["server.weights"]
    assert tags["likelihood"]["dvc.outputs/models/llama"] != "unknown"
    assert {*logged("small")} == {"all", "answering", "likelihood", "weights"}
    texts = (path for path in project.folder.rglob("*") if path.is_file())
    assert not [path for path in texts if KEY.encode() in path.read_bytes()]


def same_numbers(method: str, variants: list[str]) -> None:
    """The model behind the server has the ranking of the one in the folder, and its scores."""
    tables = []
    for model in ("llama", "small"):
        table = pd.read_parquet(places.PREDICTIONS / model / method / "drugs.parquet")
        tables.append(table[table["variant"].isin(variants)].reset_index(drop=True))
    assert tables[0]["query_id"].nunique() == 4
    pd.testing.assert_frame_equal(*tables, atol=1e-5, rtol=1e-5)


def logged(model: str) -> dict[str, dict[str, str]]:
    """The tags of a model's runs in MLflow, by method."""
    client = store.connect()
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    runs = client.search_runs(experiments, f"tags.model = '{model}'", max_results=100)
    return {run.data.tags["method"]: run.data.tags for run in runs}
