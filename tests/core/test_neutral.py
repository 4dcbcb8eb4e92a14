"""Prompts without their subjects: what a model answers from the relation alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers.neutral_world import Probe, check_one_ranking, params, prober, world
from medprobe import methods
from medprobe.core import neutral, plugins
from medprobe.core.errors import BadInput
from medprobe.core.params import ScoreParams
from medprobe.core.settings import RankingSettings
from medprobe.metrics import Scoring
from medprobe.metrics.results import is_compared, score_table
from medprobe.metrics.significance import pair_systems, significance
from medprobe.pipeline import check
from medprobe.report.reading import describe_controls

RANKING = {"fill_mask", "generative", "mask_average", "optiprompt", "xfactr"}  # of the kernel


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], Path]
) -> Probe:
    return prober(tmp_path, monkeypatch, tiny_model)


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


def test_a_control_is_scored_over_the_queries_that_have_one(project: Probe, tmp_path: Path) -> None:
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
        ("generative", "seq2seq", "bart"),
    ],
)
def test_all_queries_of_a_relation_have_one_neutral_ranking(
    project: Probe, method: str, kind: str, arch: str
) -> None:
    check_one_ranking(project, arch, kind, method)


def test_hits_are_each_querys_and_the_ranking_is_that_of_the_bare_prompt(
    project: Probe, tiny_model: Callable[[str], Path], tmp_path: Path
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


def test_neutral_adds_parts_and_keeps_the_finished_ones(project: Probe, tmp_path: Path) -> None:
    project("bert", "masked", "mask_average")
    folder = tmp_path / "outputs/parts"
    parts = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    project("bert", "masked", "mask_average", neutral=True)
    after = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert len(parts) == 1 and len(after) == 2
    assert parts.items() <= after.items()
    neutral_only = next(path for path in after if path not in parts)
    assert set(pd.read_parquet(neutral_only)["variant"]) == {"neutral", "neutral-relation"}


def takes_neutral(method: str) -> bool:
    return issubclass(methods.find(method).Settings, RankingSettings)


def test_the_kernels_methods_that_rank_take_the_setting() -> None:
    folder = plugins.ROOT / "methods"
    found = plugins.find_plugins("methods").items()
    own = [name for name, plugin in found if plugin.path.parent == folder]
    assert {name for name in own if takes_neutral(name)} == RANKING


@pytest.mark.parametrize(
    "method", [name for name in methods.list_names() if not takes_neutral(name)]
)
def test_other_methods_refuse_the_setting(method: str) -> None:
    refused = params(methods.find(method).KINDS[0], method, neutral=True).model_copy(
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
