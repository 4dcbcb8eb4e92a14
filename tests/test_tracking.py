"""The MLflow store: filled once, never doubled, rebuilt when lost or moved."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml
from mlflow import MlflowClient

from medprobe.core.params import HubModel, ModelParams, Models, Params, ScoreParams, TrackParams
from medprobe.core.places import LOSSES, PREDICTIONS, REWIRED, RUNS
from medprobe.core.tables import write_predictions
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.stages.baseline import baseline
from medprobe.stages.significance import significance
from medprobe.stages.track import track, track_one
from medprobe.testing.project import copy_project
from medprobe.tracking import lineage, pages
from medprobe.tracking import store as tracking_store
from medprobe.tracking.headlines import headlines, main_variant
from medprobe.tracking.store import (
    KEY,
    STATE,
    Content,
    Dataset,
    Result,
    connect,
    record,
)
from toy_project import METADATA, project

SETS = ["set-0", "set-1"]
SETTINGS = {"layer": 12, "sets": SETS, "sweeps": {"mask_ratio": {"0.1": None}}}
PARAMS = Params(
    score=ScoreParams(bootstrap=20),
    models=Models(masked={"taught": ModelParams(), "untaught": ModelParams()}),
    fetch={"untaught": HubModel(hub="someone/untaught", revision="abc")},
    benchmarks={"medlama": {"made_up": {}}},
    methods={"masked": {"contrastive": {"made_up": SETTINGS}}},
)
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"
LOCK = {
    "stages": {
        "build@made_up": {"outs": [{"path": "outputs/benchmarks/made_up", "md5": "b1"}]},
        "train@taught": {"outs": [{"path": "outputs/models/taught", "md5": "m1"}]},
        "rewire@taught-set-0": {"outs": [{"path": "outputs/rewired/taught/set-0", "md5": "r1"}]},
        "rewire-mask_ratio@taught-set-0-0.1": {
            "outs": [{"path": "outputs/rewired/taught/set-0+mask_ratio-0.1", "md5": "r2"}]
        },
        "rewire@taught-set-9": {"outs": [{"path": "outputs/rewired/taught/set-9", "md5": "r9"}]},
        "probe-contrastive@taught-made_up": {
            "cmd": "medprobe probe --method contrastive --model taught --benchmark made_up",
            "params": {
                "params.yaml": {
                    "seed": 5,
                    "methods.masked.contrastive.made_up": SETTINGS | {"layer": 7},
                }
            },
            "outs": [{"path": TABLE.as_posix(), "md5": "p1", "size": 1}],
        },
    }
}


def runs(name: str = "made_up", role: str = "result") -> list[Any]:
    """The runs of single models."""
    client = connect()
    experiment = client.get_experiment_by_name(name)
    query = f"tags.`medprobe.role` = '{role}' and tags.model != 'all'"
    return list(client.search_runs([experiment.experiment_id], query))


def by_model() -> dict[str, Any]:
    return {run.data.tags["model"]: run for run in runs()}


def paired_tests() -> list[Any]:
    client = connect()
    experiment = client.get_experiment_by_name("made_up")
    return list(client.search_runs([experiment.experiment_id], "tags.method = 'paired-tests'"))


ABOUT = {"device": "cpu", "tokens": 1000}


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose results were tracked: one when it was made, then all, twice."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        Path("dvc.lock").write_text(yaml.safe_dump(LOCK, sort_keys=False))
        statistics = Path("outputs/benchmarks/made_up/statistics.csv")
        statistics.write_text("subset,relation,queries\nfull,all,20\n")
        Path("data.dvc").write_text("outs:\n- {md5: d1.dir, path: data}\n")
        LOSSES.joinpath("taught").mkdir(parents=True)
        LOSSES.joinpath("taught/set-0.csv").write_text("step,loss\n1,0.9\n2,0.5\n")
        swept = "taught/set-0+mask_ratio-0.1"
        REWIRED.joinpath(swept).mkdir(parents=True)
        LOSSES.joinpath(f"{swept}.csv").write_text("step,loss\n1,0.8\n")
        LOSSES.joinpath("taught/set-9.csv").write_text("step,loss\n1,0.1\n")
        curves = ["variant,epoch,train,validation", ",1,0.8,0.9", ",1,0.6,0.7", ",2,0.4,0.5"]
        TABLE.with_name("made_up-curves.csv").write_text("\n".join(curves))
        with lineage.recorded(RUNS / "taught/contrastive/made_up.json", TABLE, ABOUT):
            pass
        track_one("taught", "contrastive", "made_up", PARAMS)
        significance(PARAMS)
        track(PARAMS)
        track(PARAMS)
    return folder


@pytest.fixture
def store(tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that project, to work in."""
    folder = tmp_path / "copy"
    copy_project(tracked, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture(scope="module")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a store without runs: MLflow takes seconds to create its tables."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        connect()
        return Path("mlruns/mlflow.db").absolute()


@pytest.fixture
def empty(new_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store without runs, to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("mlruns").mkdir()
    shutil.copy(new_store, "mlruns")
    return tmp_path


@pytest.fixture
def in_project(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in the project, to read."""
    monkeypatch.chdir(tracked)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.mark.usefixtures("in_project")
def test_results_are_logged_once() -> None:
    results = {run.info.run_name: run for run in runs()}
    assert set(results) == {"taught · contrastive", "untaught · contrastive"}
    assert len(runs()) == 2
    assert len(runs(role="part")) == 2 * 4 * 2  # models, variants, replicates
    metrics = results["taught · contrastive"].data.metrics
    assert metrics["main_acc_at_1"] == 0.75
    assert metrics["main_acc_at_1_ci_lower"] < 0.75 < metrics["main_acc_at_1_ci_upper"]
    statistics = pd.read_csv(next(Path("mlruns").rglob("statistics.csv")))
    assert statistics.set_index(["subset", "metric"])["value"]["full", "queries"] == 20
    parts = {run.info.run_name: run.data for run in runs(role="part")}
    part = parts["taught · contrastive · original · set-1"]
    assert part.metrics["main_acc_at_1"] == 0.5
    assert part.params["variant"] == "original"


@pytest.mark.usefixtures("in_project")
def test_metrics_are_found_without_quotes_and_name_their_data() -> None:
    client = connect()
    experiment = client.get_experiment_by_name("made_up")
    assert "made-up facts" in experiment.tags["mlflow.note.content"]
    query = "metrics.main_acc_at_1 > 0.7 and metrics.main_acc_at_1_ci_lower > 0"
    [run] = client.search_runs([experiment.experiment_id], query)
    assert run.data.tags["model"] == "taught"
    data = {entry.dataset.name: entry.dataset for entry in run.inputs.dataset_inputs}
    benchmark = data["outputs/benchmarks/made_up"]
    columns = json.loads(benchmark.schema)["mlflow_colspec"]
    assert {"name": "prompt", "type": "string"} in columns
    assert json.loads(benchmark.profile) == {"num_rows": 20}
    [model] = [
        item
        for item in client.search_logged_models([experiment.experiment_id])
        if item.name == "taught"
    ]
    measured = {metric.key: metric for metric in model.metrics}["main_acc_at_1"]
    assert (measured.dataset_name, measured.dataset_digest) == (benchmark.name, benchmark.digest)


@pytest.mark.usefixtures("in_project")
def test_the_main_metric_sorts_first_among_a_few() -> None:
    for run in [*runs(), *runs(role="part")]:
        names = sorted(run.data.metrics, key=str.casefold)
        assert names[0] == "main_acc_at_1"
        headlines = [name for name in names if not name.startswith("series/")]
        assert (5 if run.data.tags["medprobe.role"] == "result" else 4) <= len(headlines) <= 10
    assert not [name for test in paired_tests() for name in test.data.metrics if name < "main"]


def rows(*numbers: tuple[str, str, str, float]) -> pd.DataFrame:
    """Rows of the comparison: subset, method, metric, value."""
    table = pd.DataFrame(numbers, columns=["subset", "method", "metric", "value"])
    edges = {"low": table["value"] - 0.1, "high": table["value"] + 0.1}
    return table.assign(relation="macro", benchmark="made_up", model="taught", n=40, **edges)


def test_every_subset_has_the_main_metric_and_the_first_the_others() -> None:
    table = rows(
        ("hard", "m", "acc_at_1", 0.2),
        ("full", "m", "acc_at_1", 0.5),
        ("full", "m", "acc_at_10", 0.7),
        ("full", "m", "acc_at_10_tied", 0.7),
        ("full/length:1", "m", "acc_at_1", 0.9),
    )
    metrics = headlines(table, METADATA, edges=True)
    assert metrics == {
        "main_acc_at_1": 0.5,
        "main_acc_at_1_ci_lower": 0.4,
        "main_acc_at_1_ci_upper": 0.6,
        "main_acc_at_1_hard": 0.2,
        "more_acc_at_10": 0.7,
    }
    many = rows(*((f"subset-{i}", "m", "acc_at_1", 0.5) for i in range(20)))
    assert len(headlines(many, METADATA, edges=True)) == 10
    other = rows(("full", "m", "perplexity", 3.0))
    assert list(headlines(other, METADATA, edges=False)) == ["main_perplexity"]


def test_a_method_without_a_main_variant_has_its_first() -> None:
    named = [("full", f"xfactr:{name}", "acc_at_1", 0.5) for name in ("order", "confidence")]
    assert main_variant(rows(*named)) == "xfactr:confidence"
    swept = [("full", f"contrastive:{name}", "acc_at_1", 0.5) for name in ("original", "layer-2")]
    assert main_variant(rows(*swept)) == "contrastive:original"
    assert main_variant(rows(*swept, ("full", "contrastive", "acc_at_1", 0.5))) == "contrastive"


def test_changed_content_is_a_new_run_beside_the_old_and_its_note_says_so(store: Path) -> None:
    first = by_model()["taught"]
    note = first.data.tags["mlflow.note.content"]
    assert "**taught**, probed by **contrastive** on **made_up**: made-up facts." in note
    assert "acc@1 on full: **0.750** [" in note and "- data: d1.dir" in note
    assert "replaced" not in note
    track(PARAMS.model_copy(update={"seed": 1}))
    both = {run.data.tags[STATE]: run for run in runs() if run.data.tags["model"] == "taught"}
    assert f"runs/{first.info.run_id})" in both["current"].data.tags["mlflow.note.content"]
    assert both["superseded"].info.run_name == "taught · contrastive (superseded)"
    track(PARAMS)  # what came back is current again, and not logged anew
    assert len({run.data.tags[KEY] for run in runs()}) == len(runs()) == 4
    assert sorted(run.data.tags[STATE] for run in runs()).count("current") == 2
    assert sorted(run.data.tags[STATE] for run in paired_tests()) == ["current", "superseded"]
    assert by_name()["taught · contrastive"].info.run_id == first.info.run_id


def by_name() -> dict[str, Any]:
    return {run.info.run_name: run for run in runs()}


@pytest.mark.usefixtures("in_project")
def test_addresses_open_the_runs_with_the_headlines_as_columns() -> None:
    client = connect()
    addresses = pages.addresses(client, "http://127.0.0.1:5000")
    experiment = client.get_experiment_by_name("made_up")
    assert set(addresses) == {"made_up"}
    assert addresses["made_up"] == (
        f"http://127.0.0.1:5000/#/experiments/{experiment.experiment_id}/runs"
        "?workflowType=machine_learning&viewStateShareKey=medprobe"
    )
    view = json.loads(experiment.tags["mlflow.sharedViewState.medprobe"])
    listing = client.search_runs(
        [experiment.experiment_id], view["searchFilter"], order_by=[f"{view['orderByKey']} DESC"]
    )
    names = ["taught · contrastive", "untaught · contrastive", "all · paired-tests"]
    assert [run.info.run_name for run in listing] == names
    assert view["orderByKey"] == view["selectedColumns"][0] == "metrics.`main_acc_at_1`"
    assert not view["orderByAsc"]


def test_runs_are_in_the_order_of_what_they_know() -> None:
    """Not of the perplexity of their prompts, which more of them may have."""

    def run(**metrics: float) -> SimpleNamespace:
        return SimpleNamespace(
            data=SimpleNamespace(metrics={f"main_{k}": v for k, v in metrics.items()})
        )

    costs = [run(perplexity=3.0), run(perplexity=4.0)]
    view = pages.view(costs)
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`main_perplexity`", True)
    view = pages.view([*costs, run(acc_at_1=0.5)])
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`main_acc_at_1`", False)


@pytest.mark.usefixtures("in_project")
def test_paired_tests_are_a_run_of_each_benchmark() -> None:
    (run,) = paired_tests()
    place = "tests/contrastive/taught - untaught"
    metrics = run.data.metrics
    assert metrics[f"{place}/difference"] == pytest.approx(0.7)
    assert 0 < metrics[f"{place}/p_holm"] < 0.05
    assert len([name for name in metrics if name.endswith("/difference")]) == 2  # and of original
    assert run.data.params["confidence"] == "0.95"
    table = pd.read_csv(next(Path("mlruns").rglob("significance.csv")))
    assert list(table) == SIGNIFICANCE
    assert {"taught", "untaught"} == {*table["model_a"], *table["model_b"]}


def test_runs_have_their_difference_to_the_prior(store: Path) -> None:
    baseline("made_up")
    significance(PARAMS)
    track(PARAMS)
    tests = pd.read_parquet("outputs/significance.parquet")
    against_prior = tests[(tests["model_b"] == "baseline") & (tests["metric"] == "acc_at_1")]
    row = against_prior.set_index(["model_a", "method_a"]).loc[("taught", "contrastive")]
    metrics = by_model()["taught"].data.metrics
    assert metrics["above_prior"] == pytest.approx(row["difference"])
    assert metrics["above_prior_p"] == pytest.approx(row[["p_holm", "p_relation_holm"]].max())
    recorded = json.loads(Path("metrics/above_prior.json").read_text(encoding="utf-8"))
    (numbers,) = [models["taught"]["contrastive"] for models in recorded.values()]
    assert numbers["difference"] == pytest.approx(metrics["above_prior"], abs=1e-6)
    assert numbers["p"] == pytest.approx(metrics["above_prior_p"], abs=1e-6)
    track(PARAMS)
    history = connect().get_metric_history(by_model()["taught"].info.run_id, "above_prior")
    assert len(history) == 1


@pytest.mark.usefixtures("in_project")
def test_runs_say_what_they_were_made_from() -> None:
    results = by_model()
    tags = results["taught"].data.tags
    assert tags["dvc.data"] == "d1.dir"
    assert tags["dvc.outputs/benchmarks/made_up"] == "b1"
    assert tags["dvc.outputs/models/taught"] == "m1"
    assert tags["dvc.outputs/rewired/taught/set-0"] == "r1"
    assert tags["dvc.outputs/rewired/taught/set-1"] == "unknown"
    assert "dvc.outputs/rewired/taught/set-9" not in tags  # was not asked
    assert tags["model.revision"] == "dvc:m1"
    assert results["untaught"].data.tags["model.revision"] == "abc"
    assert (tags["stage"], tags["kind"]) == ("probe", "masked")
    assert len(tags["candidates.full"]) == 64
    assert results["taught"].data.params["contrastive.layer"] == "12"  # just made: params.yaml


@pytest.mark.usefixtures("in_project")
def test_inputs_are_datasets_with_the_hashes_of_dvc() -> None:
    run = by_model()["taught"]
    datasets = {entry.dataset.name: entry.dataset.digest for entry in run.inputs.dataset_inputs}
    assert datasets == {
        "data": "d1.dir",
        "outputs/benchmarks/made_up": "b1",
        "outputs/rewired/taught/set-0": "r1",
        "outputs/rewired/taught/set-0+mask_ratio-0.1": "r2",
        "outputs/rewired/taught/set-1": "unknown",
    }


@pytest.mark.usefixtures("in_project")
def test_a_checkpoint_is_a_model_of_mlflow() -> None:
    client = connect()
    experiment = client.get_experiment_by_name("made_up").experiment_id
    models = {model.name: model for model in client.search_logged_models([experiment])}
    assert set(models) == {"taught", "untaught"}
    assert models["taught"].tags["dvc.md5"] == "m1"
    (used,) = client.get_run(by_model()["taught"].info.run_id).inputs.model_inputs
    assert used.model_id == models["taught"].model_id
    measured = {metric.key: metric.value for metric in models["taught"].metrics}
    assert measured["main_acc_at_1"] in (0.75, 0.5)  # of the run, or of a part of it


@pytest.mark.usefixtures("in_project")
def test_sweeps_and_losses_have_their_steps() -> None:
    client, run = connect(), by_model()["taught"].info.run_id

    def series(name: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in client.get_metric_history(run, name)]

    assert series("series/by step/full") == [(50, 0.5), (100, 0.5)]
    assert series("series/rewiring loss/set-0") == [(1, 0.9), (2, 0.5)]
    assert series("series/rewiring loss/set-0_mask_ratio-0.1") == [(1, 0.8)]
    assert series("series/rewiring loss/set-9") == []
    assert series("series/train loss/default") == [(1, pytest.approx(0.7)), (2, 0.4)]
    assert series("series/validation loss/default") == [(1, pytest.approx(0.8)), (2, 0.5)]


@pytest.mark.usefixtures("in_project")
def test_a_run_has_the_times_machine_and_user_of_the_work() -> None:
    work = json.loads((RUNS / "taught/contrastive/made_up.json").read_text())
    results = by_model()
    info, tags = results["taught"].info, results["taught"].data.tags
    assert (info.start_time, info.end_time) == (work["begin"], work["end"])
    assert tags["mlflow.user"] == tags["made.user"] == lineage.user()
    assert tags["made.device"] == "cpu"
    assert tags["made.tokens"] == "1000"
    assert float(tags["made.seconds"]) == round((work["end"] - work["begin"]) / 1000, 1)
    assert int(tags["made.tokens_per_second"]) > 0
    assert tags["made.version.torch"].startswith("2.")
    assert tags["made.python"] == "{}.{}.{}".format(*sys.version_info)
    assert "made.device" not in results["untaught"].data.tags  # nobody wrote down how it was made


def test_a_record_of_another_result_is_not_taken(store: Path) -> None:
    path = RUNS / "taught/contrastive/made_up.json"
    assert lineage.record(path, TABLE)["device"] == "cpu"
    TABLE.write_bytes(TABLE.read_bytes() + b" ")
    assert lineage.record(path, TABLE) == {}


def test_parameters_of_older_results_come_from_the_lock(store: Path) -> None:
    shutil.rmtree("mlruns")
    track(PARAMS)
    results = by_model()
    assert results["taught"].data.params["contrastive.layer"] == "7"
    assert results["untaught"].data.params["contrastive.layer"] == "12"  # not in the lock


def states() -> dict[str, str]:
    """The state of each result's run, by the name it goes by."""
    experiments = [experiment.experiment_id for experiment in connect().search_experiments()]
    query = "tags.`medprobe.role` = 'result'"
    results = connect().search_runs(experiments, query)
    return {run.info.run_name: run.data.tags[STATE] for run in results}


FEWER = PARAMS.model_copy(update={"models": Models(masked={"taught": ModelParams()})})


def test_runs_of_what_params_no_longer_name_are_marked_until_it_returns(store: Path) -> None:
    before = {run.info.run_id for run in runs()}
    track(FEWER)
    assert states()["untaught · contrastive (gone)"] == "gone"
    assert states()["taught · contrastive"] == "current"
    assert "untaught" not in Path("outputs/tracked.json").read_text()
    experiment = connect().get_experiment_by_name("made_up").experiment_id
    listing = connect().search_runs([experiment], pages.CURRENT)
    assert {run.data.tags["model"] for run in listing} == {"taught", "all"}
    track(PARAMS)
    assert {*states().values()} == {"current"}
    assert {run.info.run_id for run in runs()} == before  # none was logged anew


def test_what_returns_with_other_numbers_replaces_what_was_gone(store: Path) -> None:
    track(FEWER)
    track(PARAMS.model_copy(update={"seed": 1}))
    assert states()["untaught · contrastive (superseded)"] == "superseded"
    versions = [run for run in runs() if run.data.tags["model"] == "untaught"]
    (current,) = [run for run in versions if run.data.tags[STATE] == "current"]
    assert "It replaced" in current.data.tags["mlflow.note.content"]


def test_a_benchmark_that_is_gone_has_no_address(store: Path) -> None:
    client = connect()
    record(client, Result("old", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert "old" in pages.addresses(client, "http://127.0.0.1:5000")
    track(PARAMS)
    assert [run.data.tags[STATE] for run in runs("old")] == ["gone"]
    assert [*pages.addresses(client, "http://127.0.0.1:5000")] == ["made_up"]


def test_only_the_store_of_this_very_project_is_marked(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server other projects log too; an experiment of DVC's has another params.yaml."""
    copy = store / ".dvc/tmp/exps/x"
    shutil.copytree(store / "outputs", copy / "outputs")
    monkeypatch.chdir(copy)
    track(FEWER)
    monkeypatch.chdir(store)
    assert "untaught · contrastive" in states()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}/mlruns/mlflow.db")
    track(FEWER)
    assert "untaught · contrastive" in states()


@pytest.mark.usefixtures("in_project")
def test_no_text_goes_in_unless_asked_for() -> None:
    files = [path for path in Path("mlruns").rglob("*.csv") if path.is_file()]
    names = {"top_k.csv", "samples.csv", "scores.csv", "statistics.csv", "significance.csv"}
    assert {path.name for path in files} == names | {"made_up-curves.csv"}
    for path in Path("mlruns/made_up").rglob("*.*"):
        text = path.read_text()
        assert "might treat" not in text, path
        assert "alba" not in text, path
        assert "name 1" not in text, path


def test_names_that_serve_as_ids_stay_out_too(store: Path) -> None:
    for path in PREDICTIONS.rglob("*.parquet"):
        table = pd.read_parquet(path)
        write_predictions(table.assign(prediction_id=table["prediction"]), path, "accuracy")
    track(PARAMS)
    tables = [pd.read_csv(path) for path in Path("mlruns").rglob("top_k.csv")]
    hidden = sorted(table["prediction_id"].isna().all() for table in tables)
    assert hidden == [False] * 2 + [True] * 2


def test_text_goes_in_where_params_say_so(store: Path) -> None:
    track(PARAMS.model_copy(update={"track": TrackParams(text=True)}))
    texts = [path.read_text() for path in Path("mlruns").rglob("samples.csv")]
    assert any("might treat" in text for text in texts)


def test_a_moved_store_shows_its_artefacts_again(
    tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    moved = shutil.copytree(tracked, tmp_path / "moved")
    monkeypatch.chdir(moved)
    track(PARAMS)
    client = connect()
    assert len(runs()) == 2
    for run in runs():
        assert run.info.artifact_uri.startswith(moved.as_uri())
        names = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"figures", "lineage.json", "samples.csv", "scores.csv", "top_k.csv"} <= names


def test_a_lost_store_is_filled_anew(store: Path) -> None:
    shutil.rmtree("mlruns")
    track(PARAMS)
    assert len(runs()) == 2
    assert Path("outputs/tracked.json").read_text().count("made_up/") == 2


def test_a_run_that_was_stopped_half_way_does_not_count(empty: Path) -> None:
    def broken() -> Content:
        return Content({"a": 1.0}, files={"../outside": "x"})

    client = connect()
    with pytest.raises(Exception, match="Invalid artifact path"):
        record(client, Result("b", "m", "f", "key", broken))
    assert record(client, Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert not record(client, Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert sorted(run.info.status for run in runs("b")) == ["FINISHED", "RUNNING"]


def test_drawings_are_added_once_to_a_run_that_has_none(empty: Path) -> None:
    drawn = []

    def figures() -> dict[str, str]:
        drawn.append(1)
        return {"figures/a.svg": "<svg/>"}

    client, result = connect(), Result("b", "m", "f", "key", lambda: Content({"a": 1.0}), figures)
    assert record(client, result)
    assert not drawn
    for _ in range(2):
        assert not record(client, result, figures=True)
    assert len(drawn) == 1
    (run,) = runs("b")
    assert [file.path for file in client.list_artifacts(run.info.run_id, "figures")] == [
        "figures/a.svg"
    ]


def test_what_mlflow_cuts_is_whole_in_the_artefact(empty: Path) -> None:
    params = {f"p{number}": "x" * 7000 for number in range(150)}
    record(connect(), Result("b", "m", "f", "key", lambda: Content({"a": 1.0}, params=params)))
    (run,) = runs("b")
    assert len(run.data.params) == 2 + 150
    (file,) = Path("mlruns").rglob("lineage.json")
    assert json.loads(file.read_text())["params"] == params


def test_an_experiment_that_was_deleted_comes_back(empty: Path) -> None:
    result = Result("b", "m", "f", "key", lambda: Content({"a": 1.0}))
    record(client := connect(), result)
    client.delete_experiment(client.get_experiment_by_name("b").experiment_id)
    record(client, result)
    assert len(runs("b")) == 1


def test_a_team_has_experiments_of_its_own(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDPROBE_EXPERIMENT_PREFIX", "team/")
    content = Content({"a": 1.0}, checkpoint=Dataset("outputs/models/m", "m1"))
    assert record(connect(), Result("b", "m", "f", "key", lambda: content))
    assert not record(connect(), Result("b", "m", "f", "key", lambda: content))
    assert len(runs("team/b")) == 1
    assert connect().get_experiment_by_name("b") is None


def test_on_a_server_the_results_of_others_stay(
    new_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(new_store, "server.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/server.db")
    monkeypatch.setenv("MLFLOW_ARTIFACT_ROOT", str(tmp_path))
    for user in ("one", "other"):
        monkeypatch.setattr(tracking_store, "user", lambda user=user: user)
        result = Result("b", "m", "f", f"key of {user}", lambda: Content({"a": 1.0}))
        assert record(connect(), result)
    assert {run.data.tags[STATE] for run in runs("b")} == {"current"}
    assert len(runs("b")) == 2


def test_an_experiment_of_dvc_logs_to_the_projects_store(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for below in ("x", "standalone/x"):
        copy = tmp_path / ".dvc/tmp/exps" / below
        copy.mkdir(parents=True)
        monkeypatch.chdir(copy)
        assert tracking_store.folder() == tmp_path / "mlruns"
    record(connect(), Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    monkeypatch.chdir(tmp_path)
    assert not record(connect(), Result("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    (run,) = runs("b")
    assert run.info.artifact_uri.startswith((tmp_path / "mlruns/b").as_uri())
    assert not list((tmp_path / ".dvc").rglob("mlruns"))


def test_processes_that_start_together_make_one_store(empty: Path) -> None:
    shutil.rmtree("mlruns")
    code = (
        "import sys\n"
        "from medprobe.tracking.store import Content, Result, connect, record\n"
        "content = Content({'a': 1.0})\n"
        "record(connect(), Result('b', sys.argv[1], 'f', 'key', lambda: content))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, name], stderr=subprocess.PIPE)
        for name in ("first", "second")
    ]
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors.decode()[-2000:]
    assert sorted(run.info.run_name for run in runs("b")) == ["first · f", "second · f"]


def test_lineage_of_nothing_is_nothing(empty: Path) -> None:
    nowhere = empty / "none"
    assert lineage.hashes(lock=nowhere, data=nowhere) == {}
    assert lineage.recorded_params(Path("outputs"), nowhere) is None
    assert lineage.record(nowhere, nowhere) == {}
    assert lineage.inputs("m", "b", [])["data"] == "unknown"
    assert lineage.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "d": [1]}


@pytest.mark.parametrize(
    "content",
    ["", "stages:\n  cut", "stages: [1]\n", "stages: {a: 1, b: {outs: 3}}\n", "\x00", "[\n"],
)
def test_lineage_fails_nothing(content: str, tmp_path: Path) -> None:
    path = tmp_path / "dvc.lock"
    path.write_text(content)
    assert lineage.hashes(lock=path, data=path) == {}
    assert lineage.recorded_params(Path("outputs"), path) is None


def test_a_commit_of_results_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lineage.followed() == ""

    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init")
    for name in ("params.yaml", "dvc.lock"):
        Path(name).write_text("1")
        git("add", name)
        git("commit", "-m", name)
    first = lineage.followed()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, commit [0-9a-f]{10}", first)
    assert first[-10:] != lineage.commit()[:10]
    Path("params.yaml").write_text("2")
    assert lineage.followed() == f"{first} with changes"


def test_a_store_is_made_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def stopped(client: MlflowClient, max_results: int) -> None:
        assert not Path("mlruns/mlflow.db").exists()
        Path(client.tracking_uri.removeprefix("sqlite:///")).write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(MlflowClient, "search_experiments", stopped)
        connect()
    assert {path.name for path in Path("mlruns").iterdir()} == {".lock"}
    assert len(connect().search_experiments()) == 1
