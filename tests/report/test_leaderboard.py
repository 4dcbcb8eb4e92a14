"""The page's first screen: what models know, and how sure that is, from made-up tables."""

from dataclasses import replace

import pandas as pd

from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA
from medprobe.core.tables import BASELINE
from medprobe.metrics.baselines import MAJORITY
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Answer
from medprobe.report.leaderboard import Standing, leaderboard, standing
from medprobe.report.page_data import PageData


def row(benchmark: str, model: str, value: float, method: str = "fill_mask") -> dict[str, object]:
    keys = (benchmark, "full", "macro", model, method, "acc_at_1")
    rest = {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 100}
    return {**dict.fromkeys(COMPARISON), **dict(zip(COMPARISON[:6], keys, strict=True)), **rest}


def compared(benchmark: str, a: str, b: str, difference: float, p: float) -> dict[str, object]:
    about = {
        **{"benchmark": benchmark, "subset": "full", "metric": "acc_at_1"},
        **{"model_a": a, "method_a": "fill_mask", "model_b": b, "method_b": "fill_mask"},
        **{"difference": difference, "p_holm": p},
    }
    return {**dict.fromkeys(SIGNIFICANCE), **about}


def results(rows: list[dict[str, object]], tests: list[dict[str, object]]) -> PageData:
    names = dict.fromkeys(str(number_row["benchmark"]) for number_row in rows)
    return PageData(
        pd.DataFrame(rows, columns=COMPARISON),
        pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks=dict.fromkeys(names, METADATA),
    )


def of_facts(table_results: PageData, metric: str = "acc_at_1") -> Standing:
    best_standing = standing(table_results, "facts", "full", metric)
    assert best_standing
    return best_standing


def test_the_first_screen() -> None:
    """`sure`: a clear lead; `close`: none, and no model above its control; `split`: the next model
    by another method, and no control; `equal`: a tie; `copied`: the best model is no better than
    its control, and the next one is. `sure` and `close` have a majority baseline."""
    copy, shuffled = {"method_b": "fill_mask:copy"}, {"method_b": "fill_mask:shuffled"}
    rows = [
        *(row("sure", name, x) for name, x in (("good", 0.9), ("fair", 0.5), ("poor", 0.4))),
        *(row("close", "fair", 0.31), row("close", "good", 0.3)),
        *(row("split", "good", 0.9), row("split", "poor", 0.4)),
        row("split", "other", 0.89, "likelihood"),
        *(row("equal", "good", 0.5), row("equal", "other", 0.5, "likelihood")),
        *(row("copied", "good", 0.5), row("copied", "fair", 0.3)),
        row("copied", "good", 0.45, "fill_mask:copy"),
        row("copied", "fair", 0.1, "fill_mask:copy"),
        *(row("sure", name, 0.02, "fill_mask:shuffled") for name in ("good", "fair")),
        *(row("close", name, 0.28, "fill_mask:shuffled") for name in ("good", "fair")),
    ]
    tests = [
        compared("sure", "fair", "good", -0.4, 1e-6),
        compared("sure", "good", "poor", 0.5, 1e-6),
        compared("sure", "fair", "poor", 0.1, 0.4),
        compared("close", "fair", "good", 0.01, 0.9),
        compared("split", "good", "poor", 0.5, 1e-6),
        compared("copied", "good", "fair", 0.2, 0.01),
        {**compared("copied", "good", "good", 0.05, 0.2), **copy},
        {**compared("copied", "fair", "fair", 0.2, 0.01), **copy},
        {**compared("sure", "good", "good", 0.88, 1e-6), **shuffled},
        {**compared("sure", "fair", "fair", 0.48, 1e-6), **shuffled},
        {**compared("close", "fair", "fair", 0.03, 0.3), **shuffled},
        {**compared("close", "good", "good", 0.02, 0.4), **shuffled},
    ]
    of_baseline = [row("sure", BASELINE, 0.25, MAJORITY), row("close", BASELINE, 0.4, MAJORITY)]
    table_results = replace(
        results(rows, tests),
        baselines=pd.DataFrame(of_baseline, columns=COMPARISON),
        twins={"fair": "good"},
        invented=frozenset({"good", "fair", "another"}),
    )
    check_snapshot("leaderboard", leaderboard(table_results))


def test_where_low_is_good_the_lowest_leads() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    table_results = results([{**number_row, "metric": "perplexity"} for number_row in rows], [])
    assert of_facts(table_results, "perplexity").best["model"] == "other"


def test_controls_sweeps_and_shorter_lists_of_names_do_not_lead() -> None:
    rows = [row("facts", "one", 0.5), row("facts", "other", 0.4)]
    rows += [row("facts", "other", 0.9, "fill_mask:always-true")]
    rows += [row("facts", "other", 0.8, "fill_mask:step-40")]
    rows += [row("facts", "other", 0.7, "mask_average:relation")]
    facts_standing = of_facts(results(rows, []))
    assert facts_standing.rows["model"].tolist() == ["one", "other"]
    assert facts_standing.rows["value"].tolist() == [0.5, 0.4]


def test_one_model_leads_nobody_and_no_numbers_give_no_chapter() -> None:
    [chapter] = leaderboard(results([row("facts", "one", 0.5)], []))
    [found] = chapter.parts[0].blocks
    assert isinstance(found, Answer)
    assert found.says == "`one` is not tested against a control on `facts`, by `fill_mask`."
    assert leaderboard(results([], [])) == []


def test_lower_values_are_called_better_where_they_are() -> None:
    numbers = (
        ("fill_mask", "one", 3.0),
        ("fill_mask:shuffled", "one", 9.0),
        ("fill_mask", "b", 2.0),
    )
    rows = [row("facts", name, value, method) for method, name, value in numbers]
    test = compared("facts", "one", "one", -6.0, 0.01) | {"method_b": "fill_mask:shuffled"}
    tables = ([entry | {"metric": "names_ahead"} for entry in part] for part in (rows, [test]))
    [found] = leaderboard(results(*tables))[0].parts[0].blocks
    assert isinstance(found, Answer)
    assert found.says == (
        "`one` is significantly better than its answers to other subjects on `facts`, by "
        "`fill_mask`; `b` scores better, but is not significantly better than its control."
    )
