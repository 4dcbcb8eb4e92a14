"""The probe stage: parts that are finished are kept, hits are marked, misfits are refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from helpers import FolderOf, probing
from helpers.needed import NEEDED
from helpers.project import record_persistent
from medprobe import methods
from medprobe.cli import main
from medprobe.core import parts
from medprobe.core.answers import biolama, with_hits
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Params
from medprobe.core.settings import Section
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    DISTRACTOR,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    metric_of_predictions,
    read_table,
)
from medprobe.methods import Method, Task
from medprobe.pipeline.stages.probe import probe, probe_model


class Alphabetical(Method):
    """A method that ranks candidates by their names, and can be told to break down."""

    KINDS = ("masked",)
    METRIC = "ucm"
    ONLY_SELECTS = frozenset({"rounds"})
    ran: ClassVar[list[str]] = []
    loaded: ClassVar[list[Path]] = []
    breaks_at: ClassVar[str | None] = None

    class Settings(Section):
        rounds: tuple[str, ...] = ("",)

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.settings = settings
        self.loaded.append(checkpoint)

    def passes(self) -> list[str]:
        return list(self.settings.rounds)

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        relation = task.queries["relation"][0]
        if relation == self.breaks_at:
            raise KeyboardInterrupt
        self.ran.append(relation)
        rows = [
            ("", "", query, rank, name, -float(rank))
            for query in task.queries["query_id"]
            for rank, name in enumerate(
                sorted(task.benchmark_candidates["name"])[: task.k], start=1
            )
        ]
        columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
        return pd.DataFrame(rows, columns=columns)


PARAMS = Params.model_validate(
    {
        "models": {"masked": {"bert": {}, "bare": {}}, "causal": {"gpt": {}}},
        "benchmarks": {"medlama": {"medlama": {}}},
        "methods": {
            "masked": {
                "alphabetical": {"medlama": {}},
                "mask_average": {"medlama": {}},
                "perplexity": {"medlama": {}},
            }
        },
    }
)


@pytest.fixture
def project(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Alphabetical, "ran", [])
    monkeypatch.setattr(Alphabetical, "loaded", [])
    monkeypatch.setattr(Alphabetical, "breaks_at", None)
    real = methods.find
    monkeypatch.setattr(
        methods, "find", lambda name: Alphabetical if name == "alphabetical" else real(name)
    )
    for module in ("probing", "stages.probe"):
        monkeypatch.setattr(f"medprobe.pipeline.{module}.method_code", lambda *_: "code")
    queries = [
        [f"{subset}-{relation}", "medlama", relation, "s", "C1", "s [Y]", ["b"], ["C2"], subset]
        for subset in ("full", "hard")
        for relation in ("may_prevent", "may_treat")
    ]
    candidates = [[name, f"C-{name}", "", s] for s in ("full", "hard") for name in "cab"]
    candidates.append(["aa", "", DISTRACTOR, "full"])
    BenchmarkTables(
        pd.DataFrame(queries, columns=QUERY_COLUMNS),
        pd.DataFrame(candidates, columns=CANDIDATE_COLUMNS),
    ).write(working_folder / "outputs/benchmarks/medlama")
    model = working_folder / "outputs/models/bert"
    model.mkdir(parents=True)
    (model / "weights").write_text("1")
    return working_folder


def test_a_benchmark_without_queries_is_refused(project: Path) -> None:
    folder = project / "outputs/benchmarks/medlama"
    tables = BenchmarkTables.read(folder)
    BenchmarkTables(tables.queries.head(0), tables.candidates).write(folder)
    with pytest.raises(BadInput, match="bert, alphabetical, medlama: the benchmark has no queries"):
        probe("bert", "alphabetical", "medlama", PARAMS)


def predictions(project: Path, method: str = "alphabetical") -> pd.DataFrame:
    path = project / f"outputs/predictions/bert/{method}/medlama.parquet"
    return read_table(path, PREDICTION_COLUMNS)


def test_every_query_has_its_ranks_ids_and_hits(project: Path) -> None:
    probe("bert", "alphabetical", "medlama", PARAMS)
    table = predictions(project)
    first = table[table["query_id"] == "full-may_treat"]
    assert list(first["prediction"]) == ["a", "b", "c"]
    assert list(first["prediction_id"]) == ["C-a", "C-b", "C-c"]
    assert list(first["hit"]) == [False, True, False]
    assert table["query_id"].nunique() == 4


def test_a_result_is_written_piece_by_piece(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep's rows do not fit into memory. The table is the one that is written at once."""
    predict, gaps = Alphabetical.predict, [{"gap": None}, {}, {"gap": "cut"}, {"gap": None}]
    monkeypatch.setattr(
        Alphabetical,
        "predict",
        lambda self, task, pass_: (
            predict(self, task, pass_)
            .assign(**gaps[len(self.ran) - 1])
            .astype({"score": float if len(self.ran) > 2 else int})
        ),
    )
    path = project / "outputs/predictions/bert/alphabetical/medlama.parquet"
    probe("bert", "alphabetical", "medlama", PARAMS)
    whole = pd.read_parquet(path)
    assert pq.read_metadata(path).num_row_groups == 1
    monkeypatch.setattr(parts, "PIECE", 4)
    probe("bert", "alphabetical", "medlama", PARAMS)
    assert pq.read_metadata(path).num_row_groups == 4
    pd.testing.assert_frame_equal(pd.read_parquet(path), whole)
    assert metric_of_predictions(path) == "ucm"


def test_notes_are_a_table_of_their_own(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Alphabetical, "SIDE_TABLES", {"curves": ("task", "loss")})
    with pytest.raises(BadInput, match="SIDE_TABLES name curves, predictions lack it"):
        probe("bert", "alphabetical", "medlama", PARAMS)
    assert not (project / "outputs/predictions").exists()
    predict = Alphabetical.predict

    def with_curves(self: Alphabetical, task: Task, pass_: str) -> pd.DataFrame:
        rows = [{"task": task.name, "loss": loss} for loss in (0.5, 0.25)]
        return predict(self, task, pass_).assign(curves=json.dumps(rows))

    monkeypatch.setattr(Alphabetical, "predict", with_curves)
    shutil.rmtree(project / "outputs/parts")
    probe("bert", "alphabetical", "medlama", PARAMS)
    note = (project / "outputs/predictions/bert/alphabetical/medlama-curves.csv").read_text()
    head, *rows = note.splitlines()
    assert head == "task,loss"
    relations = ("may_prevent", "may_treat")
    tasks = [f"{relation}/{subset}" for relation in relations for subset in ("full", "hard")]
    assert rows == [f"{task},{loss}" for task in tasks for loss in (0.5, 0.25)]
    assert "curves" not in predictions(project)


def test_a_stopped_probe_goes_on_where_it_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Alphabetical, "breaks_at", "may_treat")
    with pytest.raises(KeyboardInterrupt):
        probe("bert", "alphabetical", "medlama", PARAMS)
    assert not (project / "outputs/predictions").exists()
    assert Alphabetical.ran == ["may_prevent"] * 2
    monkeypatch.setattr(Alphabetical, "breaks_at", None)
    probe("bert", "alphabetical", "medlama", PARAMS)
    resumed = predictions(project)
    assert Alphabetical.ran == ["may_prevent"] * 2 + ["may_treat"] * 2
    for part in (project / "outputs/parts").glob("*.parquet"):
        part.unlink()
    probe("bert", "alphabetical", "medlama", PARAMS)
    pd.testing.assert_frame_equal(predictions(project), resumed)


def test_a_cut_part_is_computed_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe("bert", "alphabetical", "medlama", PARAMS)
    table = predictions(project)
    [part, *_] = (project / "outputs/parts").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:500])
    Alphabetical.ran.clear()
    probe("bert", "alphabetical", "medlama", PARAMS)
    pd.testing.assert_frame_equal(predictions(project), table)
    assert 0 < len(Alphabetical.ran) < 4
    assert f"{part.relative_to(project)}: cut or damaged" in capsys.readouterr().err


def test_parts_that_share_what_they_compute_are_made_together(project: Path) -> None:
    """Else a later one would be computed from other batches than in one go."""
    probe("bert", "alphabetical", "medlama", PARAMS)
    whole = (project / "outputs/predictions/bert/alphabetical/medlama.parquet").read_bytes()
    next((project / "outputs/parts").glob("*.parquet")).unlink()
    probe("bert", "alphabetical", "medlama", PARAMS)
    assert len(Alphabetical.ran) == 6
    assert len(set(Alphabetical.ran[4:])) == 1
    path = project / "outputs/predictions/bert/alphabetical/medlama.parquet"
    assert path.read_bytes() == whole


def test_a_setting_that_only_selects_keeps_the_finished_parts(project: Path) -> None:
    probe("bert", "alphabetical", "medlama", PARAMS)
    assert len(Alphabetical.ran) == 4
    more = PARAMS.model_dump()
    more["methods"]["masked"]["alphabetical"]["medlama"] = {"rounds": ["", "again"]}
    probe("bert", "alphabetical", "medlama", Params.model_validate(more))
    assert len(Alphabetical.ran) == 8


def named(**methods: Any) -> Params:
    """The project, with `bert` probed by these methods on these benchmarks."""
    content = PARAMS.model_dump() | {"methods": {"masked": methods}}
    content["benchmarks"] = {"medlama": {"medlama": {}, "other": {}}}
    return Params.model_validate(content)


def results(project: Path) -> dict[str, bytes]:
    """The files of all results of `bert`."""
    folders = [project / "outputs" / folder / "bert" for folder in ("predictions", "runs")]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(project / "outputs").as_posix(): path.read_bytes() for path in paths}


def test_a_model_is_probed_by_all_that_params_names_and_nothing_else_stays(project: Path) -> None:
    shutil.copytree("outputs/benchmarks/medlama", "outputs/benchmarks/other")
    probe_model("bert", named(alphabetical={"medlama": {}, "other": {}}))
    made = results(project)
    of = [f"{name}/bert/alphabetical/" for name in ("predictions", "runs")]
    both = [[f"{of[0]}{x}.parquet", f"{of[1]}{x}.json"] for x in ("medlama", "other")]
    assert {*made} == {*both[0], *both[1]}
    probe_model("bert", named(alphabetical={"other": {}}))
    assert results(project) == {name: made[name] for name in both[1]}
    probe_model("bert", named())
    assert not results(project)


def test_a_result_that_nothing_has_changed_for_stays_and_loads_no_model(project: Path) -> None:
    params = named(alphabetical={"medlama": {}})
    probe_model("bert", params)
    made = results(project)
    Alphabetical.loaded.clear()
    shutil.rmtree(project / "outputs/parts")
    probe_model("bert", params)
    assert results(project) == made  # also the record of how long it took
    assert not Alphabetical.loaded
    (project / "outputs/benchmarks/medlama/candidates.parquet").touch()
    probe_model("bert", params)
    assert not Alphabetical.loaded
    (project / "outputs/models/bert/weights").write_text("2")
    probe_model("bert", params)
    assert Alphabetical.loaded


@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_lost_result_is_made_of_its_parts_without_a_model(project: Path, damage: str) -> None:
    params = named(alphabetical={"medlama": {}})
    probe_model("bert", params)
    path = project / "outputs/predictions/bert/alphabetical/medlama.parquet"
    before = path.read_bytes()
    Alphabetical.loaded.clear()
    if damage == "lost":
        shutil.rmtree(project / "outputs/predictions")
    else:
        path.write_bytes(before[:500])
    probe_model("bert", params)
    assert path.read_bytes() == before
    assert not Alphabetical.loaded


@pytest.mark.dvc
def test_results_that_were_removed_with_their_parts_return_from_the_cache(project: Path) -> None:
    """As of a model that was taken out of params.yaml, cleaned and put back."""
    params = named(alphabetical={"medlama": {}})
    probe_model("bert", params)
    before = results(project)
    record_persistent("outputs/predictions/bert", "outputs/runs/bert")
    for name in ("predictions", "runs", "parts"):
        shutil.rmtree(project / "outputs" / name)
    Alphabetical.loaded.clear()
    probe_model("bert", params)
    assert results(project) == before
    assert not Alphabetical.loaded


def test_a_failing_method_loses_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: FolderOf
) -> None:
    """The others are made, parts stay, and what failed is no result."""
    shutil.rmtree(project / "outputs/models/bert")
    (project / "outputs/models/bert").symlink_to(tiny_model("bert"))
    params = named(alphabetical={"medlama": {}}, perplexity={"medlama": {}})
    predict = Alphabetical.predict

    def breaks(self: Alphabetical, task: Task, pass_: str) -> pd.DataFrame:
        if task.name.startswith("may_treat"):
            raise BadInput(task.name, "it fails")
        return predict(self, task, pass_)

    probe_model("bert", params)
    monkeypatch.setattr(Alphabetical, "predict", breaks)
    shutil.rmtree(project / "outputs/parts")
    again = params.model_copy(update={"seed": 7})
    with pytest.raises(BadInput, match="may_treat/full: it fails"):
        probe_model("bert", again)
    paths = [f"predictions/bert/{name}/medlama.parquet" for name in ("perplexity", "alphabetical")]
    assert [path in results(project) for path in paths] == [True, False]
    assert Alphabetical.ran[-2:] == ["may_prevent"] * 2
    monkeypatch.setattr(Alphabetical, "predict", predict)
    count = len(Alphabetical.ran)
    probe_model("bert", again)
    assert Alphabetical.ran[count:] == ["may_treat"] * 2


def test_texts_that_a_model_cannot_read_are_named_before_it_is_probed(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny_model: FolderOf,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.rmtree(project / "outputs/models/bert")
    (project / "outputs/models/bert").symlink_to(tiny_model("bert"))
    tables = BenchmarkTables.read(project / "outputs/benchmarks/medlama")
    for benchmark, name in (("long", "b " * 200), ("special", "[PAD]")):
        names = tables.candidates.assign(name=tables.candidates["name"].replace("b", name))
        BenchmarkTables(tables.queries, names).write(project / f"outputs/benchmarks/{benchmark}")
    said: list[str] = []

    def listens(self: Alphabetical, task: Task, pass_: str) -> pd.DataFrame:
        said.append(capsys.readouterr().err)
        return predict(self, task, pass_)

    predict = Alphabetical.predict
    monkeypatch.setattr(Alphabetical, "predict", listens)
    params = named(alphabetical={"medlama": {}, "long": {}, "special": {}})
    refusal = r"bert, special: candidate '\[PAD\]': the text contains \[PAD\], a special token"
    with pytest.raises(BadInput, match=refusal):
        probe_model("bert", params)
    assert re.search(f"{refusal}.*; the other benchmarks are probed", said[0])
    assert "warning: bert, long: 1 name is longer than the model reads" in said[0]
    made = {Path(name).stem for name in results(project)}
    assert made == {"medlama", "long"}


def test_each_failure_is_a_line(project: Path) -> None:
    missing = {"other": {}, "another": {}}
    with pytest.raises(ExceptionGroup) as failed:
        probe_model("bert", named(alphabetical=missing))
    assert all(isinstance(error, BadInput) for error in failed.value.exceptions)
    content = {
        "models": {"masked": {"bert": {}}},
        "benchmarks": {"table": {name: {"facts": "tables/f.csv"} for name in missing}},
        "methods": {"masked": {"mask_average": missing}},
    }
    Path("params.yaml").write_text(yaml.safe_dump(NEEDED | content))
    result = CliRunner().invoke(main, ["probe", "--model", "bert"])
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("Error: ") and second.startswith("Error: ")
    assert "Traceback" not in result.output


def test_a_part_of_a_model_can_be_tried(project: Path) -> None:
    shutil.copytree("outputs/benchmarks/medlama", "outputs/benchmarks/other")
    params = named(alphabetical={"medlama": {}, "other": {}})
    probe_model("bert", params, benchmark="other")
    assert {Path(name).stem for name in results(project)} == {"other"}
    probe_model("bert", params, "alphabetical", "medlama")
    assert {Path(name).stem for name in results(project)} == {"other", "medlama"}
    for wanted, problem in (
        (("alphabet", ""), r"methods.masked: no method 'alphabet' \(did you mean 'alphabetical'"),
        (("", "othr"), r"benchmarks: no benchmark 'othr' \(did you mean 'other'"),
        (("alphabetical", "others"), r"methods.masked.alphabetical: no benchmark 'others'"),
    ):
        with pytest.raises(BadInput, match=problem):
            probe_model("bert", params, *wanted)


@pytest.mark.parametrize("method", methods.list_names())
def test_what_selects_is_a_setting(method: str) -> None:
    plugin = methods.find(method)
    assert plugin.ONLY_SELECTS.issubset(plugin.Settings.model_fields)


def test_a_method_and_a_model_that_do_not_fit(project: Path, tiny_model: FolderOf) -> None:
    able = ", ".join(methods.find_by_kind(["causal"]))
    assert "perplexity" in able
    problem = f"of kind masked, this one is causal; choose one of: {able}$"
    with pytest.raises(BadInput, match=problem):
        probe("gpt", "alphabetical", "medlama", PARAMS)
    (project / "outputs/models/bare").symlink_to(tiny_model("encoder"))
    able = ", ".join(methods.find_by_kind(["encoder"]))
    remedy = f"choose one of: {able}" if able else "no method here probes such a model"
    with pytest.raises(BadInput, match=f"masked model are missing .*{remedy}$"):
        probe("bare", "mask_average", "medlama", PARAMS)


def test_a_method_without_ranks_gets_the_standard_columns_too(
    project: Path, tiny_model: FolderOf
) -> None:
    shutil.rmtree(project / "outputs/models/bert")
    (project / "outputs/models/bert").symlink_to(tiny_model("bert"))
    probe("bert", "perplexity", "medlama", PARAMS)
    table = predictions(project, "perplexity")
    assert table["perplexity"].gt(1).all() and table["hit"].all()
    assert list(table["prediction_id"]) == ["C-b"] * 4
    path = project / "outputs/predictions/bert/perplexity/medlama.parquet"
    assert metric_of_predictions(path) == "perplexity"


def test_a_benchmarks_own_rule_says_what_is_a_hit() -> None:
    queries = pd.DataFrame({"query_id": ["q"], "answers": [["Aspirin"]]})
    candidates = pd.DataFrame({"name": ["aspirin"], "id": ["C1"]})
    table = pd.DataFrame({"query_id": ["q"], "prediction": ["aspirin"]})
    folded = BenchmarkTables(queries, candidates, normalise="biolama")
    assert with_hits(table, folded)["hit"].all()
    assert not with_hits(table, BenchmarkTables(queries, candidates))["hit"].any()


names = st.sampled_from(["a", "A", "the a", "b", "B.", "c", ""])


@given(
    st.lists(st.lists(names, max_size=3), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), names)),
)
def test_hits_are_those_of_a_plain_comparison(answers: list, rows: list) -> None:
    rows = [(str(query % len(answers)), name) for query, name in rows]
    ids = [str(number) for number in range(len(answers))]
    queries = pd.DataFrame({"query_id": ids, "answers": answers})
    candidates = pd.DataFrame({"name": ["a", "b"], "id": ["C1", "C2"]})
    table = pd.DataFrame(rows, columns=["query_id", "prediction"], dtype=str)
    found = with_hits(table, BenchmarkTables(queries, candidates, normalise="biolama"))
    slow = [biolama(name) in map(biolama, answers[int(query)]) for query, name in rows]
    assert list(found["hit"]) == slow
    assert list(found["prediction_id"]) == [{"a": "C1", "b": "C2"}.get(x, "") for _, x in rows]


@pytest.mark.parametrize(
    ("method", "arch"),
    [
        ("fill_mask", "bert"),
        ("xfactr", "bert"),
        ("mask_average", "bert"),
        ("generative", "t5"),
        ("generative", "bart"),
        ("perplexity", "bert"),
        ("perplexity", "gpt2"),
    ],
)
def test_neither_the_size_of_batches_nor_the_device_moves_a_rank(
    method: str, arch: str, tiny_model: FolderOf
) -> None:
    pass_ = "order+order" if method == "xfactr" else ""
    probing.check_ranks_stay(method, tiny_model(arch), pass_=pass_)


@pytest.fixture
def crowded(
    project: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: FolderOf
) -> Callable[[int], pd.DataFrame]:
    """`crowded(room)`: what mask_average gives where the memory holds batches of `room` tokens."""
    shutil.rmtree(project / "outputs/models/bert")
    (project / "outputs/models/bert").symlink_to(tiny_model("bert"))
    plugin = methods.find("mask_average")
    predict, engine = plugin.predict, EngineParams(token_budget=256)

    def make_table(room: int) -> pd.DataFrame:
        def narrow(self: Any, task: Task, pass_: str) -> pd.DataFrame:
            if self.model.token_budget > room:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return predict(self, task, pass_)

        monkeypatch.setattr(plugin, "predict", narrow)
        shutil.rmtree(project / "outputs/parts", ignore_errors=True)
        probe("bert", "mask_average", "medlama", PARAMS.model_copy(update={"engine": engine}))
        return read_table(project / "outputs/predictions/bert/mask_average/medlama.parquet", [])

    return make_table


def test_a_part_that_memory_does_not_hold_is_done_in_smaller_batches(
    crowded: Callable[[int], pd.DataFrame],
) -> None:
    ample, narrow = crowded(2**30), crowded(100)
    order = ["query_id", "rank", "prediction"]
    pd.testing.assert_frame_equal(ample[order], narrow[order])
    assert ample["score"].to_numpy() == pytest.approx(narrow["score"].to_numpy(), abs=1e-5)


def test_a_part_that_the_smallest_batches_do_not_fit_is_named(
    crowded: Callable[[int], pd.DataFrame],
) -> None:
    with pytest.raises(
        BadInput, match=r"bert, mask_average, medlama: may_prevent.*memory.*with mo"
    ):
        crowded(10)
