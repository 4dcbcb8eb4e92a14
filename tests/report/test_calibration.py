"""Calibration on the page: who is above whom and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA
from medprobe.core.params import Params
from medprobe.metrics import FACTS, Scoring
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.page_data import PageData
from medprobe.report.sections import calibration

Interval = tuple[float, float, float]  # a value, its low and its high
Pair = tuple[Interval, Interval]
NUMBERS: Mapping[str, Pair] = {  # method: value, low and high of the taught model, and of its twin
    "fill_mask": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5)),
    "fill_mask:frozen": ((0.6, 0.5, 0.7), (0.2, 0.1, 0.3)),
    "fill_mask:frozen-hypothesis-only": ((0.2, 0.1, 0.3), (0.25, 0.1, 0.4)),
    "fill_mask:always-true": ((0.2, 0.2, 0.2), (0.2, 0.2, 0.2)),
}


PLAIN = [name for name in SIGNIFICANCE if "_relation" not in name]


def results(
    numbers: Mapping[str, Pair] = NUMBERS, metrics: Sequence[str] = ("acc_at_1",)
) -> PageData:
    """A taught model and its twin on one benchmark, with these numbers by method."""
    rows = [
        ("own", "full", "macro", model, method, metric, *values, 9, None)
        for method, both in numbers.items()
        for model, values in zip(("taught", "untaught"), both, strict=True)
        for metric in metrics
    ]
    return PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"own": replace(METADATA, primary_metric=metrics[0])},
        builders={"own": "table"},
        twins={"untaught": "taught"},
    )


def test_the_section_has_each_pair_with_its_test_and_doses() -> None:
    """The difference of `frozen` may be nothing, that of `tested` is not; of the others there is no
    test. `lp-ft` is the same of both, and `lp-ft:again` the same result."""
    tests = [
        {
            **dict.fromkeys(SIGNIFICANCE),
            **{"benchmark": "own", "subset": "full", "metric": "acc_at_1", "difference": 0.4},
            **{"model_a": "taught", "model_b": "untaught", "relation": "macro"},
            **{"low": low, "high": 0.6, "p_holm": float("nan"), "untestable": ""},
            **{"method_a": method, "method_b": method},
        }
        for method, low in (("fill_mask:frozen", -0.1), ("fill_mask:tested", 0.2))
    ]
    same = ((0.2, 0.1, 0.3), (0.2, 0.1, 0.3))
    apart = ((0.6, 0.5, 0.7), (0.1, 0.0, 0.2))
    more = {
        **{"fill_mask:tested": apart, "fill_mask:untested": apart},
        **{"fill_mask:lp-ft": same, "fill_mask:lp-ft-again": same},
    }
    compared = replace(
        results({**NUMBERS, **more}),
        significance=pd.DataFrame(tests, columns=PLAIN).reindex(columns=SIGNIFICANCE),
    )
    doses = [
        ("own", f"full/read:{times}", "micro", model, "fill_mask:frozen", "acc_at_1", value)
        for model, values in (("taught", (0.1, 0.5, 0.8, 0.9)), ("untaught", (0.1,) * 4))
        for times, value in zip(("0", "1", "2", "3-4"), values, strict=True)
    ]
    read = pd.DataFrame([(*dose, 0.0, 1, 9, None) for dose in doses], columns=COMPARISON)
    compared = replace(compared, comparison=pd.concat([compared.comparison, read]))
    check_snapshot("calibration", calibration.section(compared, "own"))


def test_a_benchmark_of_ones_own_is_not_calibrated() -> None:
    """Whatever its name and its models' names are."""
    own_metadata = replace(METADATA, primary_metric="acc_at_1", invented=False)
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
        assert calibration.counts(twin_pairs[twin_pairs["metric"] == "acc_at_1"]) == expected


def test_variants_with_the_same_numbers_count_once() -> None:
    again = results({**NUMBERS, "fill_mask:distractors": NUMBERS["fill_mask"]})
    twin_pairs = calibration.pairs(again, "own")
    assert calibration.counts(twin_pairs[twin_pairs["metric"] == "acc_at_1"]) == (2, 1, 0)


def test_methods_without_the_main_metric_go_by_that_of_their_family() -> None:
    numbers = {"perplexity": ((9.0, 8.0, 10.0), (30.0, 20.0, 40.0))}
    more = results(numbers, ("perplexity",)).comparison
    both = replace(results(), comparison=pd.concat([results().comparison, more]))
    indexed = calibration.pairs(both, "own").set_index(["metric", "method"])
    assert indexed.index.unique("metric").tolist() == ["acc_at_1", "perplexity"]
    assert indexed.loc["perplexity", "higher"].all()


def test_nothing_where_there_are_no_twins() -> None:
    assert calibration.section(replace(results(), twins={}), "own") == []
