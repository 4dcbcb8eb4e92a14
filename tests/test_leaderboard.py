"""The page's first screen: who leads, by how much, and how sure that is, from made-up tables."""

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Cell, Chapter, Paragraph, Table
from medprobe.report.leaderboard import leaderboard
from medprobe.report.results import Results

VALUES = {"good": 0.9, "fair": 0.5, "poor": 0.4}


def row(benchmark: str, model: str, value: float, method: str = "fill_mask") -> dict[str, object]:
    keys = (benchmark, "full", "macro", model, method, "acc_at_1")
    rest = {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 100}
    return {**dict.fromkeys(COMPARISON), **dict(zip(COMPARISON[:6], keys, strict=True)), **rest}


def compared(benchmark: str, a: str, b: str, difference: float, p: float) -> dict[str, object]:
    about = {
        "benchmark": benchmark,
        "subset": "full",
        "metric": "acc_at_1",
        "model_a": a,
        "method_a": "fill_mask",
        "model_b": b,
        "method_b": "fill_mask",
        "difference": difference,
        "p_holm": p,
    }
    return {**dict.fromkeys(SIGNIFICANCE), **about}


def results(rows: list[dict[str, object]], tests: list[dict[str, object]]) -> Results:
    names = dict.fromkeys(str(one["benchmark"]) for one in rows)
    about = Metadata("made-up facts", "nobody", "none", (), "acc_at_1")
    return Results(
        pd.DataFrame(rows, columns=COMPARISON),
        pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks=dict.fromkeys(names, about),
    )


def shown(chapter: Chapter) -> tuple[str, list[list[str]], list[list[str]]]:
    """The sentences, and the two tables' texts."""
    blocks = [block for part in chapter.parts for block in part.blocks]
    said = next(block.text for block in blocks if isinstance(block, Paragraph))
    tables = [
        [[cell.text if isinstance(cell, Cell) else cell for cell in line] for line in block.rows]
        for block in blocks
        if isinstance(block, Table)
    ]
    return said, tables[0], tables[1] if len(tables) > 1 else []


def test_the_best_is_named_with_the_next_and_their_test() -> None:
    rows = [row("facts", model, value) for model, value in VALUES.items()]
    rows += [row("more", "fair", 0.31), row("more", "good", 0.3)]
    tests = [
        compared("facts", "fair", "good", -0.4, 1e-6),
        compared("facts", "good", "poor", 0.5, 1e-6),
        compared("facts", "fair", "poor", 0.1, 0.4),
        compared("more", "fair", "good", 0.01, 0.9),
    ]
    [chapter] = leaderboard(results(rows, tests))
    said, best, ranks = shown(chapter)
    assert "good leads on 1 of 2 benchmarks: more than chance on facts." in said
    assert "fair leads on 1 of 2 benchmarks: on none of them beyond chance." in said
    assert best[0][2:] == [
        "good",
        "fill_mask",
        "90.0  [85.0, 95.0]",
        "fair",
        "50.0  [45.0, 55.0]",
        "corrected p < 0.001",
        "–",
    ]
    assert best[1][-2] == "corrected p = 0.9"
    places = {line[0]: [cell.partition("  rank")[2].strip() for cell in line[1:]] for line in ranks}
    assert places == {"good": ["1", "1–2"], "fair": ["2–3", "1–2"], "poor": ["2–3", ""]}


def test_equal_values_lead_nothing() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.5)]
    [chapter] = leaderboard(results(rows, [compared("facts", "one", "other", 0.0, 1.0)]))
    said, best, _ = shown(chapter)
    assert "leads" not in said
    assert "same value" in said
    assert best[0][5] == "other"


def test_controls_sweeps_and_shorter_lists_of_names_do_not_lead() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    rows += [row("facts", "other", 0.9, "fill_mask:always-true")]
    rows += [row("facts", "other", 0.8, "fill_mask:step-40")]
    rows += [row("facts", "other", 0.7, "mask_average:relation")]
    [chapter] = leaderboard(results(rows, []))
    _, best, _ = shown(chapter)
    assert best[0][2] == "one"
    assert best[0][-2] == "not tested"


def test_one_model_has_no_rank_and_no_numbers_give_no_chapter() -> None:
    [chapter] = leaderboard(results([row("facts", "one", 0.5)], []))
    assert len(chapter.parts) == 1
    assert leaderboard(results([], [])) == []
