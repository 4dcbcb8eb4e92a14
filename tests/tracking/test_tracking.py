"""What `medprobe track` logs of a project: once, never doubled, rebuilt when lost or moved."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers.project import copy_project
from helpers.tracked_project import PARAMS, STAGES, make_project, track_project
from medprobe.core import lineage, places
from medprobe.core.params import ModelParams, Models, TrackParams
from medprobe.core.places import PREDICTIONS, RUNS
from medprobe.core.tables import write_predictions
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.pipeline.stages.track import track, track_model
from medprobe.tracking import pages
from medprobe.tracking.store import (
    CURRENT,
    KEY,
    STATE,
    Content,
    NotLogged,
    PendingRun,
    connect,
    record,
)
from tracking.test_store import runs

# What a section adds to the runs of results; a project's own is found next to its params.yaml.
SECTION = """
from medprobe.report.sections import Section

SECTION = Section(
    170,
    inputs=lambda result: [f"outputs/further/{result.model}"],
    series=lambda result: {"loss": [(1, 0.9), (2, 0.5)]} if result.model == "taught" else {},
)
"""
FURTHER = {"further@taught": {"outs": [{"path": "outputs/further/taught", "md5": "f1"}]}}
FEWER = PARAMS.model_copy(update={"models": Models(masked={"taught": ModelParams()})})


def by_model() -> dict[str, Any]:
    return {run.data.tags["model"]: run for run in runs()}


def paired_tests() -> list[Any]:
    client = connect()
    experiment = client.get_experiment_by_name("made_up")
    return list(client.search_runs([experiment.experiment_id], "tags.method = 'paired-tests'"))


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose results were tracked."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_project(folder, monkeypatch, STAGES | FURTHER)
        Path("params.yaml").touch()
        Path("plugins/sections").mkdir(parents=True)
        Path("plugins/sections/further.py").write_text(SECTION)
        track_project(PARAMS)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tracked project whose results have no variants."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_project(folder, monkeypatch, STAGES, [""])
        track_project(PARAMS)
    return folder


@pytest.fixture
def store(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the small project, to work in."""
    folder = tmp_path / "copy"
    copy_project(small, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


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
    children = [run.data.params for run in runs(role="part") if run.data.tags["model"] == "taught"]
    found = sorted((child["variant"], child["replicate"]) for child in children)
    sets, steps = ("set-0", "set-1"), ("step-50", "step-100")
    two = [(variant, name) for variant in ("default", "original") for name in sets]
    assert found == sorted([*two, *((step, "") for step in steps)])
    metrics = results["taught · contrastive"].data.metrics
    assert metrics["acc_at_1"] == 0.75
    assert metrics["acc_at_1_low"] < 0.75 < metrics["acc_at_1_high"]
    statistics = pd.read_csv(next(Path("mlruns").rglob("statistics.csv")))
    assert statistics.set_index(["subset", "metric"])["value"]["full", "queries"] == 20
    parts = {run.info.run_name: run.data for run in runs(role="part")}
    part = parts["taught · contrastive · original · set-1"]
    assert part.metrics["acc_at_1"] == 0.5
    assert part.params["variant"] == "original"


@pytest.mark.usefixtures("in_project")
def test_metrics_are_found_without_quotes_and_name_their_data() -> None:
    client = connect()
    experiment = client.get_experiment_by_name("made_up")
    assert "Made-up facts" in experiment.tags["mlflow.note.content"]
    query = "metrics.acc_at_1 > 0.7 and metrics.acc_at_1_low > 0"
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
    measured = {metric.key: metric for metric in model.metrics}["acc_at_1"]
    assert (measured.dataset_name, measured.dataset_digest) == (benchmark.name, benchmark.digest)


def states() -> dict[str, str]:
    """The state of each result's run, by the name it goes by."""
    experiments = [experiment.experiment_id for experiment in connect().search_experiments()]
    query = "tags.`medprobe.role` = 'result'"
    results = connect().search_runs(experiments, query)
    return {run.info.run_name: run.data.tags[STATE] for run in results}


def check_children() -> None:
    """They have the state of their run."""
    parents = {run.info.run_id: run for run in runs()}
    children = runs(role="part")
    assert len(children) == 2 * len(parents)  # a replicate each
    for child in children:
        parent = parents[child.data.tags["mlflow.parentRunId"]]
        assert child.data.tags[STATE] == parent.data.tags[STATE]
        is_superseded = child.info.run_name.endswith(" (superseded)")
        assert is_superseded == (child.data.tags[STATE] == "superseded")
    names = [run.info.run_name for run in children]
    assert len({*names}) == len(names)


def test_changed_content_is_a_new_run_beside_the_old(store: Path) -> None:
    """What was gone and returns with other numbers is replaced, too."""
    first = by_model()["taught"]
    note = first.data.tags["mlflow.note.content"]
    assert "**taught**, probed by **contrastive** on **made_up**: made-up facts." in note
    assert "acc@1 on full: **0.750** [" in note and "- data: d1.dir" in note
    track(FEWER)
    track(PARAMS.model_copy(update={"seed": 1}))
    check_children()
    for model in ("taught", "untaught"):
        both = {run.data.tags[STATE]: run for run in runs() if run.data.tags["model"] == model}
        assert both.keys() == {"superseded", "current"}
        assert both["superseded"].info.run_name == f"{model} · contrastive (superseded)"
    track(PARAMS)  # what came back is current again, and not logged anew
    assert len({run.data.tags[KEY] for run in runs()}) == len(runs()) == 4
    assert sorted(run.data.tags[STATE] for run in runs()).count("current") == 2
    assert sorted(run.data.tags[STATE] for run in paired_tests()) == ["current", "superseded"]
    assert states()["taught · contrastive"] == "current"


@pytest.mark.full
def test_an_experiment_in_a_copy_supersedes_nothing_until_it_is_applied(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs have its name; those that it shares with the project stay the project's."""
    before = states()
    copy = store / ".dvc/tmp/exps/standalone/tmp1"
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns("mlruns", ".dvc"))
    other = PARAMS.model_copy(update={"seed": 1})
    with monkeypatch.context() as there:
        there.setenv("DVC_EXP_NAME", "gaudy-mona")
        there.chdir(copy)
        track(PARAMS)
        assert states() == before
        track(other)
        track(other)
    of_experiment = {name: state for name, state in states().items() if name not in before}
    assert {*of_experiment.values()} == {"experiment"}
    assert "taught · contrastive (gaudy-mona)" in of_experiment
    assert before.items() <= states().items()
    track(PARAMS)
    assert {**before, **of_experiment} == states()
    track(other)  # as after `dvc exp apply`
    assert states()["taught · contrastive"] == "current"
    assert states()["taught · contrastive (superseded)"] == "superseded"
    track(PARAMS)
    assert "experiment" not in states().values()
    assert states().items() >= before.items()


def test_a_damaged_store_stops_no_stage(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = Path("mlruns/mlflow.db")
    shutil.copy(database, "whole.db")
    database.write_bytes(b"noise" * 1_000)
    track_model("taught", PARAMS)
    track(PARAMS, required=False)
    assert capsys.readouterr().err.count("not logged to MLflow: ") == 2
    assert json.loads(Path("outputs/tracked.json").read_text()) == {}
    with pytest.raises(NotLogged, match="`medprobe track` logs it later"):
        track(PARAMS)


def test_baselines_are_runs_and_the_distance_to_the_best_a_column(store: Path) -> None:
    places.SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    places.SUMMARY.write_text(
        '{"made_up": {"baseline": {"majority": 0.2, "letters": 0.3, "chance": 0.1}}}'
    )
    track(PARAMS)
    client = connect()
    pages.addresses(client, "")
    every = client.get_experiment_by_name("all benchmarks")
    view = json.loads(every.tags["mlflow.sharedViewState.medprobe"])
    order = [f"{view['orderByKey']} DESC"]
    listing = client.search_runs([every.experiment_id], view["searchFilter"], order_by=order)
    assert [(run.info.run_name, run.data.metrics["made_up/acc_at_1"]) for run in listing] == [
        ("taught · all", pytest.approx(0.75)),
        ("baseline · letters", 0.3),
        ("baseline · majority", 0.2),
        ("untaught · all", pytest.approx(0.05)),
    ]
    untaught, taught = (by_model()[name].data.metrics for name in ("untaught", "taught"))
    assert untaught["to_best"] == pytest.approx(0.7) and untaught["p_to_best"] < 0.05
    assert "to_best" not in taught


@pytest.mark.usefixtures("in_project")
def test_addresses_open_the_runs_with_the_headlines_as_columns() -> None:
    client = connect()
    addresses = pages.addresses(client, "http://127.0.0.1:5000")
    experiment = client.get_experiment_by_name("made_up")
    assert set(addresses) == {"all benchmarks", "made_up"}
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
    assert view["orderByKey"] == "metrics.`acc_at_1`"
    assert "metrics.`acc_at_1`" in view["selectedColumns"]
    assert "metrics.`acc_at_1_low`" not in view["selectedColumns"]
    assert not view["orderByAsc"]


@pytest.mark.usefixtures("in_project")
def test_paired_tests_are_a_run_of_each_benchmark() -> None:
    (run,) = paired_tests()
    place = "tests/taught - untaught"
    metrics = run.data.metrics
    assert metrics[f"{place}/difference"] == pytest.approx(0.7)
    corrected = pd.read_parquet("outputs/significance.parquet")["p_holm"]
    assert metrics[f"{place}/p"] in corrected.to_list() and 0 < metrics[f"{place}/p"] < 0.05
    assert len([name for name in metrics if name.endswith("/difference")]) == 1
    assert run.data.params["confidence"] == "0.95"
    table = pd.read_csv(next(Path("mlruns").rglob("significance.csv")))
    assert list(table) == SIGNIFICANCE
    assert {"taught", "untaught", "baseline"} == {*table["model_a"], *table["model_b"]}


def test_runs_have_their_difference_to_shuffled_answers(store: Path) -> None:
    track(PARAMS)
    tests = pd.read_parquet("outputs/significance.parquet")
    rows = tests[(tests["metric"] == "acc_at_1") & (tests["model_a"] == "taught")]
    rows = rows[rows["subset"] == "full"]
    [row] = rows[rows["method_b"] == "contrastive:shuffled"].to_dict("records")
    metrics = by_model()["taught"].data.metrics
    assert metrics["above_shuffled"] == pytest.approx(row["difference"])
    assert metrics["p_above_shuffled"] == pytest.approx(row["p_holm"])
    recorded = json.loads(Path("metrics/main.json").read_text(encoding="utf-8"))
    (numbers,) = [models["taught"] for models in recorded.values()]
    for name in ("above_shuffled", "p_above_shuffled"):
        assert numbers[name] == pytest.approx(metrics[name], abs=1e-6)
    track(PARAMS)
    history = connect().get_metric_history(by_model()["taught"].info.run_id, "above_shuffled")
    assert len(history) == 1


@pytest.mark.usefixtures("in_project")
def test_runs_say_what_they_were_made_from() -> None:
    results = by_model()
    tags = results["taught"].data.tags
    assert tags["dvc.data"] == "d1.dir"
    assert tags["dvc.outputs/benchmarks/made_up"] == "b1"
    assert tags["dvc.outputs/models/taught"] == "m1"
    assert tags["dvc.outputs/further/taught"] == "f1"
    assert results["untaught"].data.tags["dvc.outputs/further/untaught"] == "unknown"
    assert tags["model.revision"] == "dvc:m1"
    assert results["untaught"].data.tags["model.revision"] == "abc"
    assert (tags["stage"], tags["kind"]) == ("probe", "masked")
    assert len(tags["candidates.full"]) == 64
    assert results["taught"].data.params["contrastive.layer"] == "7"


@pytest.mark.usefixtures("in_project")
def test_inputs_are_datasets_with_the_hashes_of_dvc() -> None:
    run = by_model()["taught"]
    datasets = {entry.dataset.name: entry.dataset.digest for entry in run.inputs.dataset_inputs}
    kernel = {name: md5 for name, md5 in datasets.items() if not name.startswith("outputs/rewired")}
    assert kernel == {
        "data": "d1.dir",
        "outputs/benchmarks/made_up": "b1",
        "outputs/further/taught": "f1",
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
    assert measured["acc_at_1"] in (0.75, 0.5)  # of the run, or of a part of it


@pytest.mark.usefixtures("in_project")
def test_sweeps_and_losses_have_their_steps() -> None:
    client, results = connect(), by_model()

    def series(name: str, model: str = "taught") -> list[tuple[int, float]]:
        history = client.get_metric_history(results[model].info.run_id, f"series/{name}")
        return [(point.step, point.value) for point in history]

    assert series("by step/full") == [(50, 0.5), (100, 0.5)]
    assert series("loss") == [(1, 0.9), (2, 0.5)]
    assert series("loss", "untaught") == []


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


def test_runs_of_what_params_no_longer_name_are_marked_until_it_returns(store: Path) -> None:
    before = {run.info.run_id for run in runs()}
    track(FEWER)
    assert states()["untaught · contrastive (gone)"] == "gone"
    assert states()["taught · contrastive"] == "current"
    assert "untaught" not in Path("outputs/tracked.json").read_text()
    experiment = connect().get_experiment_by_name("made_up").experiment_id
    listing = connect().search_runs([experiment], CURRENT)
    assert {run.data.tags["model"] for run in listing} == {"taught", "all"}
    track(PARAMS)
    assert {*states().values()} == {"current"}
    assert {run.info.run_id for run in runs()} == before  # none was logged anew


def test_a_benchmark_that_is_gone_has_no_address(store: Path) -> None:
    client = connect()
    record(client, PendingRun("old", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert "old" in pages.addresses(client, "http://127.0.0.1:5000")
    track(PARAMS)
    assert [run.data.tags[STATE] for run in runs("old")] == ["gone"]
    assert [*pages.addresses(client, "http://127.0.0.1:5000")] == ["all benchmarks", "made_up"]


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
    names |= {"means.csv"}
    assert {path.name for path in files} == names | {"made_up-curves.csv"}
    for path in Path("mlruns/made_up").rglob("*.*"):
        text = path.read_text()
        assert "might treat" not in text, path
        assert "alba" not in text, path
        assert "name 1" not in text, path


def test_names_that_serve_as_ids_stay_out_too(store: Path) -> None:
    for path in PREDICTIONS.glob("taught/*/*.parquet"):
        table = pd.read_parquet(path)
        write_predictions(table.assign(prediction_id=table["prediction"]), path, "accuracy")
    track(FEWER)
    tables = [pd.read_csv(path) for path in Path("mlruns").rglob("top_k.csv")]
    hidden = sorted(table["prediction_id"].isna().all() for table in tables)
    assert hidden == [False] * 2 + [True]


@pytest.mark.full
def test_a_moved_store_is_filled_again_with_text_where_params_say_so(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow keeps absolute paths of artefacts."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    moved = shutil.copytree(small, tmp_path / "moved")
    monkeypatch.chdir(moved)
    with_text = PARAMS.model_copy(update={"track": TrackParams(text=True)})
    with pytest.raises(NotLogged, match=r"another place.*; delete mlruns/"):
        track(with_text)
    ignored = shutil.ignore_patterns("mlruns")
    moved = shutil.copytree(small, tmp_path / "emptied", ignore=ignored)
    monkeypatch.chdir(moved)
    track(with_text)
    client = connect()
    assert len(runs()) == 2
    for run in runs():
        assert run.info.artifact_uri.startswith(moved.as_uri())
        names = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"figures", "lineage.json", "samples.csv", "scores.csv", "top_k.csv"} <= names
    texts = [path.read_text() for path in Path("mlruns").rglob("samples.csv")]
    assert any("might treat" in text for text in texts)


@pytest.mark.usefixtures("in_project")
def test_a_model_has_a_run_over_all_benchmarks() -> None:
    client = connect()
    experiment = client.get_experiment_by_name("all benchmarks")
    assert "main result" in experiment.tags["mlflow.note.content"]
    every = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name: run.data.metrics for run in every} == {
        f"{model} · all": {"made_up/acc_at_1": by_model()[model].data.metrics["acc_at_1"]}
        for model in ("taught", "untaught")
    } | {f"baseline · {name}": {"made_up/acc_at_1": 0.2} for name in ("letters", "majority")}
    [own] = [run for run in every if run.info.run_name == "taught · all"]
    assert own.data.params["made_up.method"] == "contrastive"
    [table, _] = [pd.read_csv(path) for path in Path("mlruns").rglob("means.csv")]
    assert [*table["relation"]] == ["macro"]


@pytest.mark.usefixtures("in_project")
def test_inputs_say_what_they_are_for_and_children_have_them_and_a_description() -> None:
    [run] = [run for run in runs() if run.data.tags["model"] == "taught"]
    children = [child for child in runs(role="part") if child.data.tags["model"] == "taught"]
    assert children
    for each in (run, *children):
        inputs = {entry.dataset.name: entry.tags for entry in each.inputs.dataset_inputs}
        contexts = {name: tags[0].value for name, tags in inputs.items()}
        assert contexts["outputs/benchmarks/made_up"] == "evaluation"
        assert contexts["data"] == "sources"
        assert each.data.tags["mlflow.note.content"]
        assert len(connect().get_run(each.info.run_id).inputs.model_inputs) == 1


def test_a_lost_store_is_filled_anew(store: Path) -> None:
    """Parameters come from the record of each result; from params.yaml if that is lost."""
    shutil.rmtree("mlruns")
    track(PARAMS)
    assert len(runs()) == 2
    assert Path("outputs/tracked.json").read_text().count("made_up/") == 2
    results = by_model()
    assert results["taught"].data.params["contrastive.layer"] == "7"  # as it was when it was made
    assert results["untaught"].data.params["contrastive.layer"] == "12"  # without a record
