"""The MLflow store: filled once, never doubled, rebuilt when lost or moved."""

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from made_up import project
from medprobe import lineage
from medprobe.params import ModelParams, Models, Params, ScoreParams, TrackParams
from medprobe.report.tables import SIGNIFICANCE
from medprobe.stages.track import track
from medprobe.tracking import KEY, STATE, Content, Result, connect, record

MODELS = Models(masked={"taught": ModelParams(pretrain="taught"), "untaught": ModelParams()})
PARAMS = Params(
    score=ScoreParams(bootstrap=20),
    models=MODELS,
    methods={"contrastive": {"layer": 12, "benchmarks": ["made_up"]}},
)
LOCK = {
    "stages": {
        "build@made_up": {"outs": [{"path": "outputs/benchmarks/made_up", "md5": "b1"}]},
        "pretrain@taught": {"outs": [{"path": "outputs/models/taught", "md5": "m1"}]},
        "rewire@taught-set-0": {"outs": [{"path": "outputs/rewired/taught/set-0", "md5": "r1"}]},
        "probe@taught": {
            "cmd": "medprobe probe taught contrastive",
            "params": {"params.yaml": {"seed": 5, "methods.contrastive": {"layer": 7}}},
            "outs": [{"path": "outputs/predictions/taught/contrastive", "md5": "p1"}],
        },
    }
}


def runs(name: str = "made_up", role: str = "result") -> list:
    """The runs of single models."""
    client = connect()
    experiment = client.get_experiment_by_name(name)
    query = f"tags.`medprobe.role` = '{role}' and tags.model != 'all'"
    return client.search_runs([experiment.experiment_id], query)


def paired_tests() -> list:
    client = connect()
    experiment = client.get_experiment_by_name("made_up")
    return client.search_runs([experiment.experiment_id], "tags.method = 'paired-tests'")


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose results were tracked: those of one model by its stage, then all, twice."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        Path("dvc.lock").write_text(yaml.safe_dump(LOCK))
        statistics = Path("outputs/benchmarks/made_up/statistics.csv")
        statistics.write_text("subset,relation,queries\nfull,all,20\n")
        Path("data.dvc").write_text("outs:\n- {md5: d1.dir, path: data}\n")
        track(PARAMS, "taught", "contrastive")
        track(PARAMS)
        track(PARAMS)
    return folder


@pytest.fixture
def store(tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that project somewhere else, to work in."""
    folder = tmp_path / "copy"
    shutil.copytree(tracked, folder)
    project(folder, monkeypatch)
    return folder


def test_results_are_logged_once(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tracked)
    found = {run.info.run_name: run for run in runs()}
    assert set(found) == {"taught · contrastive", "untaught · contrastive"}
    assert len(runs()) == 2
    assert len(runs(role="part")) == 2 * 4 * 2  # models, variants, replicates
    metrics = found["taught · contrastive"].data.metrics
    assert metrics["full/macro/acc_at_1"] == 0.75
    assert metrics["full/macro/acc_at_1.low"] < 0.75 < metrics["full/macro/acc_at_1.high"]
    assert metrics["statistics/full/queries"] == 20
    parts = {run.info.run_name: run.data for run in runs(role="part")}
    one = parts["taught · contrastive · original · set-1"]
    assert one.metrics["full/macro/acc_at_1"] == 0.5
    assert one.params["variant"] == "original"


def test_paired_tests_are_a_run_of_each_benchmark(store: Path) -> None:
    (run,) = paired_tests()
    place = "full/acc_at_1/contrastive/taught - untaught"
    metrics = run.data.metrics
    assert metrics[f"{place}/difference"] == pytest.approx(0.7)
    assert 0 < metrics[f"{place}/p_holm"] < 0.05
    assert 0 < metrics[f"{place}/smallest_difference"] < 0.7
    assert run.data.params["confidence"] == "0.95"
    table = pd.read_csv(next(Path("mlruns").rglob("significance.csv")))
    assert list(table) == SIGNIFICANCE
    assert {"taught", "untaught"} == {*table["model_a"], *table["model_b"]}
    track(PARAMS)
    assert len(paired_tests()) == 1
    track(PARAMS.model_copy(update={"seed": 1}))
    assert sorted(run.data.tags[STATE] for run in paired_tests()) == ["current", "superseded"]


def test_runs_say_what_they_were_made_from(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tracked)
    found = {run.data.tags["model"]: run.data for run in runs()}
    tags = found["taught"].tags
    assert tags["dvc.data"] == "d1.dir"
    assert tags["dvc.outputs/benchmarks/made_up"] == "b1"
    assert tags["dvc.outputs/models/taught"] == "m1"
    assert tags["dvc.outputs/rewired/taught/set-0"] == "r1"
    assert tags["model.revision"] == "dvc:m1"
    assert tags["stage"] == "probe"
    assert len(tags["candidates.full"]) == 64
    assert found["taught"].params["methods.contrastive.layer"] == "12"  # just made: params.yaml


def test_parameters_of_older_results_come_from_the_lock(store: Path) -> None:
    shutil.rmtree("mlruns")
    track(PARAMS)
    found = {run.data.tags["model"]: run.data for run in runs()}
    assert found["taught"].params["methods.contrastive.layer"] == "7"
    assert found["untaught"].params["methods.contrastive.layer"] == "12"  # not in the lock


def test_no_text_goes_in_unless_asked_for(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tracked)
    files = [path for path in Path("mlruns").rglob("*.csv") if path.is_file()]
    names = {"top_k.csv", "samples.csv", "scores.csv", "significance.csv"}
    assert {path.name for path in files} == names
    for path in Path("mlruns/made_up").rglob("*.*"):
        text = path.read_text()
        assert "might treat" not in text, path
        assert "alba" not in text, path
        assert "name 1" not in text, path


def test_names_that_serve_as_ids_stay_out_too(store: Path) -> None:
    for path in Path("outputs/predictions").rglob("*.parquet"):
        table = pd.read_parquet(path)
        table.assign(prediction_id=table["prediction"]).to_parquet(path)
    track(PARAMS)
    tables = [pd.read_csv(path) for path in Path("mlruns").rglob("top_k.csv")]
    assert (
        sorted(table["prediction_id"].isna().all() for table in tables) == [False] * 2 + [True] * 2
    )


def test_text_goes_in_where_params_say_so(store: Path) -> None:
    track(PARAMS.model_copy(update={"track": TrackParams(text=True)}))
    texts = [path.read_text() for path in Path("mlruns").rglob("samples.csv")]
    assert any("might treat" in text for text in texts)


def test_changed_content_is_a_new_run_beside_the_old(store: Path) -> None:
    track(PARAMS.model_copy(update={"seed": 1}))
    states = sorted(run.data.tags[STATE] for run in runs())
    assert states.count("current") == 2
    track(PARAMS)  # what came back is current again, and not logged anew
    assert len({run.data.tags[KEY] for run in runs()}) == len(runs())
    assert sorted(run.data.tags[STATE] for run in runs()).count("current") == 2


def test_a_moved_store_shows_its_artefacts_again(store: Path) -> None:
    track(PARAMS)
    client = connect()
    assert len(runs()) == 2
    for run in runs():
        assert run.info.artifact_uri.startswith(store.as_uri())
        names = [file.path for file in client.list_artifacts(run.info.run_id)]
        assert names == ["figures", "lineage.json", "samples.csv", "scores.csv", "top_k.csv"]


def test_a_lost_store_is_filled_anew(store: Path) -> None:
    shutil.rmtree("mlruns")
    track(PARAMS)
    assert len(runs()) == 2
    assert Path("outputs/tracked.json").read_text().count("made_up/") == 2


def test_a_run_that_was_stopped_half_way_is_replaced(store: Path) -> None:
    def broken() -> Content:
        return Content({"a": 1.0}, parts={"x": ({}, {"b": 2.0})}, files={"../outside": "x"})

    client = connect()
    with pytest.raises(Exception, match="Invalid artifact path"):
        record(client, Result("b", "m", "f", "key", broken))
    assert record(client, Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert not record(client, Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    (run,) = runs("b")
    assert run.data.tags[KEY] == "key"
    assert run.info.status == "FINISHED"
    assert runs("b", role="part") == []


def test_processes_that_start_together_make_one_store(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from medprobe.tracking import Content, Result, connect, record\n"
        "made = Content({'a': 1.0})\n"
        "record(connect(), Result('b', sys.argv[1], 'f', 'key', lambda: made))\n"
        "record(connect(), Result('b', 'same', 'f', 'key', lambda: made))\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, name], cwd=tmp_path, stderr=subprocess.PIPE)
        for name in ("first", "second")
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()[-2000:]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(tmp_path)
        names = sorted(run.info.run_name for run in runs("b"))
    assert names == ["first · f", "same · f", "second · f"]


def test_lineage_of_nothing_is_nothing(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert lineage.hashes(nowhere, nowhere) == {}
    assert lineage.recorded_params(Path("outputs"), nowhere) is None
    assert lineage.stage(Path("outputs"), nowhere) == "probe"
    assert lineage.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "d": [1]}
