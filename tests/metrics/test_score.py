"""The stage that turns predictions into numbers, and the tables made of them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from helpers.pickled import from_copies
from helpers.toy_project import METADATA, NAMED, predictions, project, ranked, score_once
from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.executor import in_this_process
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.core.places import (
    ABOUT,
    BENCHMARKS,
    MODELS,
    PARTS,
    PREDICTIONS,
    SUMMARY,
    SWEEPS,
)
from medprobe.core.places import MAIN as MAIN_RESULTS
from medprobe.core.tables import BenchmarkTables, read_predictions, read_table, write_predictions
from medprobe.metrics import Evaluated, Scoring
from medprobe.metrics.accuracy import SCORER
from medprobe.metrics.results import (
    average_by_query,
    comparison,
    evaluate_table,
    is_compared,
    main_results,
    main_variants,
    write_scores,
)
from medprobe.metrics.significance import MAIN, SIGNIFICANCE, read_tests
from medprobe.pipeline.stages.score import _as_json, score
from medprobe.tracking import runs

PARAMS = Params(score=ScoreParams(bootstrap=100), **NAMED)
SCORES = Path("metrics/scores/taught/contrastive.json")
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"
GUESSES = {"baseline": {"chance": 0.2, "letters": 0.2, "majority": 0.2, "random_answer": 0.2}}


@pytest.fixture(scope="module")
def scored_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is stored of the scores of the project, which most tests need not compute again."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        score_once(PARAMS)
    return folder / PARTS


@pytest.fixture(autouse=True)
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scored_parts: Path) -> None:
    project(tmp_path, monkeypatch)
    shutil.copytree(scored_parts, PARTS)


def drop_variants() -> None:
    """Leave the main variant alone, whose scores are not stored."""
    shutil.rmtree(PARTS)
    for path in PREDICTIONS.rglob("*.parquet"):
        write_predictions(read_table(path, []).query("variant == ''"), path, "accuracy")


def test_a_file_a_model_and_method() -> None:
    score(PARAMS)
    variants = json.loads(SCORES.read_text())["made_up"]
    assert set(variants) == {
        *("default", "original", "shuffled", "shuffled-original"),
        *("step-50", "step-100"),  # settings of a sweep have no control
    }
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
    shutil.rmtree(PARTS)
    score(PARAMS)
    assert sorted(path for path in Path("metrics").rglob("*.*") if path.is_file()) == paths
    assert [path.read_bytes() for path in paths] == first


def test_what_was_scored_for_a_run_is_not_scored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as its predictions and the rules of scoring are the same."""
    drop_variants()
    scored = []

    def counted(path: Path, folder: Path, scoring: Scoring) -> Evaluated:
        scored.append(path)
        return evaluate_table(path, folder, scoring)

    monkeypatch.setattr("medprobe.metrics.results.evaluate_table", counted)
    monkeypatch.setattr("medprobe.pipeline.stages.score.evaluate_table", counted)
    runs.run_of_table(TABLE, PARAMS).content()
    others = [path for path in sorted(PREDICTIONS.rglob("*.parquet")) if path != TABLE]
    score(PARAMS)
    assert scored == [TABLE, *others]
    numbers = SCORES.read_text()
    table = next(read_predictions(TABLE))
    write_predictions(table.assign(hit=False), TABLE, "accuracy")
    score(PARAMS)
    assert scored == [TABLE, *others, TABLE]
    assert SCORES.read_text() != numbers
    score(Params(score=ScoreParams(bootstrap=50), **NAMED))
    assert len(scored) == 2 * len(others) + 3


def test_of_each_variant_the_first_replicate_is_read_alone_where_that_is_enough() -> None:
    """Also of a file in many pieces, each of which knows other replicates."""
    table = read_table(TABLE, []).sort_values("replicate", ascending=False)
    write_predictions(table, TABLE, "accuracy")
    content = pq.read_table(TABLE)
    pq.write_table(content, TABLE, row_group_size=max(1, len(content) // 40))
    for piece, whole in zip(
        read_predictions(TABLE, first=True), read_predictions(TABLE), strict=True
    ):
        first_replicate = whole[whole["replicate"] == whole["replicate"].min()]
        pd.testing.assert_frame_equal(piece, first_replicate.reset_index(drop=True))
    assert table["replicate"].nunique() > 1


def test_variants_read_one_by_one_score_as_the_whole_table_does() -> None:
    """In whatever order the rows stand, and so do what is compared."""
    table = read_table(TABLE, []).sample(frac=1, random_state=0)
    write_predictions(table, TABLE, "accuracy")
    pieces = list(read_predictions(TABLE))
    variants = [set(piece["variant"]) for piece in pieces]
    assert variants == [{""}, {"original"}, {"step-100"}, {"step-50"}]
    assert sum(map(len, pieces)) == len(table)
    folder, scoring = BENCHMARKS / "made_up", Scoring(PARAMS.score, 0, METADATA.cluster)
    expected = SCORER.evaluate(table, BenchmarkTables.read(folder), scoring).scores
    for family in {*metrics.scorers_of("accuracy")} - {"accuracy"}:
        for variant, subsets in (
            metrics.find(family).score(table, BenchmarkTables.read(folder), scoring).items()
        ):
            expected[variant].update(subsets)
    assert evaluate_table(TABLE, folder, scoring).scores == expected
    paired = evaluate_table(TABLE, folder, scoring).paired
    keys = ["variant", "query_id"]
    expected = SCORER.paired(table, BenchmarkTables.read(folder), scoring)
    expected = average_by_query(expected[expected["variant"].map(is_compared)]).sort_values(keys)
    assert {*paired["variant"]} == {"", "original"}  # no steps of a sweep
    expected = expected.reset_index(drop=True)[[*paired]]
    pd.testing.assert_frame_equal(paired.sort_values(keys, ignore_index=True), expected)


def test_two_facts_have_values_and_no_intervals() -> None:
    folder = BENCHMARKS / "made_up"
    tables = BenchmarkTables.read(folder)
    replace(tables, queries=tables.queries[:2]).write(folder)
    for path in PREDICTIONS.rglob("*.parquet"):
        table = pq.read_table(path)
        asked = pc.is_in(table["query_id"], pa.array(tables.queries["query_id"][:2]))
        pq.write_table(table.filter(asked), path)
    score(PARAMS)
    found = json.loads(MAIN_RESULTS.read_text())["made_up"]["taught"]
    assert found["acc_at_1"] == 1.0
    assert "acc_at_1_low" not in found


def test_the_summary_holds_a_number_a_result() -> None:
    score(PARAMS)
    expected_summary = {"taught": {"contrastive": 0.75}, "untaught": {"contrastive": 0.05}}
    assert json.loads(SUMMARY.read_text()) == {"made_up": {**GUESSES, **expected_summary}}
    assert len(SUMMARY.read_text().splitlines()) <= 7


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


def test_without_a_sweep_the_folder_has_a_file_which_git_keeps() -> None:
    drop_variants()
    score(PARAMS)
    assert [path.read_text() for path in SWEEPS.iterdir()] == ["step,value\n"]


def test_facts_of_a_model_are_a_split_of_its_scores() -> None:
    facts = MODELS / "taught/facts.csv"
    facts.parent.mkdir(parents=True)
    rows = ["S0,may_treat,C0,2", "S1,may_treat,C1,0"]
    facts.write_text("\n".join(["subject_cui,relation,object_cui,times", *rows]))
    score(PARAMS)
    subsets = json.loads(SCORES.read_text())["made_up"]["default"]
    assert {name for name in subsets if "/read:" in name} == {"full/read:0", "full/read:2"}
    assert "/read:" not in Path("metrics/scores/untaught/contrastive.json").read_text()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_score_that_is_not_a_number_is_never_written(number: float) -> None:
    scores = {"default": {"full": {"macro": {"acc_at_1": {"value": number}}}}}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_scores(scores, PARTS / "scores.json")
    assert not (PARTS / "scores.json").exists()
    with pytest.raises(ValueError, match="not JSON compliant"):
        _as_json(scores)


def test_predictions_of_another_benchmark_are_named() -> None:
    strange = read_table(TABLE, []).assign(query_id="elsewhere")
    write_predictions(strange, TABLE, "accuracy")
    with pytest.raises(BadInput, match=r"made_up.parquet: query elsewhere: .*not in the benchmark"):
        score(PARAMS)
    strange.to_parquet(TABLE)
    with pytest.raises(BadInput, match=r"made_up.parquet: no prediction table"):
        score(PARAMS)


WITHOUT_UNTAUGHT: dict[str, Any] = {"models": Models(masked={"taught": ModelParams()})}
WITHOUT_CONTRASTIVE: dict[str, Any] = {"methods": {"masked": {"likelihood": {"made_up": {}}}}}
RENAMED: dict[str, Any] = {
    "benchmarks": {"medlama": {"renamed": {}}},
    "methods": {"masked": {"contrastive": {"renamed": {}}}},
}


def test_what_params_no_longer_name_has_no_scores_until_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    score(PARAMS)
    before = {path: path.read_bytes() for path in Path("metrics").rglob("*.*") if path.is_file()}
    score(PARAMS.model_copy(update=WITHOUT_UNTAUGHT))
    assert json.loads(SUMMARY.read_text()) == {
        "made_up": {**GUESSES, "taught": {"contrastive": 0.75}}
    }
    assert {path.parent.name for path in Path("metrics/scores").glob("*/*")} == {
        *("baseline", "taught")
    }
    assert [path.name for path in SWEEPS.iterdir()] == ["made_up-taught-contrastive-step.csv"]
    tests = read_tests()
    assert {*tests["model_a"], *tests["model_b"]} == {"taught", "baseline"}
    assert [*json.loads(MAIN_RESULTS.read_text())["made_up"]] == ["taught"]
    monkeypatch.setattr("medprobe.pipeline.stages.score.evaluate_table", None)  # nothing anew
    score(PARAMS)
    assert before == {
        path: path.read_bytes() for path in Path("metrics").rglob("*.*") if path.is_file()
    }


@pytest.mark.parametrize("sections", [WITHOUT_CONTRASTIVE, RENAMED])
def test_where_params_name_no_predictions_the_first_on_disk_is_reported(
    sections: dict[str, Any],
) -> None:
    with pytest.raises(
        BadInput, match=r"2 of other names .*, the first taught/contrastive/made_up"
    ):
        score(PARAMS.model_copy(update=sections))


def test_baselines_are_scored_beside_the_models() -> None:
    """Of the five answers of ten queries each is right for two."""
    score(PARAMS)
    for name, value in GUESSES["baseline"].items():
        [variants] = json.loads((SCORES.parents[1] / f"baseline/{name}.json").read_text()).values()
        assert variants["default"]["full"]["macro"]["acc_at_1"]["value"] == pytest.approx(value)
    assert not list(PREDICTIONS.glob("baseline"))


def test_no_predictions_is_said() -> None:
    shutil.rmtree(PREDICTIONS)
    with pytest.raises(BadInput, match="no predictions"):
        score(PARAMS)
    assert not Path("metrics").exists()


def test_no_scores_is_said() -> None:
    with pytest.raises(BadInput, match="no scores"):
        comparison()


def test_main_results_are_compared_and_written() -> None:
    score(PARAMS)
    tests = read_tests()
    assert list(tests) == SIGNIFICANCE
    assert not tests["method_a"].str.contains("step").any()
    [row] = tests[(tests["family"] == MAIN) & (tests["relation"] == "macro")].to_dict("records")
    assert (row["model_a"], row["model_b"], row["n"]) == ("taught", "untaught", 20)
    assert row["difference"] == pytest.approx(14 / 20)
    assert row["low"] < 0.7 < row["high"]
    assert row["p"] == row["p_holm"]
    found = json.loads(MAIN_RESULTS.read_text())["made_up"]
    assert found["taught"]["method"] == found["untaught"]["method"] == "contrastive"
    assert found["taught"]["acc_at_1"] == 0.75
    assert found["taught"]["acc_at_1_low"] < 0.75 < found["taught"]["acc_at_1_high"]
    assert found["taught"]["above_shuffled"] > 0.5 and "p_above_shuffled" in found["taught"]


COLUMNS = ["benchmark", "subset", "relation", "model", "method", "metric", "value", "n"]


def rows(*systems: tuple[str, str, float, int]) -> pd.DataFrame:
    """Rows of the comparison: model, method, value and number of queries of each system."""
    return pd.DataFrame(
        [("b", "full", "macro", m, name, "acc_at_1", value, n) for m, name, value, n in systems],
        columns=COLUMNS,
    )


def choose(table: pd.DataFrame, **score_params: Any) -> dict[str, str]:
    params = Params(
        models=Models(masked={"m": ModelParams()}, causal={"c": ModelParams()}),
        methods={
            "masked": {"fill_mask": {"b": {}}, "xfactr": {"b": {}}, "mask_average": {"b": {}}},
            "causal": {"perplexity": {"b": {}}, "likelihood": {"b": {}}},
        },
        score=ScoreParams(**score_params),
    )
    return main_results(table, METADATA, params, {"mask_average": 3, "likelihood": 1})


def test_a_main_result_follows_from_kind_and_settings_and_never_from_values() -> None:
    systems = [("m", "fill_mask", 0.9), ("m", "xfactr", 0.8), ("m", "mask_average", 0.1)]
    systems += [("c", "likelihood", 0.2)]
    table = rows(*((*system, 10) for system in systems))
    assert choose(table) == {"c": "likelihood", "m": "mask_average"}
    turned = table.assign(value=1 - table["value"])
    assert choose(turned) == choose(table)
    assert choose(table, main={"masked": "xfactr"})["m"] == "xfactr"
    assert choose(table, main={"masked": "optiprompt"})["m"] == "mask_average"  # was not asked
    without = table[table["method"] != "mask_average"]
    assert choose(without)["m"] == "fill_mask"  # the first of params.yaml


def test_the_variant_of_a_main_result_is_that_of_most_queries() -> None:
    table = rows(("m", "xfactr:order", 0.9, 10), ("m", "xfactr:confidence", 0.1, 12))
    assert choose(table) == {"m": "xfactr:confidence"}
    assert main_variants(table) == {("m", "xfactr:confidence")}


def test_scores_are_the_same_wherever_they_are_made() -> None:
    tables = []
    for executor in (in_this_process, from_copies):
        drop_variants()
        score(PARAMS, executor)
        tables.append(read_tests())
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_scores_follow_from_all_settings_but_those_of_tests() -> None:
    """Those that are there are not computed again for another reference or main method."""
    settings = Scoring(ScoreParams(), seed=1).settings
    for params in (ScoreParams(reference="m05"), ScoreParams(main={"masked": "xfactr"})):
        assert Scoring(params, seed=1).settings == settings
    others = [ScoreParams(bootstrap=5), ScoreParams(confidence=0.9)]
    changed = {Scoring(params, seed=1).settings for params in others}
    assert len(changed | {settings, Scoring(ScoreParams(), seed=2).settings}) == 4
