"""Prompts without their subjects: what a model answers from the relation alone."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers import probing
from medprobe import methods
from medprobe.core import neutral
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from medprobe.core.settings import RankingSettings
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables, read_table
from medprobe.metrics import Scoring
from medprobe.metrics.results import is_compared, score_table
from medprobe.metrics.significance import pair_systems, significance
from medprobe.pipeline import check
from medprobe.pipeline.stages.probe import probe
from medprobe.report.reading import describe_controls

RANKING = (
    "contrastive",
    "fill_mask",
    "generative",
    "likelihood",
    "mask_average",
    "optiprompt",
    "xfactr",
)
SUBJECTS = ("Velotrine", "hepatitis B")


def world(prompt: str = "{} treats [Y] .", subset: str = "full") -> BenchmarkTables:
    """Two queries whose prompts differ in the subject alone, and differ in their answers."""
    queries = [
        (f"q{i}", "toy", "may_treat", name, f"S{i}", prompt.format(name), [answer], ["A"], subset)
        for i, (name, answer) in enumerate(zip(SUBJECTS, ("influenza", "SNCA"), strict=True))
    ]
    candidates = [(name, name, "", subset) for name in probing.NAMES]
    return BenchmarkTables(
        pd.DataFrame(queries, columns=QUERY_COLUMNS),
        pd.DataFrame(candidates, columns=CANDIDATE_COLUMNS),
    )


def params(kind: str, method: str, **settings: object) -> Params:
    content = {
        "models": {kind: {"tiny": {}}},
        "benchmarks": {"medlama": {"toy": {}}},
        "methods": {kind: {method: {"toy": settings}}},
    }
    return Params.model_validate(content)


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], Path]
) -> Callable[..., pd.DataFrame]:
    """`project(arch, kind, method, …)`: the predictions of a tiny model on the two queries."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("medprobe.pipeline.stages.probe.code_fingerprint", lambda *_: "code")
    world().write(tmp_path / "outputs/benchmarks/toy")

    def probe_tiny(arch: str, kind: str, method: str, **settings: object) -> pd.DataFrame:
        if not (model := tmp_path / "outputs/models/tiny").exists():
            shutil.copytree(tiny_model(arch), model)
        probe("tiny", method, "toy", params(kind, method, **settings))
        return read_table(tmp_path / f"outputs/predictions/tiny/{method}/toy.parquet", [])

    return probe_tiny


def test_a_subject_is_taken_out_as_whole_words() -> None:
    assert neutral.neutral_prompt("Pain [Y] in painful Pain .", "Pain") == "[Y] in painful ."
    assert neutral.neutral_prompt("Does a Y bind to [Y] ?", "Y") == "Does a bind to [Y] ?"
    assert neutral.neutral_prompt("Aspirins treat [Y] .", "Aspirin") == "s treat [Y] ."


@pytest.mark.parametrize("subject", ["", "Y", "ibuprofen"])
def test_a_prompt_that_does_not_hold_its_subject_has_no_control(subject: str) -> None:
    tables = world()
    tables.queries.loc[0, "subject"] = subject
    controls = neutral.neutral_tables(tables).queries
    assert controls[["query_id", "prompt"]].to_numpy().tolist() == [["q1", "treats [Y] ."]]
    tables.queries["subject"] = subject
    with pytest.raises(BadInput, match=r"benchmark toy: no prompt contains its subject.*neutral:"):
        neutral.neutral_tables(tables)


def test_a_control_is_scored_over_the_queries_that_have_one(
    project: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    folder, scoring = tmp_path / "outputs/benchmarks/toy", Scoring(ScoreParams(bootstrap=20), 0)
    treated = world().queries
    again = treated.assign(query_id=["q2", "q3"], relation="may_prevent", answers=[["SNCA"]] * 2)
    queries = pd.concat([treated, again], ignore_index=True)
    queries.loc[0, "prompt"] = "This drug treats [Y] ."
    replace(world(), queries=queries).write(folder)
    project("bert", "masked", "mask_average", neutral=True)
    path = tmp_path / "outputs/predictions/tiny/mask_average/toy.parquet"
    scores = score_table(path, folder, scoring)
    sizes = {
        name: scores[name]["full"]["micro"]["acc_at_1"]["n"] for name in ("default", "neutral")
    }
    assert sizes == {"default": 4, "neutral": 3}


def test_the_page_counts_the_queries_that_have_a_control(tmp_path: Path) -> None:
    tables = world()
    settings = params("masked", "mask_average", neutral=True)
    tables.write(tmp_path / "toy")
    assert describe_controls("toy", tmp_path / "toy", settings) == []
    tables.queries.loc[0, "prompt"] = "This drug treats [Y] ."
    tables.write(tmp_path / "toy")
    (sentence,) = describe_controls("toy", tmp_path / "toy", settings)
    assert sentence.startswith("1 of 2 queries have a neutral control.")
    assert describe_controls("toy", tmp_path / "toy", params("masked", "mask_average")) == []


def test_a_control_that_lacks_queries_is_compared_by_the_mean_over_relations() -> None:
    def system(**weights: float) -> pd.DataFrame:
        rows = [("full", name, name, 0.0, weight) for name, weight in weights.items()]
        columns = ["subset", "query_id", "cluster", "acc_at_1", "weight"]
        return pd.DataFrame(rows, columns=columns).set_index(["subset", "query_id"])

    probed = system(q0=0.5, q1=0.5, q2=0.5, q3=0.5)  # q0 and q1 are of one relation
    probed.loc[("full", "q1"), "acc_at_1"] = 1.0
    systems = {("m", "x"): probed, ("m", "x:neutral"): system(q1=1.0, q2=0.5, q3=0.5)}
    (row,) = significance(systems, "toy", ScoreParams(bootstrap=20), 0).to_dict("records")
    assert (row["n"], row["difference"]) == (3, pytest.approx(1 / 2))


@pytest.mark.parametrize(
    ("method", "kind", "arch"),
    [
        ("fill_mask", "masked", "bert"),
        ("mask_average", "masked", "bert"),
        ("xfactr", "masked", "roberta"),
        ("likelihood", "masked", "bert"),
        ("likelihood", "causal", "gpt2"),
        ("likelihood", "seq2seq", "t5"),
        ("generative", "seq2seq", "bart"),
    ],
)
def test_all_queries_of_a_relation_have_one_neutral_ranking(
    project: Callable[..., pd.DataFrame], method: str, kind: str, arch: str
) -> None:
    lists = {"lists": True} if method == "likelihood" else {}  # a proof has other rows by query
    without = project(arch, kind, method, **lists)
    table = project(arch, kind, method, neutral=True, **lists)
    controls = table[table["variant"].map(neutral.is_control)]
    others = table[~table["variant"].map(neutral.is_control)].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, without)
    assert {neutral.original_variant(name) for name in controls["variant"]} == {*without["variant"]}
    columns = ["variant", "rank", "prediction", "score"]
    first, second = (
        controls.loc[controls["query_id"] == name, columns].reset_index(drop=True)
        for name in ("q0", "q1")
    )
    pd.testing.assert_frame_equal(first, second)


def test_hits_are_each_querys_and_the_ranking_is_that_of_the_bare_prompt(
    project: Callable[..., pd.DataFrame], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    table = project("bert", "masked", "mask_average", neutral=True)
    hits = table[(table["variant"] == "neutral") & table["hit"].astype(bool)]
    assert dict(zip(hits["query_id"], hits["prediction"], strict=True)) == {
        "q0": "influenza",
        "q1": "SNCA",
    }
    bare = world()
    bare.queries["prompt"] = "treats [Y] ."
    bare.write(tmp_path / "outputs/benchmarks/toy")
    probing_stage = project("bert", "masked", "mask_average")
    expected = (
        probing_stage[probing_stage["variant"] == ""].drop(columns="variant").reset_index(drop=True)
    )
    neutral_rows = (
        table[table["variant"] == "neutral"].drop(columns="variant").reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(neutral_rows, expected)


def test_neutral_adds_parts_and_keeps_the_finished_ones(
    project: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    project("bert", "masked", "mask_average")
    folder = tmp_path / "outputs/parts"
    parts = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    project("bert", "masked", "mask_average", neutral=True)
    after = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert len(parts) == 1 and len(after) == 2
    assert parts.items() <= after.items()
    neutral_only = next(path for path in after if path not in parts)
    assert set(pd.read_parquet(neutral_only)["variant"]) == {"neutral", "neutral-relation"}


@pytest.mark.parametrize("method", methods.list_names())
def test_only_methods_that_rank_take_the_setting(method: str) -> None:
    plugin = methods.find(method)
    assert issubclass(plugin.Settings, RankingSettings) == (method in RANKING)
    if method not in RANKING:
        refused = params(plugin.KINDS[0], method, neutral=True).model_copy(
            update={"folders": {"tiny": Path("tiny")}}
        )
        with pytest.raises(BadInput, match=rf"{method}\.toy: unknown key neutral"):
            check.check(refused)


def test_a_neutral_variant_is_the_control_of_its_own_variant_alone() -> None:
    for variant, control in (("x", "x:neutral"), ("x:relation", "x:neutral-relation")):
        pair = pair_systems(("m", variant), ("m", control))
        assert pair is not None and pair.family == "controls under x"
    for a, b in (
        (("m", "x:relation"), ("m", "x:neutral")),
        (("m", "y"), ("m", "x:neutral")),
        (("m", "x:neutral"), ("n", "x:neutral")),
        (("m", "x:neutral"), ("m", "x:neutral-relation")),
        (("m", "x:neutral"), ("baseline", "prior")),
        (("m", "x:step-50"), ("m", "x:neutral-step-50")),
    ):
        assert pair_systems(a, b) is None
    assert is_compared("neutral") and not is_compared("neutral-step-50")
