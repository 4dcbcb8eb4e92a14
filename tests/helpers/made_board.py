"""Tables of a made-up comparison: values of models, and what the tests are to say of them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from helpers.toy_project import METADATA
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.leaderboard import Board, leaderboard
from medprobe.report.page_data import PageData

CONTROL = 0.1  # of all models


def page_data(
    values: Mapping[str, Mapping[str, float]],
    apart: Collection[str],
    above: Collection[str],
    *,
    below: Collection[str] = (),
    untestable: str = "",
    metric: str = "acc_at_1",
    **about: Any,
) -> PageData:
    """Main results by benchmark and model.

    Args:
        values: by benchmark, and by model.
        apart: the pairs that are significantly different, such as `a b`.
        above: the models that are significantly above their control.
        below: those that are significantly below it.
        untestable: why no test could find anything; or empty.
        metric: of all benchmarks.
        about: more of the page.
    """
    rows, tests = [], []
    for benchmark, models in values.items():
        keys = {"benchmark": benchmark, "subset": "full", "relation": "macro", "metric": metric}
        common = {**keys, "n": 100, "units": 100, "smallest_difference": 0.1, "p": 0.5}
        common["untestable"] = untestable
        for model, value in models.items():
            system = {"model": model, "method": "fill_mask"}
            ends = {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 100}
            rows.append({**dict.fromkeys(COMPARISON), **keys, **system, **ends})
            gap = -abs(value - CONTROL) if model in below else value - CONTROL
            found = model in above or model in below
            tests.append(
                {
                    **common,
                    **{"family": "controls", "model_a": model, "method_a": "fill_mask"},
                    **{"model_b": model, "method_b": "fill_mask:shuffled"},
                    **difference(gap, p=0.001 if found else 0.4),
                }
            )
        for a, b in combinations(models, 2):
            p = 0.001 if {f"{a} {b}", f"{b} {a}"} & {*apart} else 0.4
            pair = {"model_a": a, "model_b": b, "method_a": "fill_mask", "method_b": "fill_mask"}
            family = {**common, "family": "main results", **pair}
            tests.append({**family, **difference(models[a] - models[b], p)})
    main = {(benchmark, model): "fill_mask" for benchmark in values for model in values[benchmark]}
    metadata = replace(METADATA, primary_metric=metric)
    return PageData(
        pd.DataFrame(rows, columns=COMPARISON),
        pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks=dict.fromkeys(values, metadata),
        **{"main": main, **about},
    )


def difference(gap: float, p: float) -> dict[str, float]:
    """A tested difference, with an interval of ten points."""
    return {"difference": gap, "low": gap - 0.05, "high": gap + 0.05, "p_holm": p}


def board_of(
    values: Mapping[str, Mapping[str, float]],
    apart: Collection[str],
    above: Collection[str],
    **about: Any,
) -> Board:
    """The first screen of `page_data`."""
    return leaderboard(page_data(values, apart, above, **about))


def spelt(text: str) -> set[str]:
    """The letters of `ac–f`."""
    found: set[str] = set()
    for place, letter in enumerate(text):
        if letter == "–":
            found |= set(map(chr, range(ord(text[place - 1]), ord(text[place + 1]))))
        else:
            found.add(letter)
    return found
