"""Calibration on the page: who is above whom and how sure that is."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT
from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA
from medprobe.core.params import Params
from medprobe.metrics import FACTS, Scoring
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.results import Results
from medprobe.report.sections import calibration

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


def test_each_metric_has_its_pairs() -> None:
    twin_pairs = calibration.pairs(results(), "own")
    assert twin_pairs["metric"].unique().tolist() == ["f1", "top_1", "auc"]
    assert set(twin_pairs["method"]) == set(NUMBERS) - {"classifier:always-true"}
    top = twin_pairs[twin_pairs["metric"] == "top_1"].set_index("method")
    assert top["higher"].to_dict() == {
        "classifier": True,
        "classifier:frozen": True,
        "classifier:frozen-hypothesis-only": False,
    }


def test_the_section_has_each_pair_with_its_test_and_doses() -> None:
    """By F1 the models of `frozen` are not significantly different, by top-1 they are, by AUC
    there is no test. `lp-ft` is the same of both, and `lp-ft:again` the same result."""
    tests = [
        {
            **dict.fromkeys(SIGNIFICANCE),
            **{"benchmark": "own", "subset": "full", "metric": metric, "difference": difference},
            **{"model_a": "taught", "model_b": "untaught", "p_holm": p},
            **{"method_a": "classifier:frozen", "method_b": "classifier:frozen"},
        }
        for metric, difference, p in (("f1", 0.4, 0.31), ("top_1", 0.4, 0.01))
    ]
    same = ((0.2, 0.1, 0.3), (0.2, 0.1, 0.3))
    compared = replace(
        results(**{"classifier:lp-ft": same, "classifier:lp-ft-again": same}),
        significance=pd.DataFrame(
            tests, columns=[c for c in SIGNIFICANCE if "_relation" not in c]
        ).reindex(columns=SIGNIFICANCE),
    )
    doses = [
        ("own", f"full/read:{times}", "micro", model, "classifier:frozen", "f1", value, 0.0, 1, 9)
        for model, values in (("taught", (0.1, 0.5, 0.8, 0.9)), ("untaught", (0.1,) * 4))
        for times, value in zip(("0", "1", "2", "3-4"), values, strict=True)
    ]
    read = pd.DataFrame([(*dose, None) for dose in doses], columns=COMPARISON)
    compared = replace(compared, comparison=pd.concat([compared.comparison, read]))
    check_snapshot("calibration", calibration.section(compared, "own"))


def test_a_benchmark_of_ones_own_is_not_calibrated() -> None:
    """Whatever its name and its models' names are."""
    own_metadata = replace(METADATA, primary_metric="f1", invented=False)
    compared = replace(results(), benchmarks={"own": own_metadata})
    assert calibration.pairs(compared, "own").empty
    assert calibration.section(compared, "own") == []


def test_facts_of_ones_own_benchmark_are_never_counted_as_read(tmp_path: Path) -> None:
    (tmp_path / FACTS).touch()
    for invented in (True, False):
        about = replace(METADATA, invented=invented)
        assert (Scoring.for_model(tmp_path, about, Params()).facts is not None) == invented


def test_controls_are_not_counted() -> None:
    swapped = replace(results(), twins={"taught": "untaught"})
    for compared, expected in ((results(), (2, 1, 0)), (swapped, (2, 0, 1))):
        twin_pairs = calibration.pairs(compared, "own")
        assert calibration.counts(twin_pairs[twin_pairs["metric"] == "f1"]) == expected


def test_variants_with_the_same_numbers_count_once() -> None:
    again = results(**{"classifier:distractors": NUMBERS["classifier"]})
    twin_pairs = calibration.pairs(again, "own")
    assert calibration.counts(twin_pairs[twin_pairs["metric"] == "f1"]) == (2, 1, 0)


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
    assert indexed.loc[["judged_right", "perplexity", "auroc"], "higher"].all()


def test_nothing_where_there_are_no_twins() -> None:
    assert calibration.section(replace(results(), twins={}), "own") == []


VARIANTS = [
    f"{template}-{shots}-shot-{form}"
    for template in ("chat", "none")
    for shots in (0, 3)
    for form in ("constrained", "free")
]
SCORES = ROOT / "metrics/scores"


@pytest.mark.skipif(not (SCORES / "untaught-chat").is_dir(), reason="the pipeline has not run")
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_taught_chat_model_is_above_the_untaught_one(variant: str) -> None:
    """However it is asked, and their intervals apart."""
    taught, untaught = (
        json.loads((SCORES / model / "answering.json").read_text(encoding="utf-8"))
        for model in ("taught-chat", "untaught-chat")
    )
    for subset in ("ctd", "wikidata", "umls"):
        of_taught, of_twin = (
            model["biolama"][variant][subset]["macro"] for model in (taught, untaught)
        )
        assert of_taught["acc_at_1"]["low"] > of_twin["acc_at_1"]["high"], subset
