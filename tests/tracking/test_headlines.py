"""The metrics of a run in MLflow, and what runs are sorted by."""

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


def test_all_metrics_have_their_names_of_the_catalogue() -> None:
    table = rows(
        ("hard", "m", "acc_at_1", 0.2),
        ("full", "m", "acc_at_1", 0.5),
        ("full", "m", "acc_at_10", 0.7),
        ("full/length:1", "m", "acc_at_1", 0.9),
    )
    assert headlines(table, METADATA, edges=False) == {
        "acc_at_1": 0.5,
        "acc_at_10": 0.7,
        "hard/acc_at_1": 0.2,
    }
    edges = headlines(table, METADATA, edges=True)
    assert (edges["acc_at_1_low"], edges["acc_at_1_high"]) == (0.4, 0.6)
    over_queries = rows(("full", "m", "acc_at_1", 0.4), ("hard", "m", "perplexity", 3.0))
    both = pd.concat([over_queries.assign(relation="micro"), table], ignore_index=True)
    assert headlines(both, METADATA, edges=False) == {
        **headlines(table, METADATA, edges=False),
        "hard/perplexity": 3.0,
    }
    every = rows(*(("full", "m", name, 0.5) for name in catalog()))
    assert [*headlines(every, METADATA, edges=False)] == [*catalog()]


def test_a_method_without_a_main_variant_has_its_first() -> None:
    named = [("full", f"xfactr:{name}", "acc_at_1", 0.5) for name in ("order", "confidence")]
    assert main_variant(rows(*named)) == "xfactr:confidence"
    swept = [("full", f"contrastive:{name}", "acc_at_1", 0.5) for name in ("original", "layer-2")]
    assert main_variant(rows(*swept)) == "contrastive:original"
    assert main_variant(rows(*swept, ("full", "contrastive", "acc_at_1", 0.5))) == "contrastive"


def test_runs_are_in_the_order_of_what_they_know() -> None:
    """Not of the perplexity of their prompts, which more of them may have."""

    def run(metrics: dict[str, float], **tags: str) -> SimpleNamespace:
        params = {"drugs.metric": "acc_at_1"}
        return SimpleNamespace(data=SimpleNamespace(metrics=metrics, params=params, tags=tags))

    def order(runs: list[SimpleNamespace]) -> tuple[object, object]:
        view = pages.view(runs)
        return view["orderByKey"], view["orderByAsc"]

    costs = [run({"perplexity": value}, metric="perplexity") for value in (3.0, 4.0)]
    assert order(costs) == ("metrics.`perplexity`", True)
    knows = run({"acc_at_1": 0.5, "acc_at_10": 0.6}, metric="acc_at_1")
    assert order([*costs, knows]) == ("metrics.`acc_at_1`", False)
    of_every_benchmark = [run({"drugs/acc_at_1": value}) for value in (0.5, 0.4)]
    assert order(of_every_benchmark) == ("metrics.`drugs/acc_at_1`", False)
