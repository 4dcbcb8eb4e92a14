"""Predictions of the family f1 in the stage that scores, and in the paired tests."""

import json
from pathlib import Path

import pytest

from helpers.toy_project import NAMED, project
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import BENCHMARKS, PREDICTIONS
from medprobe.core.tables import read_table, write_predictions
from medprobe.metrics.significance import paired_tests
from medprobe.pipeline.stages.score import score

PARAMS = Params(score=ScoreParams(bootstrap=100), **NAMED)
SCORES = Path("metrics/scores/taught/contrastive.json")
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"


@pytest.fixture(autouse=True)
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch)


def test_a_table_is_scored_by_the_family_it_names() -> None:
    table = read_table(TABLE, []).query("rank == 1 and variant == '' and replicate == 'set-0'")
    f1_table = table.assign(
        category="tests", target="C1", label=[1, 0] * 10, prediction="1", fewest=2
    )
    f1_table["query_id"] = [f"{number // 2}-{number % 2}" for number in range(20)]
    write_predictions(f1_table, TABLE, "f1")
    score(PARAMS)
    content = json.loads(SCORES.read_text())["made_up"]["default"]
    assert content["tests"]["C1"]["f1"]["value"] == pytest.approx(2 / 3, abs=1e-6)


def test_paired_tests_compare_what_the_family_says() -> None:
    for model, label in (("taught", "1"), ("untaught", "0")):
        path = PREDICTIONS / model / "contrastive/made_up.parquet"
        table = read_table(path, []).query("rank == 1 and variant == '' and replicate == 'set-0'")
        table = table.assign(
            category="tests", target=["C1", "C2"] * 10, label=1, prediction=label, fewest=2
        )
        table["query_id"] = [f"{number}-0" for number in range(20)]
        write_predictions(table, path, "f1")
    whole, row = (
        paired_tests(PREDICTIONS, BENCHMARKS, PARAMS).query("metric == 'f1'").to_dict("records")
    )
    assert (whole["subset"], row["subset"], row["difference"]) == ("full", "tests", 1)
    assert (row["n"], row["units"], row["p"]) == (2, 2, 0.5)  # two diseases: both for one
    assert row["smallest_difference"] == float("inf"), "no difference could be found"
