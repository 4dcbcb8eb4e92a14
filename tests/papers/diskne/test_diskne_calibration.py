"""Calibration of DisKnE's classifier: by each of its metrics, who is above whom."""

from dataclasses import replace

import pandas as pd

from helpers.render_helpers import check_snapshot
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.page_data import PageData
from medprobe.report.sections import calibration
from report.test_calibration import Pair
from report.test_calibration import results as results_by

CLASSIFIER = {  # method: value, low and high of the taught model, and of its twin
    "classifier": ((0.3, 0.1, 0.6), (0.2, 0.0, 0.5)),
    "classifier:frozen": ((0.6, 0.5, 0.7), (0.2, 0.1, 0.3)),
    "classifier:frozen-hypothesis-only": ((0.2, 0.1, 0.3), (0.25, 0.1, 0.4)),
    "classifier:always-true": ((0.2, 0.2, 0.2), (0.2, 0.2, 0.2)),
}


def results(**numbers: Pair) -> PageData:
    """A taught model and its twin on one benchmark; `numbers` replace those of a method."""
    return results_by({**CLASSIFIER, **numbers}, ("f1", "top_1", "auc"))


def test_each_metric_has_its_pairs() -> None:
    twin_pairs = calibration.pairs(results(), "own")
    assert twin_pairs["metric"].unique().tolist() == ["f1", "top_1", "auc"]
    assert set(twin_pairs["method"]) == set(CLASSIFIER) - {"classifier:always-true"}
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
    check_snapshot("classifier", calibration.section(compared, "own"))
