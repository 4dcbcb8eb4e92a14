"""The run of a model over all benchmarks."""

import json
from pathlib import Path

import pandas as pd
import pytest

from helpers.tracked_project import PARAMS
from medprobe.core import places
from medprobe.core.files import write_whole
from medprobe.core.tables import Metadata
from medprobe.tracking import comparisons, runs
from medprobe.tracking.store import Content, PendingRun

VALUES = {"fill_mask": ("acc_at_1", 0.2), "mask_average": ("acc_at_1", 0.4)}
COSTS = {"perplexity": ("perplexity", 40.0)}


def means(monkeypatch: pytest.MonkeyPatch, by_method: dict[str, tuple[str, float]]) -> Content:
    """What the run of a model holds that these methods gave a metric and its value."""

    def scored_rows(path: Path, _: object) -> tuple[pd.DataFrame, Metadata]:
        method = path.parent.name
        metric, value = by_method[method]
        names = {"benchmark": "facts", "model": "small", "method": method, "relation": "macro"}
        numbers = {"subset": "full", "metric": metric, "value": value, "n": 9, "low": 0, "high": 1}
        metadata = Metadata("facts", "", "", (), "acc_at_1")
        return pd.DataFrame([names | numbers]), metadata

    monkeypatch.setattr(runs, "scored_rows", scored_rows)
    single = [PendingRun("facts", "small", name, name, lambda: Content({})) for name in by_method]
    every = comparisons.results(single, PARAMS)
    [result] = [result for result in every if result.benchmark == comparisons.EVERY]
    return result.content()


def test_a_perplexity_is_not_taken_for_the_best_accuracy(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := places.BENCHMARKS / "facts").mkdir(parents=True)
    (folder / "about.json").write_text('{"builder": "table", "normalise": "none"}')
    main = {"small": {"method": "mask_average", "subset": "full", "acc_at_1": 0.4}}
    write_whole(places.MAIN, json.dumps({"facts": main}))
    places.ABOUT.mkdir(parents=True)
    Metadata("facts", "", "", (), "acc_at_1").write(places.ABOUT / "facts.json")
    content = means(monkeypatch, VALUES | COSTS)
    assert content.metrics == {"facts/acc_at_1": 0.4}
    assert content.params["facts.method"] == "mask_average"
    assert content.files["means.csv"].count("\n") == 4
    places.MAIN.unlink()
    assert means(monkeypatch, COSTS).metrics == {}
