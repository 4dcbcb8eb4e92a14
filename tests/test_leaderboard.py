"""The page's first screen: who leads, by how much, and how sure that is, from made-up tables."""

from dataclasses import replace

import pandas as pd

from made_up import METADATA
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Cell, Chapter, Choice, Table
from medprobe.report.leaderboard import BEST, COMMON, leaderboard
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
    return Results(
        pd.DataFrame(rows, columns=COMPARISON),
        pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks=dict.fromkeys(names, METADATA),
    )


def texts(table: Table) -> list[list[str]]:
    """A table's cells with the notes below them."""
    return [
        [" | ".join(filter(None, [cell.text, cell.note])) if isinstance(cell, Cell) else cell
         for cell in line]
        for line in table.rows
    ]  # fmt: skip


def shown(chapter: Chapter) -> tuple[str, list[list[str]], dict[str, Table]]:
    """The sentences, the table by benchmark, and those by model."""
    blocks = [block for part in chapter.parts for block in part.blocks]
    [best] = [block for block in blocks if isinstance(block, Table)]
    choices = [block for block in blocks if isinstance(block, Choice)]
    return " ".join(chapter.about), texts(best), dict(choices[0].tables) if choices else {}


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
    said, best, tables = shown(chapter)
    assert said == (
        "On facts good is best; there it is significantly better than all other models of the "
        "same method. On more fair is best, but not significantly. The widest significant lead is "
        "on facts: under fill_mask good has 90.0 % [85.0, 95.0] acc@1, fair 50.0 % [45.0, 55.0] "
        "(corrected p < 0.001)."
    )
    assert best[0] == [
        "facts | full, acc@1 (%)",
        "good | fill_mask",
        "90.0 | [85.0, 95.0]",
        "fair | fill_mask",
        "50.0 | [45.0, 55.0]",
        "+40.0 | corrected p < 0.001",
        "–",
    ]
    assert best[1][5] == "+1.0 | corrected p = 0.9"
    assert list(tables) == [COMMON, BEST, "fill_mask"]
    ranks = texts(tables[COMMON])
    places = {line[0]: [cell.partition("rank ")[2] for cell in line[1:]] for line in ranks}
    assert places == {"good": ["1", "1–2"], "fair": ["2–3", "1–2"], "poor": ["2–3", ""]}


def test_no_lead_is_sure_over_a_model_that_no_test_compares() -> None:
    rows = [row("facts", "good", 0.9), row("facts", "poor", 0.4)]
    rows += [row("facts", "other", 0.89, "likelihood")]
    [chapter] = leaderboard(results(rows, [compared("facts", "good", "poor", 0.5, 1e-6)]))
    said, best, tables = shown(chapter)
    assert "there it is significantly better than all other models of the same method" in said
    assert "On facts the next model does best under another method, and no test compares" in said
    assert best[0][3:] == ["other | likelihood", "89.0 | [84.0, 94.0]", "+1.0 | not tested", "–"]
    assert texts(tables[BEST])[1] == ["other", "89.0 | [84.0, 94.0]\nlikelihood"]
    assert [line[0] for line in texts(tables[COMMON])] == ["good", "poor"]
    assert "likelihood" not in tables, "it asks one model only"


def test_equal_values_lead_nothing() -> None:
    for method in ("fill_mask", "likelihood"):
        rows = [row("facts", "one", 0.5), row("facts", "other", 0.5, method)]
        [chapter] = leaderboard(results(rows, [compared("facts", "one", "other", 0.0, 1.0)]))
        said, best, _ = shown(chapter)
        assert said == "On facts the best two models have the same value."
        assert best[0][3] == f"other | {method}"


def test_where_low_is_good_the_lowest_leads() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    rows = [{**one, "metric": "perplexity"} for one in rows]
    found = results(rows, [])
    about = dict.fromkeys(found.benchmarks, replace(METADATA, primary_metric="perplexity"))
    _, best, _ = shown(leaderboard(replace(found, benchmarks=about))[0])
    assert best[0][1] == "other | fill_mask"


def test_controls_sweeps_and_shorter_lists_of_names_do_not_lead() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    rows += [row("facts", "other", 0.9, "fill_mask:always-true")]
    rows += [row("facts", "other", 0.8, "fill_mask:step-40")]
    rows += [row("facts", "other", 0.7, "mask_average:relation")]
    [chapter] = leaderboard(results(rows, []))
    _, best, _ = shown(chapter)
    assert best[0][1] == "one | fill_mask"
    assert best[0][5] == "+10.0 | not tested"


def test_controls_and_calibration_are_told_by_their_tests() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    control = {"method_b": "fill_mask:copy"}
    tests = [
        compared("facts", "one", "other", 0.1, 0.01),
        {**compared("facts", "one", "one", 0.3, 0.01), **control},
        {**compared("facts", "other", "other", -0.3, 0.01), **control},  # worse than its control
    ]
    [chapter] = leaderboard(replace(results(rows, tests), twins={"other": "one"}))
    said, _, _ = shown(chapter)
    assert "Controls: 1 of 2 comparisons show a model significantly better than its" in said
    assert "significantly better than its untaught twin in 1 of 1 comparisons" in said
    assert said.endswith("the twin is better in none.")
    swapped = replace(results(rows, tests[:1]), twins={"one": "other"})
    said, _, _ = shown(leaderboard(swapped)[0])
    assert "in 0 of 1 comparisons, as it should be, and the twin is better in 1." in said
    assert "Controls" not in said


def test_an_invented_world_is_called_one() -> None:
    found = results([row("facts", "one", 0.5), row("facts", "other", 0.4)], [])
    for made, who in (({"one"}, "one was"), ({"one", "other", "third"}, "all models here were")):
        said, _, _ = shown(leaderboard(replace(found, invented=frozenset(made)))[0])
        assert f"Invented: {who} trained on the sample world." in said
    assert "Invented" not in shown(leaderboard(found)[0])[0]


def test_one_model_has_no_rank_and_no_numbers_give_no_chapter() -> None:
    [chapter] = leaderboard(results([row("facts", "one", 0.5)], []))
    assert shown(chapter)[0] == ""
    assert len(chapter.parts) == 1
    assert leaderboard(results([], [])) == []
