"""The first screen as plain data: which model is best on what, by how much, and how sure that is.

`page/leaderboard.js` draws it for all models, or for those that a reader chooses. `title` is the
sentence above it; the script has the same rule, since it has to follow the choice.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics.results import select
from medprobe.metrics.significance import MAIN
from medprobe.metrics.statistics import LEVEL
from medprobe.report.numbers import (
    format_difference,
    format_interval,
    format_without_unit,
    metric,
)
from medprobe.report.page_data import Overlap, PageData
from medprobe.report.verdicts import Control, as_verdict, control

Board = dict[str, Any]
"""`models`: name and kind. `benchmarks`: the columns, see `_column`. Numbers of shares are points
from 0 to 100, with one digit, so that both languages print them alike."""
Column = dict[str, Any]

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def leaderboard(results: PageData) -> Board:
    """The first screen; without benchmarks where there are no main results."""
    asked = {model for _, model in results.main}
    models = [model for model in results.models if model in asked]
    kinds = {name: kind for kind, of in results.params.models.by_kind().items() for name in of}
    columns = [_column(results, name, models) for name in results.benchmarks]
    columns = [column for column in columns if any(column["cells"])]
    columns.sort(key=lambda column: (not column["share"], -sum(map(bool, column["cells"]))))
    return {
        "models": [{"name": name, "kind": kinds.get(name, "")} for name in models],
        "benchmarks": columns,
        "confidence": f"{100 * results.confidence:.0f}",
        "synthetic": sorted({*models} & results.invented),
    }


def _column(results: PageData, benchmark: str, models: Sequence[str]) -> Column:
    """A benchmark: what its numbers are, a cell per model (None: not asked), and tests of pairs.

    A test is `[a, b, difference, low, high, state, smallest, relations, parts]`: the numbers of the
    models, a < b; by how much a is better; 1 if that is significant, 0 if not, or why nothing could
    be; the smallest difference that would be found; the differences on relations, `[name,
    difference, low, high]`; and how many queries only a, both, only b and neither have right.
    """
    subset, name = results.main_subset(benchmark), results.primary(benchmark)
    about, lower = metric(name), metric(name).better_on(subset) == "lower"
    rows = results.main_rows(benchmark)
    order = [*rows["model"]]
    tests = _tests(results, benchmark, subset, name, models)
    different = np.zeros((len(order), len(order)), bool)
    for a, b, _, _, _, state, *_ in tests:
        pair = [order.index(models[a]), order.index(models[b])]
        different[pair, pair[::-1]] = state == 1
    is_tested = any(not isinstance(test[5], str) for test in tests)
    shared = dict(zip(order, letters(different) if is_tested else [""] * len(order), strict=True))
    cells = {
        row["model"]: {
            **_cell(row, control(results, row), lower=lower),
            "place": order.index(row["model"]),
            "letters": shared[row["model"]],
        }
        for _, row in rows.iterrows()
    }
    page = results.query_pages.get(benchmark)
    return {
        "name": benchmark,
        "metric": about.title,
        "queries": max((cell["n"] for cell in cells.values()), default=0),
        "share": about.in_per_cent,
        "lower": lower,
        "subset": subset,
        "k": name.removeprefix("acc_at_") if name.startswith("acc_at_") else "",
        "page": bool(page and page.exists),
        "cells": [cells.get(model) for model in models],
        "tests": tests,
    }


def _cell(row: pd.Series, own: Control | None, *, lower: bool) -> dict[str, Any]:
    """A main result beside its control; `state` says what the test of the two says."""
    name, value = str(row["metric"]), row["value"]
    text = format_without_unit(name, value)
    interval = format_interval(name, row["low"], row["high"])
    about = [f"{row['method']}: {text} {interval}".rstrip()]
    cell = {"value": _number(name, value), "text": text, "n": int(np.nan_to_num(row["n"]))}
    cell |= {"system": f"{row['model']} · {row['method']}", "state": ""}
    if own is None:
        return {**cell, "about": "\n".join([*about, "no tested control"])}
    gap = own.test.difference
    about += [
        f"{own.name}: {format_without_unit(name, own.value)}",
        f"difference: {format_difference(name, gap)}, {own.test.evidence}",
    ]
    numbers = {"control": _number(name, own.value), "gain": _number(name, -gap if lower else gap)}
    return {**cell, **numbers, "state": own.state, "about": "\n".join(about)}


def _tests(
    results: PageData, benchmark: str, subset: str, name: str, models: Sequence[str]
) -> list[list[Any]]:
    """The tests of pairs of models, with what is known of each pair beside them."""
    at = {model: number for number, model in enumerate(models)}
    lower = metric(name).better_on(subset) == "lower"
    tests = select(results.all_tests(benchmark, subset, name), family=MAIN)
    tests = tests[tests["model_a"].isin(models) & tests["model_b"].isin(models)]
    relations: dict[tuple[int, int], list[list[Any]]] = {}
    found: list[tuple[int, int, list[Any]]] = []
    for _, row in tests.iterrows():
        a, b = sorted((at[row["model_a"]], at[row["model_b"]]))
        test = as_verdict(row, 1 if (row["model_a"] == models[a]) != lower else -1)
        numbers = [_number(name, number) for number in (test.difference, test.low, test.high)]
        if row["relation"] != "macro":
            title = str(row["relation"]).replace("_", " ")
            relations.setdefault((a, b), []).append([title, *numbers])
            continue
        state = test.untestable or int(test.p < LEVEL)
        smallest = _number(name, row["smallest_difference"])
        parts = _overlap(results.overlaps.get(benchmark, {}), models[a], models[b])
        found.append((a, b, [*numbers, state, smallest, relations.setdefault((a, b), []), parts]))
    return [[a, b, *rest] for a, b, rest in found]


def _overlap(overlaps: Mapping[tuple[str, str], Overlap], a: str, b: str) -> Sequence[int] | None:
    if (b, a) in overlaps:
        only_b, both, only_a, neither = overlaps[b, a]
        return only_a, both, only_b, neither
    return overlaps.get((a, b))


def _number(name: str, value: float) -> float | None:
    """A number as the page has it; None where there is none."""
    if pd.isna(value) or not np.isfinite(value):
        return None
    return round(100 * value, 1) + 0.0 if metric(name).in_per_cent else float(f"{value:.4g}")


def letters(different: np.ndarray) -> list[str]:
    """The compact letter display: who shares a letter cannot be told apart (Piepho 2004).

    >>> letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool))
    ['a', 'ab', 'b']
    """
    groups = [frozenset(range(len(different)))]
    for i, j in combinations(range(len(different)), 2):
        if not different[i, j]:
            continue
        kept = [group for group in groups if not {i, j} <= group]
        halves = [group - {one} for group in groups if {i, j} <= group for one in (i, j)]
        for half in sorted({*halves}, key=len, reverse=True):
            if not any(half <= group for group in kept):
                kept.append(half)
        groups = kept
    groups.sort(key=sorted)
    if len(groups) > len(LETTERS):
        return [""] * len(different)
    return [
        _runs([number for number, group in enumerate(groups) if place in group])
        for place in range(len(different))
    ]


def _runs(numbers: Sequence[int]) -> str:
    """Letters by their numbers, three neighbours or more as a run."""
    text, start = "", 0
    for place, number in enumerate(numbers):
        if place + 1 < len(numbers) and numbers[place + 1] == number + 1:
            continue
        run = "".join(LETTERS[one] for one in numbers[start : place + 1])
        text += run if len(run) < 3 else f"{run[0]}–{run[-1]}"
        start = place + 1
    return text


def title(board: Board, chosen: Sequence[int] | None = None) -> str:
    """Say which of the chosen models is best on which benchmark, and by how much.

    `title` of page/leaderboard.js is the same rule; a test compares both.
    """
    models = [model["name"] for model in board["models"]]
    chosen = range(len(models)) if chosen is None else chosen
    said: dict[tuple[int, str], list[str]] = {}
    for column in board["benchmarks"]:
        asked = [number for number in chosen if column["cells"][number]]
        if asked:
            asked.sort(key=lambda number: column["cells"][number]["place"])
            rank, start, item = _say(column, asked, models)
            said.setdefault((rank, start), []).append(item)
    compared = {key: items for key, items in said.items() if key[0] < ALONE}
    clauses = [
        start + _join(items) + (" points" if " by " in items[-1] else "")
        for (_, start), items in sorted((compared or said).items(), key=lambda entry: entry[0][0])
    ]
    text = "; ".join(clauses)
    starts_with_name = any(text.startswith(f"{model} ") for model in models)
    return text if starts_with_name else text[:1].upper() + text[1:]


# What is said of a benchmark, in this order; the last two only where nothing else is said.
LEADS, TIES, NONE, ALONE, UNTESTED = range(5)


def _say(column: Column, asked: Sequence[int], models: Sequence[str]) -> tuple[int, str, str]:
    """What is said of a benchmark, the start of the sentence, and its own part of the list."""
    name, best = column["name"], asked[0]
    cell = column["cells"][best]
    states = {column["cells"][number]["state"] for number in asked}
    if len(asked) == 1:
        verb = {
            "above": "is significantly above its control",
            "below": "is significantly below its control",
            "not": "is not significantly above its control",
        }.get(cell["state"], "cannot be tested")
        by = f" by {cell['gain']:.1f}" if cell["state"] == "above" and column["share"] else ""
        return ALONE, f"{models[best]} {verb} on ", name + by
    if "above" not in states and states & {"below", "not"}:
        return NONE, "no model is significantly above its control on ", name
    tests = {(test[0], test[1]): test for test in column["tests"]}
    against = [tests.get((min(best, other), max(best, other))) for other in asked[1:]]
    reasons = ["untested" if test is None else test[5] for test in against]
    if untested := [reason for reason in reasons if isinstance(reason, str)]:
        return UNTESTED, "models cannot be compared on ", f"{name} ({untested[0]})"
    if tied := [other for other, state in zip(asked[1:], reasons, strict=True) if not state]:
        start = f"{models[best]} is first but not significantly better than "
        if len(tied) > 1:
            return TIES, start, f"{len(tied)} others on {name} ({cell['text']})"
        values = f"{cell['text']} against {column['cells'][tied[0]]['text']}"
        return TIES, start, f"{models[tied[0]]} on {name} ({values})"
    over = f" {models[asked[1]]}" if len(asked) == 2 else ""
    by = f" by {abs(against[0][2]):.1f}" if column["share"] and against[0] else ""
    return LEADS, f"{models[best]} leads{over} on ", name + by


def _join(items: Sequence[str]) -> str:
    """A list in words.

    >>> _join(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))
