"""The stage that turns predictions into numbers, and the tables made of them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from made_up import METADATA, predictions, project, ranked
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import ABOUT, BENCHMARKS, MODELS, PREDICTIONS, SUMMARY, SWEEPS
from medprobe.core.tables import read_table, write_predictions
from medprobe.metrics.results import (
    SIGNIFICANCE,
    comparison,
    paired_tests,
    significance,
    sweep,
)
from medprobe.stages.score import score

PARAMS = Params(score=ScoreParams(bootstrap=100))
SCORES = Path("metrics/scores/taught/contrastive.json")
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"


@pytest.fixture(autouse=True)
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch)


def test_a_file_a_model_and_method() -> None:
    score(PARAMS)
    variants = json.loads(SCORES.read_text())["made_up"]
    assert set(variants) == {"default", "original", "step-50", "step-100"}
    number = variants["default"]["full"]["macro"]["acc_at_1"]
    assert number["value"] == 0.75
    assert number["low"] < 0.75 < number["high"]
    assert (number["n"], number["std"]) == (20, 0)
    assert variants["original"]["full"]["may_treat"]["acc_at_1"]["value"] == 1.0
    assert Path("metrics/scores/untaught/contrastive.json").is_file()


def test_the_same_input_gives_the_same_bytes() -> None:
    score(PARAMS)
    paths = sorted(path for path in Path("metrics").rglob("*.*") if path.is_file())
    first = [path.read_bytes() for path in paths]
    (Path("metrics/scores") / "gone.json").write_text("{}")
    score(PARAMS)
    assert sorted(path for path in Path("metrics").rglob("*.*") if path.is_file()) == paths
    assert [path.read_bytes() for path in paths] == first


def test_the_summary_holds_a_number_a_result() -> None:
    score(PARAMS)
    made = {"taught": {"contrastive": 0.75}, "untaught": {"contrastive": 0.05}}
    assert json.loads(SUMMARY.read_text()) == {"made_up": made}
    assert len(SUMMARY.read_text().splitlines()) <= 6


def test_the_summary_takes_what_the_benchmark_is_judged_by() -> None:
    replace(METADATA, primary_metric="acc_at_10").write(ABOUT / "made_up.json")
    table = read_table(TABLE, [])
    third = predictions(*(ranked(name, "..x") for name in table["query_id"].unique()))
    write_predictions(third, PREDICTIONS / "taught/likelihood/made_up.parquet", "accuracy")
    strange = table.query("rank == 1 and variant == '' and replicate == 'set-0'")
    path = PREDICTIONS / "taught/perplexity/made_up.parquet"
    write_predictions(strange.assign(perplexity=7.5), path, "perplexity")
    score(PARAMS)
    summary = json.loads(SUMMARY.read_text())["made_up"]["taught"]
    assert summary == {"contrastive": 0.75, "likelihood": 1.0, "perplexity": 7.5}


def test_the_summary_takes_the_first_variant_where_none_is_the_main_one() -> None:
    table = read_table(TABLE, []).query("variant == 'original'")
    write_predictions(table, TABLE, "accuracy")
    score(PARAMS)
    assert json.loads(SUMMARY.read_text())["made_up"]["taught"] == {"contrastive": 0.5}


def test_a_sweep_is_a_line_to_plot() -> None:
    score(PARAMS)
    models = ("taught", "untaught")
    names = [f"made_up-{model}-contrastive-step.csv" for model in models]
    assert sorted(path.name for path in SWEEPS.iterdir()) == names
    assert (SWEEPS / names[0]).read_text() == "step,value\n50.0,0.5\n100.0,0.5\n"


def test_facts_of_a_model_are_a_split_of_its_scores() -> None:
    facts = MODELS / "taught/facts.csv"
    facts.parent.mkdir(parents=True)
    rows = ["S0,may_treat,C0,2", "S1,may_treat,C1,0"]
    facts.write_text("\n".join(["subject_cui,relation,object_cui,times", *rows]))
    score(PARAMS)
    subsets = json.loads(SCORES.read_text())["made_up"]["default"]
    assert {name for name in subsets if "/read:" in name} == {"full/read:0", "full/read:2"}
    assert "/read:" not in Path("metrics/scores/untaught/contrastive.json").read_text()


def test_a_table_is_scored_by_the_family_it_names() -> None:
    table = read_table(TABLE, []).query("rank == 1 and variant == '' and replicate == 'set-0'")
    write_predictions(table.assign(perplexity=7.5), TABLE, "perplexity")
    score(PARAMS)
    content = json.loads(SCORES.read_text())["made_up"]["default"]
    assert content["full"]["macro"]["perplexity"]["value"] == 7.5
    one = table.assign(category="tests", target="C1", label=[1, 0] * 10, prediction="1")
    one["query_id"] = [f"{number // 2}-{number % 2}" for number in range(20)]
    write_predictions(one, TABLE, "f1")
    score(PARAMS)
    content = json.loads(SCORES.read_text())["made_up"]["default"]
    assert content["tests"]["C1"]["f1"]["value"] == pytest.approx(2 / 3, abs=1e-6)


def test_predictions_of_another_benchmark_are_named() -> None:
    strange = read_table(TABLE, []).assign(query_id="elsewhere")
    write_predictions(strange, TABLE, "accuracy")
    with pytest.raises(BadInput, match=r"made_up.parquet: query elsewhere: .*not in the benchmark"):
        score(PARAMS)
    strange.to_parquet(TABLE)
    with pytest.raises(BadInput, match=r"made_up.parquet: no prediction table"):
        score(PARAMS)


def test_no_predictions_is_said() -> None:
    shutil.rmtree(PREDICTIONS)
    with pytest.raises(BadInput, match="no predictions"):
        score(PARAMS)
    assert not Path("metrics").exists()


def test_no_scores_is_said() -> None:
    with pytest.raises(BadInput, match="no scores"):
        comparison()


def test_paired_tests_compare_systems_and_correct() -> None:
    table = paired_tests(PREDICTIONS, BENCHMARKS, PARAMS)
    assert list(table) == SIGNIFICANCE
    assert set(table["metric"]) == {"acc_at_1", "acc_at_10"}
    assert not table["method_a"].str.contains("step").any()
    both = table[(table["metric"] == "acc_at_1") & (table["method_a"] == table["method_b"])]
    row = both[both["method_a"] == "contrastive"].iloc[0]
    assert (row["model_a"], row["model_b"], row["n"]) == ("taught", "untaught", 20)
    assert row["difference"] == pytest.approx(14 / 20)
    assert row["low"] < 0.7 < row["high"]
    assert row["p"] < 0.01
    assert (table["p_holm"] >= table["p"]).all()
    assert paired_tests(PREDICTIONS, BENCHMARKS, PARAMS, "another").empty


def test_paired_tests_compare_what_the_family_says() -> None:
    for model, said in (("taught", "1"), ("untaught", "0")):
        path = PREDICTIONS / model / "contrastive/made_up.parquet"
        table = read_table(path, []).query("rank == 1 and variant == ''")
        table = table.assign(category="tests", target="C1", label=1, prediction=said)
        table["query_id"] = [str(number) for number in range(len(table))]
        write_predictions(table, path, "f1")
    found = paired_tests(PREDICTIONS, BENCHMARKS, PARAMS)[["subset", "metric", "difference"]]
    assert found.to_numpy().tolist() == [["full", "f1", 1], ["tests", "f1", 1]]


def test_one_model_alone_is_tested_against_nobody() -> None:
    table = pd.DataFrame({"subset": ["full"], "query_id": ["q"], "acc_at_1": [1.0]})
    assert significance({("m", "fill_mask"): table}, "b", PARAMS.score, 0).empty


def test_a_sweep_is_told_by_its_name() -> None:
    assert sweep("contrastive:step-50") == ("step", 50)
    assert sweep("contrastive:original") is None
    assert sweep("contrastive") is None
