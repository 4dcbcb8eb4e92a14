"""Calibration on the page: who is above whom, how sure that is, and other seeds."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.results import Results
from medprobe.report.sections import calibration
from render_helpers import check_snapshot
from toy_project import METADATA

NUMBERS = {  # method: value, low and high of the taught model, and of its twin
    "classifier": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5)),
    "classifier:frozen": ((0.6, 0.5, 0.7), (0.2, 0.1, 0.3)),
    "classifier:frozen-hypothesis-only": ((0.2, 0.1, 0.3), (0.25, 0.1, 0.4)),
    "classifier:always-true": ((0.2, 0.2, 0.2), (0.2, 0.2, 0.2)),
}

PLAIN = [name for name in SIGNIFICANCE if "_relation" not in name]


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


def test_each_metric_has_its_pairs() -> None:
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


def test_the_section_has_each_pair_with_its_test_and_other_seeds() -> None:
    """By F1 the models of `frozen` are not significantly different, by top-1 they are; by AUC
    there is no test. `lp-ft` is the same of both."""
    tests = [
        {
            **dict.fromkeys(SIGNIFICANCE),
            **{"benchmark": "own", "subset": "full", "metric": metric, "difference": 0.4},
            **{"model_a": "taught", "model_b": "untaught", "p_holm": p},
            **{"method_a": "classifier:frozen", "method_b": "classifier:frozen"},
        }
        for metric, p in (("f1", 0.31), ("top_1", 0.01))
    ]
    equal = {"classifier:lp-ft": ((0.2, 0.1, 0.3), (0.2, 0.1, 0.3))}
    found = replace(
        results(**equal),
        significance=pd.DataFrame(
            tests, columns=[c for c in SIGNIFICANCE if "_relation" not in c]
        ).reindex(columns=SIGNIFICANCE),
    )
    worse = results(**{"classifier:frozen": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5))})
    seeds = {1: results(), 2: worse}
    worlds = [calibration.pairs(one, "own").assign(seed=seed) for seed, one in seeds.items()]
    pd.concat(worlds).to_csv(calibration.SEEDS, index=False)
    check_snapshot("calibration", calibration.section(found, "own"))


def test_controls_are_not_counted() -> None:
    found = calibration.pairs(results(), "own")
    assert calibration.counts(found[found["metric"] == "f1"]) == (2, 1, 0)
    swapped = replace(results(), twins={"taught": "untaught"})
    assert calibration.main_counts(swapped) == (2, 0, 1)


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
    indexed = calibration.pairs(both, "own").set_index(["metric", "method"])
    assert indexed.index.unique("metric").tolist() == [
        *("f1", "judged_right", "perplexity", "top_1", "auc", "auroc")
    ]
    apart = indexed.loc[["judged_right", "perplexity", "auroc"], ["higher", "apart"]]
    assert apart.to_numpy().tolist() == [[True, True], [True, True], [True, False]]


def test_nothing_where_there_are_no_twins() -> None:
    assert calibration.section(replace(results(), twins={}), "own") == []


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
