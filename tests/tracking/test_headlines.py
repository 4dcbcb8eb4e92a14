"""The metrics of a run in MLflow: a few, the main one first, and what runs are sorted by."""

from types import SimpleNamespace

import pandas as pd

from helpers.toy_project import METADATA
from medprobe.metrics import catalog
from medprobe.tracking import pages
from medprobe.tracking.headlines import headlines, main_variant


def rows(*numbers: tuple[str, str, str, float]) -> pd.DataFrame:
    """Rows of the comparison: subset, method, metric, value."""
    table = pd.DataFrame(numbers, columns=["subset", "method", "metric", "value"])
    edges = {"low": table["value"] - 0.1, "high": table["value"] + 0.1}
    return table.assign(relation="macro", benchmark="made_up", model="taught", n=40, **edges)


def test_every_subset_has_the_main_metric_and_the_first_the_others() -> None:
    table = rows(
        ("hard", "m", "acc_at_1", 0.2),
        ("full", "m", "acc_at_1", 0.5),
        ("full", "m", "acc_at_10", 0.7),
        ("full", "m", "acc_at_10_tied", 0.7),
        ("full", "m", "acc_at_10_by_answer", 0.7),
        ("full/length:1", "m", "acc_at_1", 0.9),
    )
    metrics = headlines(table, METADATA, edges=True)
    assert metrics == {
        "main_acc_at_1": 0.5,
        "more_low": 0.4,
        "more_high": 0.6,
        "more_on_hard": 0.2,
        "more_at_10": 0.7,
    }
    many = rows(*((f"{i}-subset", "m", "acc_at_1", 0.5) for i in range(20)))
    assert len(headlines(many, METADATA, edges=True)) == 10
    other = rows(("full", "m", "perplexity", 3.0))
    assert list(headlines(other, METADATA, edges=False)) == ["main_perplexity"]


def test_names_differ_in_what_a_column_shows() -> None:
    numbers = [("full", "m", name, 0.5) for name in catalog()]
    others = [(f"family-{name}", "m", "acc_at_1", 0.5) for name in ("a", "b")]
    names = [*headlines(rows(*numbers, *others), METADATA, edges=True)]
    assert len(names) == 10
    assert len({name[:12] for name in names}) == 10
    assert sorted(names)[0] == "main_acc_at_1"


def test_a_method_without_a_main_variant_has_its_first() -> None:
    named = [("full", f"xfactr:{name}", "acc_at_1", 0.5) for name in ("order", "confidence")]
    assert main_variant(rows(*named)) == "xfactr:confidence"
    swept = [("full", f"contrastive:{name}", "acc_at_1", 0.5) for name in ("original", "layer-2")]
    assert main_variant(rows(*swept)) == "contrastive:original"
    assert main_variant(rows(*swept, ("full", "contrastive", "acc_at_1", 0.5))) == "contrastive"


def test_runs_are_in_the_order_of_what_they_know() -> None:
    """Not of the perplexity of their prompts, which more of them may have."""

    def run(**metrics: float) -> SimpleNamespace:
        return SimpleNamespace(
            data=SimpleNamespace(
                metrics={f"main_{k}": v for k, v in metrics.items()},
                params={"drugs.metric": "acc_at_1"},
            )
        )

    costs = [run(perplexity=3.0), run(perplexity=4.0)]
    view = pages.view(costs)
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`main_perplexity`", True)
    view = pages.view([*costs, run(acc_at_1=0.5)])
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`main_acc_at_1`", False)
    of_every_benchmark = [run(drugs=0.5), run(drugs=0.4)]
    view = pages.view(of_every_benchmark)
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`main_drugs`", False)
