"""The stage that turns predictions into numbers, and the tables made of them."""

import json
import shutil
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from helpers.pickled import from_copies
from helpers.toy_project import METADATA, NAMED, predictions, project, ranked, score_once
from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.executor import in_this_process
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.core.places import ABOUT, BENCHMARKS, MODELS, PARTS, PREDICTIONS, SUMMARY, SWEEPS
from medprobe.core.tables import read_predictions, read_table, write_predictions
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.accuracy import SCORER
from medprobe.metrics.comparisons import holm
from medprobe.metrics.pairs import above_control
from medprobe.metrics.results import comparison, is_compared, score_table, sweep, write_scores
from medprobe.metrics.significance import (
    SIGNIFICANCE,
    average_by_query,
    paired_table,
    paired_tests,
    significance,
)
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
    shutil.rmtree(PARTS)
    scored = []

    def counted(path: Path, folder: Path, scoring: Scoring) -> Scores:
        scored.append(path)
        return score_table(path, folder, scoring)

    monkeypatch.setattr("medprobe.metrics.results.score_table", counted)
    monkeypatch.setattr("medprobe.pipeline.stages.score.score_table", counted)
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
    expected = SCORER.score(table, folder, scoring)
    for family in {*metrics.scorers_of("accuracy")} - {"accuracy"}:
        for variant, subsets in metrics.find(family).score(table, folder, scoring).items():
            expected[variant].update(subsets)
    assert score_table(TABLE, folder, scoring) == expected
    paired = paired_table(TABLE, folder, scoring)
    keys = ["variant", "replicate", "query_id"]
    expected = SCORER.paired(table, folder, scoring).sort_values(keys)
    expected = expected[expected["variant"].map(is_compared)].reset_index(drop=True)
    assert {*paired["variant"]} == {  # no steps of a sweep
        *("", "original", "shuffled", "shuffled-original")
    }
    pd.testing.assert_frame_equal(paired.sort_values(keys, ignore_index=True), expected[[*paired]])


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
    write_predictions(read_table(TABLE, []).query("variant == ''"), TABLE, "accuracy")
    other = PREDICTIONS / "untaught/contrastive/made_up.parquet"
    write_predictions(read_table(other, []).query("variant == ''"), other, "accuracy")
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
    tests = paired_tests(PREDICTIONS, BENCHMARKS, PARAMS.model_copy(update=WITHOUT_UNTAUGHT))
    assert {*tests["model_a"], *tests["model_b"]} == {"taught"}
    monkeypatch.setattr(
        "medprobe.pipeline.stages.score.score_table", None
    )  # nothing is scored anew
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


def test_paired_tests_compare_systems_and_correct() -> None:
    table = paired_tests(PREDICTIONS, BENCHMARKS, PARAMS)
    assert list(table) == SIGNIFICANCE
    assert set(table["metric"]) == {"acc_at_1", "acc_at_5", "acc_at_10"}
    assert not table["method_a"].str.contains("step").any()
    both = table[(table["metric"] == "acc_at_1") & (table["method_a"] == table["method_b"])]
    row = both[both["method_a"] == "contrastive"].iloc[0]
    assert (row["model_a"], row["model_b"], row["n"]) == ("taught", "untaught", 20)
    assert row["difference"] == pytest.approx(14 / 20)
    assert row["low"] < 0.7 < row["high"]
    assert row["p"] < 0.05
    assert (table["p_holm"] >= table["p"]).all()


def test_one_model_alone_is_tested_against_nobody() -> None:
    tests = significance({("m", "fill_mask"): system([1.0])}, "b", PARAMS.score, 0)
    assert tests.empty and above_control(tests) == {}


def test_a_sweep_is_recognised_by_its_name() -> None:
    assert sweep("contrastive:step-50") == ("step", 50)
    assert sweep("contrastive:original") is None
    assert sweep("contrastive") is None


def system(
    values: list[float], clusters: list[str] | None = None, **columns: object
) -> pd.DataFrame:
    """What paired tests compare of a system: one query a value, in these clusters."""
    names = [f"q{number}" for number in range(len(values))]
    about = {"subset": "full", "query_id": names, "cluster": clusters or names, "weight": 1.0}
    return average_by_query(pd.DataFrame({**about, "acc_at_1": values, **columns}))


def test_whole_clusters_are_turned_round() -> None:
    right, wrong = [1.0] * 12, [0.0] * 12
    pair = {("a", "x"): system(right), ("b", "x"): system(wrong)}
    (alone,) = significance(pair, "b", PARAMS.score, 0).to_dict("records")
    assert (alone["units"], alone["p"]) == (12, 1 / 2**12)  # the two ends, each half
    by_three = [name for name in "pqr" for _ in range(4)]
    pair = {("a", "x"): system(right, by_three), ("b", "x"): system(wrong, by_three)}
    (together,) = significance(pair, "b", PARAMS.score, 0).to_dict("records")
    assert (together["n"], together["units"], together["p"]) == (12, 3, 2 / 2**3)
    assert alone["difference"] == together["difference"] == 1


def test_relations_count_alike_where_queries_have_weights() -> None:
    many = system([1.0] * 9 + [0.0], weight=[1 / 9] * 9 + [1.0])
    none = system([0.0] * 10, weight=[1 / 9] * 9 + [1.0])
    (row,) = significance({("a", "x"): many, ("b", "x"): none}, "b", PARAMS.score, 0).to_dict(
        "records"
    )
    assert row["difference"] == pytest.approx(0.5)


def test_families_are_what_a_reader_compares() -> None:
    draw = np.random.default_rng(0)
    methods = ("rank_change", "rank_change:copy", "xfactr", "contrastive:step-50")
    systems = {
        (model, method): system(list(draw.integers(0, 2, 30).astype(float)))
        for model in "abc"
        for method in methods
    }
    table = significance(systems, "b", PARAMS.score, 0)
    assert table["family"].value_counts().to_dict() == {
        "models under rank_change": 3,
        "models under xfactr": 3,
        "controls under rank_change": 3,  # each model and its own control
        "methods under a": 1,
        "methods under b": 1,
        "methods under c": 1,
    }
    for _, family in table.groupby("family"):
        assert family["p_holm"].tolist() == pytest.approx(holm(family["p"].to_numpy()).tolist())


def test_sixteen_models_can_differ_significantly() -> None:
    """With a correction for all pairs of models and methods at once they could not."""
    draw = np.random.default_rng(0)
    systems = {
        (f"m{number:02}", f"x{method}"): system(
            list((draw.random(200) < number / 16).astype(float))
        )
        for number in range(16)
        for method in range(4)
    }
    table = significance(systems, "b", ScoreParams(bootstrap=2), 0)
    models = table[table["family"].str.startswith("models")]
    assert len(models) == 4 * 120
    far = models[models["difference"].abs() > 0.3]
    assert len(far) > 100 and (far["p_holm"] < 0.05).all()


def test_each_of_many_models_meets_the_best_the_next_and_the_reference() -> None:
    draw = np.random.default_rng(0)
    shares = {f"m{number:02}": number / 22 for number in range(22)}
    systems = {
        (model, "x"): system(list((draw.random(60) < share).astype(float)))
        for model, share in shares.items()
    }
    params = ScoreParams(bootstrap=2, reference="m05")
    table = significance(systems, "b", params, 0).set_index(["model_a", "model_b"])
    means = {model: rows["acc_at_1"].mean() for (model, _), rows in systems.items()}
    best, *others = ranked = sorted(means, key=lambda model: (-means[model], model))
    chosen = {frozenset(pair) for pair in [*pairwise(ranked), *((best, m) for m in others)]}
    every = {pair: frozenset(pair) for pair in combinations(sorted(means), 2)}
    with_reference = {pair for pair, models in every.items() if "m05" in models}
    free = {pair for pair, models in every.items() if models in chosen} - with_reference
    assert set(table.index) == with_reference | free
    for family, tested, count in (
        ("models under x", sorted(free), len(every) - len(with_reference)),
        ("models under x against m05", sorted(with_reference), 21),
    ):
        rows = table[table["family"] == family].loc[tested]
        assert len(rows) == (table["family"] == family).sum()
        pairs = [{(model, "x"): systems[model, "x"] for model in pair} for pair in tested]
        alone = [significance(pair, "b", params, 0).iloc[0] for pair in pairs]
        ps = np.array([row["p"] for row in alone])
        assert rows["p"].tolist() == ps.tolist()
        left_out = np.ones(count - len(ps))  # they could have been chosen
        expected = holm(np.concatenate([ps, left_out]))[: len(ps)]
        assert rows["p_holm"].tolist() == pytest.approx(expected.tolist())
        larger = rows["smallest_difference"] > [row["smallest_difference"] for row in alone]
        assert larger.all()
    few = significance(dict(list(systems.items())[:20]), "b", params, 0)
    assert len(few) == 190 and set(few["family"]) == {"models under x"}


def test_another_quantity_is_not_compared() -> None:
    def read(values: list[float]) -> pd.DataFrame:
        return system([0.0] * 4, acc_at_1=np.nan, perplexity=values)

    systems = {(model, "perplexity"): read([float(n), 2, 3, 4]) for n, model in enumerate("abc")}
    kinds = {"a": "masked", "b": "masked", "c": "causal"}
    table = significance(systems, "b", PARAMS.score, 0, kinds=kinds)
    assert table[["model_a", "model_b"]].to_numpy().tolist() == [["a", "b"]]
    assert len(significance(systems, "b", PARAMS.score, 0)) == 3


def test_a_system_is_compared_with_itself_on_two_subsets() -> None:
    both = pd.concat([system([1.0] * 8), system([0.0] * 8).rename({"full": "negative"})])
    systems = {("a", "x"): both, ("a", "x:copy"): both.assign(acc_at_1=1.0)}
    table = significance(systems, "b", PARAMS.score, 0, contrasts=[("full", "negative")])
    rows = table[table["subset"] == "full - negative"].set_index("method_a")
    assert rows["difference"].to_dict() == {"x": 1, "x:copy": 0}
    assert rows["p"].to_dict() == {"x": 2 / 2**8, "x:copy": 1}


def test_paired_tests_are_the_same_wherever_they_are_made() -> None:
    tables = [
        paired_tests(PREDICTIONS, BENCHMARKS, PARAMS, executor=executor)
        for executor in (in_this_process, from_copies)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_scores_follow_from_all_settings_but_the_reference() -> None:
    """Those that are there are not computed again for another reference."""
    settings = Scoring(ScoreParams(), seed=1).settings
    assert Scoring(ScoreParams(reference="m05"), seed=1).settings == settings
    others = [ScoreParams(bootstrap=5), ScoreParams(confidence=0.9)]
    changed = {Scoring(params, seed=1).settings for params in others}
    assert len(changed | {settings, Scoring(ScoreParams(), seed=2).settings}) == 4
