"""Calibration on the page: who is above whom, what the sentences say, and other seeds."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from bench import calibration as bench

from made_up import METADATA
from medprobe.core.params import load
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.results import Results
from medprobe.report.sections import calibration
from shown import html

FIGURES = calibration.SEEDS  # of this project, which tests do not read otherwise
NUMBERS = {  # method: value, low and high of the taught model, and of its twin
    "classifier": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5)),
    "classifier:frozen": ((0.6, 0.5, 0.7), (0.2, 0.1, 0.3)),
    "classifier:frozen-hypothesis-only": ((0.2, 0.1, 0.3), (0.25, 0.1, 0.4)),
    "classifier:always-true": ((0.2, 0.2, 0.2), (0.2, 0.2, 0.2)),
}


def results(**numbers: tuple[tuple[float, float, float], tuple[float, float, float]]) -> Results:
    """A taught model and its twin on one benchmark; `numbers` replace those of a method."""
    rows = [
        ("own", "full", "macro", model, method, metric, *values, 9, None)
        for method, both in {**NUMBERS, **numbers}.items()
        for model, values in zip(("taught", "untaught"), both, strict=True)
        for metric in ("f1", "top_1", "auc")
    ]
    return Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"own": replace(METADATA, primary_metric="f1")},
        builders={"own": "diskne"},
        twins={"untaught": "taught"},
    )


@pytest.fixture(autouse=True)
def _no_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SEEDS", tmp_path / "calibration.csv")


def test_each_metric_has_its_table_and_controls_are_not_counted() -> None:
    found = calibration.pairs(results(), "own")
    assert found["metric"].unique().tolist() == ["f1", "top_1", "auc"]
    assert set(found["method"]) == set(NUMBERS) - {"classifier:always-true"}
    top = found[found["metric"] == "top_1"].set_index("method")
    assert top["higher"].to_dict() == {
        "classifier": True,
        "classifier:frozen": True,
        "classifier:frozen-hypothesis-only": False,
    }
    assert top.index[top["apart"]].tolist() == ["classifier:frozen"]
    text = html(results(), calibration.section(results(), "own"))
    assert "By top-1, taught models are better than untaught ones" in text
    assert text.count("that do not overlap (there is no test), in 1 of 2 comparisons.") == 3


def test_where_there_is_a_test_it_decides_and_not_the_intervals() -> None:
    tests = [
        {
            **dict.fromkeys(SIGNIFICANCE),
            **{"benchmark": "own", "subset": "full", "metric": metric, "difference": 0.4},
            **{"model_a": "taught", "model_b": "untaught", "p_holm": p},
            **{"method_a": "classifier:frozen", "method_b": "classifier:frozen"},
        }
        for metric, p in (("f1", 0.31), ("top_1", 0.01))
    ]
    found = replace(results(), significance=pd.DataFrame(tests, columns=SIGNIFICANCE))
    text = html(found, calibration.section(found, "own"))
    assert "By F1, taught models are better than untaught ones, significantly so" in text
    assert "taught, corrected p = 0.31" in text
    assert "What tells them apart: classifier:frozen." in text
    equal = results(**{"classifier": ((0.2, 0.1, 0.3), (0.2, 0.1, 0.3))})
    table = html(equal, calibration.section(equal, "own"))
    assert "<td>classifier</td>" in table and table.count("<td>equal</td>") == 3


def test_the_page_says_what_the_plain_recipe_tells_apart() -> None:
    text = html(results(), calibration.section(results(), "own"))
    assert (
        "(classifier), does not tell taught from untaught: top-1 is 30.0 % [10.0 %, 60.0 %] for "
        "taught and 20.0 % [0.0 %, 50.0 %] for untaught; chance is 20.0 %."
    ) in text
    assert "What tells them apart: classifier:frozen." in text
    assert "Without the premise (classifier:frozen-hypothesis-only) top-1 is 20.0 %" in text
    better = results(**{"classifier": ((0.8, 0.7, 0.9), (0.2, 0.1, 0.3))})
    assert "(classifier), tells taught from untaught" in html(
        better, calibration.section(better, "own")
    )


def test_other_seeds_stand_beside_it() -> None:
    text = html(results(), calibration.section(results(), "own"))
    assert "How typical" not in text
    found = calibration.pairs(results(), "own")
    worse = results(**{"classifier:frozen": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5))})
    seeds = {1: found, 2: calibration.pairs(worse, "own")}
    table = pd.concat([rows.assign(seed=seed) for seed, rows in seeds.items()])
    table.to_csv(calibration.SEEDS, index=False)
    text = html(results(), calibration.section(results(), "own"))
    assert "The sample world made with the seeds 1, 2" in text
    typical = "6 of 6 comparisons were also made on sample worlds of other seeds: taught and "
    typical += "untaught have intervals apart under every seed in "
    said = "under some in 3, under none in 3; this page differs from most of them in "
    assert f"{typical}0, {said}" in text
    assert (
        "classifier:frozen by F1, classifier:frozen by top-1 and classifier:frozen by AUC" in text
    )
    pd.concat([found.assign(seed=seed) for seed in (1, 2)]).to_csv(calibration.SEEDS, index=False)
    text = html(results(), calibration.section(results(), "own"))
    said = "under some in 0, under none in 3; this page agrees with most of them."
    assert f"{typical}3, {said}" in text
    found.assign(seed=1).to_csv(calibration.SEEDS, index=False)
    assert "How typical" not in html(results(), calibration.section(results(), "own"))


def test_methods_without_the_main_metric_go_by_that_of_their_family() -> None:
    about = ("own", "full", "macro")
    rows = [
        (*about, model, method, metric, *values, 9, None)
        for method, metric, both in (
            ("perplexity", "perplexity", ((9.0, 8.0, 10.0), (30.0, 20.0, 40.0))),
            ("judgment:chat", "judged_right", ((0.8, 0.7, 0.9), (0.5, 0.4, 0.6))),
            ("judgment:chat", "auroc", ((0.7, 0.5, 0.9), (0.5, 0.4, 0.6))),
        )
        for model, values in zip(("taught", "untaught"), both, strict=True)
    ]
    more = pd.DataFrame(rows, columns=COMPARISON)
    both = replace(results(), comparison=pd.concat([results().comparison, more]))
    found = calibration.pairs(both, "own").set_index(["metric", "method"])
    assert found.index.unique("metric").tolist() == [
        *("f1", "judged_right", "perplexity", "top_1", "auc", "auroc")
    ]
    apart = found.loc[["judged_right", "perplexity", "auroc"], ["higher", "apart"]]
    assert apart.to_numpy().tolist() == [[True, True], [True, True], [True, False]]


def test_nothing_where_there_are_no_twins() -> None:
    assert calibration.section(replace(results(), twins={}), "own") == []


def test_the_document_is_made_of_the_figures_on_the_page() -> None:
    if not FIGURES.is_file():
        pytest.skip("no seed is measured")
    assert bench.DOCUMENT.read_text(encoding="utf-8") == bench.document(pd.read_csv(FIGURES))


def test_the_document_has_a_line_a_method_and_a_column_a_seed() -> None:
    found = calibration.pairs(results(), "own")
    table = pd.concat([found.assign(seed=1), found[:1].assign(seed=2)])
    lines = bench.document(table).splitlines()
    row = "| own | taught / untaught | classifier | F1 | 30.0 [10.0, 60.0] / 20.0 [0.0, 50.0] |"
    assert f"{row} 30.0 [10.0, 60.0] / 20.0 [0.0, 50.0] | 0 of 2 |" in lines
    row = "| own | taught / untaught | classifier:frozen | AUC | 60.0 [50.0, 70.0] / 20.0 [10.0, "
    assert f"{row}30.0] | – | 1 of 1 |" in lines
    (said,) = (line for line in lines if line.startswith("By number of seeds"))
    assert "Apart on none are on own classifier of taught (F1)" in said
    assert "classifier:frozen of taught (AUC)" not in said and "hypothesis-only" not in said


def test_a_method_alone_needs_no_more_than_its_own_steps() -> None:
    params = load(Path("params.yaml"))
    alone = [step for step, _ in bench.steps(params, {"classifier"})]
    assert alone == [
        ("sample",),
        ("build", "diskne"),
        ("validate", "diskne"),
        ("train", "taught"),
        ("train", "untaught"),
        ("probe", "taught", "classifier", "diskne"),
        ("probe", "untaught", "classifier", "diskne"),
    ]
    every = [step for step, _ in bench.steps(params, set())]
    assert set(alone) < set(every)
    assert ("rewire", "taught", "set-0") in every
    assert len(set(every)) == len(every)
    begun, further = ("train", "untaught-causal"), ("train", "taught-causal")
    assert every.index(begun) < every.index(further)
    assert {stage for stage, *_ in every} == {*bench.STAGES}


ASKED = [
    f"{template}-{shots}-shot-{form}"
    for template in ("chat", "none")
    for shots in (0, 3)
    for form in ("constrained", "free")
]
SCORES = Path(__file__).parents[1] / "metrics/scores"


@pytest.mark.skipif(not (SCORES / "untaught-chat").is_dir(), reason="the pipeline has not run")
@pytest.mark.parametrize("asked", ASKED)
def test_the_taught_chat_model_is_above_the_untaught_one(asked: str) -> None:
    """However it is asked, and their intervals apart."""
    taught, untaught = (
        json.loads((SCORES / model / "answering.json").read_text(encoding="utf-8"))
        for model in ("taught-chat", "untaught-chat")
    )
    for subset in ("ctd", "wikidata", "umls"):
        found, of_twin = (model["biolama"][asked][subset]["macro"] for model in (taught, untaught))
        assert found["acc_at_1"]["low"] > of_twin["acc_at_1"]["high"], subset


@pytest.mark.skipif(not FIGURES.is_file(), reason="no seed is measured")
@pytest.mark.parametrize("asked", ASKED)
def test_so_it_is_in_worlds_of_other_seeds(asked: str) -> None:
    table = pd.read_csv(FIGURES)
    found = table[table["method"] == f"answering:{asked}"]
    assert sorted(found["seed"]) == [*bench.WORLDS]
    assert found["higher"].all() and found["apart"].all()
