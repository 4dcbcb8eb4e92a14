"""The stage that turns predictions into numbers."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from made_up import project
from medprobe import benchmarks
from medprobe.errors import BadInput
from medprobe.params import Params, ScoreParams
from medprobe.report import paired_tests
from medprobe.stages.score import score

PARAMS = Params(score=ScoreParams(bootstrap=100))
PLACES = (Path("outputs/predictions"), Path("outputs/benchmarks"), Path("metrics"))


def test_a_file_a_model_and_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch)
    score(*PLACES, PARAMS)
    content = json.loads(Path("metrics/taught/contrastive.json").read_text())
    variants = content["made_up"]
    assert set(variants) == {"default", "original", "step-50", "step-100"}
    number = variants["default"]["full"]["macro"]["acc_at_1"]
    assert number["value"] == 0.75
    assert number["low"] < 0.75 < number["high"]
    assert (number["n"], number["std"]) == (20, 0)
    assert variants["original"]["full"]["may_treat"]["acc_at_1"]["value"] == 1.0
    assert Path("metrics/untaught/contrastive.json").is_file()


def test_the_same_input_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)
    score(*PLACES, PARAMS)
    first = Path("metrics/taught/contrastive.json").read_bytes()
    (Path("metrics") / "gone.json").write_text("{}")
    score(*PLACES, PARAMS)
    assert Path("metrics/taught/contrastive.json").read_bytes() == first
    assert not (Path("metrics") / "gone.json").exists()


def test_no_predictions_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no predictions"):
        score(tmp_path, tmp_path, tmp_path / "metrics", PARAMS)
    assert not (tmp_path / "metrics").exists()


def test_a_benchmark_brings_its_own_values_or_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)

    def values(predictions: pd.DataFrame, folder: Path) -> pd.DataFrame:
        one = predictions.drop_duplicates("query_id").assign(subset="full", relation="r")
        columns = ["variant", "replicate", "query_id", "subset", "relation", "perplexity"]
        return one.assign(perplexity=7.5)[columns]

    monkeypatch.setattr(benchmarks, "find", lambda name: SimpleNamespace(values=values))
    score(*PLACES, PARAMS)
    content = json.loads(Path("metrics/taught/contrastive.json").read_text())
    assert content["made_up"]["default"]["full"]["macro"]["perplexity"]["value"] == 7.5

    whole = {"default": {"full": {"macro": {"f1": {"value": 0.5, "n": 4}}}}}
    module = SimpleNamespace(score=lambda predictions, folder, params: whole)
    monkeypatch.setattr(benchmarks, "find", lambda name: module)
    score(*PLACES, PARAMS)
    content = json.loads(Path("metrics/taught/contrastive.json").read_text())
    assert content == {"made_up": whole}


def test_paired_tests_compare_what_a_benchmark_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)

    def paired(predictions: pd.DataFrame, folder: Path) -> pd.DataFrame:
        first = predictions[predictions["rank"] == 1]
        return first.assign(subset="tests", f1_by_positive=first["hit"].astype(float))

    monkeypatch.setattr(benchmarks, "find", lambda name: SimpleNamespace(paired=paired))
    table = paired_tests.tests(*PLACES[:2], PARAMS)
    assert set(table["metric"]) == {"f1_by_positive"}
    same = table[(table["method_a"] == "contrastive") & (table["method_b"] == "contrastive")]
    assert same["difference"].tolist() == [pytest.approx(14 / 20)]
