"""The sections on made-up tables: they say what the paired tests say, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.render_helpers import check_snapshot, lines
from helpers.toy_project import METADATA
from medprobe.core.benchmark_statistics import statistics
from medprobe.core.params import ScoreParams
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables
from medprobe.metrics import Scoring, catalog
from medprobe.metrics.results import COMPARISON, to_rows, without_repeats
from medprobe.metrics.significance import LEVEL, SIGNIFICANCE, average_by_query, significance
from medprobe.metrics.summary import summarise, weighted
from medprobe.report import leaderboard, verdicts
from medprobe.report.leaderboard import Standing, standing
from medprobe.report.page_data import PageData
from medprobe.report.sections import differences, models
from medprobe.report.verdicts import MARK, p_value

SCORING = Scoring(ScoreParams(bootstrap=200), 1)
System = tuple[str, str]


def values(numbers: Sequence[float], metric: str, subset: str = "full") -> pd.DataFrame:
    """One value a query, which is a cluster of its own."""
    names = [f"q{number}" for number in range(len(numbers))]
    about = {"variant": "", "replicate": "", "query_id": names, "subset": subset, "cluster": names}
    return pd.DataFrame({**about, "relation": "may_treat", metric: list(numbers)})


def results(systems: Mapping[System, pd.DataFrame], metric: str, **about: object) -> PageData:
    """The scores of systems and their paired tests, of a benchmark judged by this metric."""
    rows = []
    for (model, method), table in systems.items():
        name, _, variant = method.partition(":")
        all_scores = summarise(table.assign(variant=variant), SCORING, [*catalog().values()])
        rows += list(to_rows({"facts": all_scores}, model, name))
    tables = {name: average_by_query(weighted(table)) for name, table in systems.items()}
    metadata = replace(METADATA, primary_metric=metric)
    provenance = {
        "comparison": pd.DataFrame(rows, columns=COMPARISON),
        "significance": significance(tables, "facts", SCORING.params, 1),
        "benchmarks": {"facts": metadata},
    }
    return PageData(**{**provenance, **about})  # type: ignore[arg-type]


def hits(right: int, of: int) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


def best(page_results: PageData, metric: str = "acc_at_1", subset: str = "full") -> Standing:
    best_standing = standing(page_results, "facts", subset, metric)
    assert best_standing
    return best_standing


def counted(answers: int) -> dict[str, pd.DataFrame]:
    """The statistics of a benchmark of ten queries with so many names."""
    names = [f"name {number}" for number in range(answers)]
    query_rows = [
        (f"q{n}", "facts", "may_treat", "s", f"S{n}", "[Y]", [names[n]], [""], "full")
        for n in range(10)
    ]
    benchmark = BenchmarkTables(
        pd.DataFrame(query_rows, columns=QUERY_COLUMNS),
        pd.DataFrame([(name, "", "", "full") for name in names], columns=CANDIDATE_COLUMNS),
    )
    return {"facts": statistics(benchmark)}


def facts() -> PageData:
    """`one` leads `other`; a control, a variant that ranks fewer names, rewiring that moves little
    or nothing, ties that matter, and chance."""
    right = {
        ("one", "x"): 30,
        ("other", "x"): 10,
        ("one", "x:original"): 28,
        ("other", "x:original"): 10,
        ("one", "x:relation"): 36,
        ("one", "x:always-true"): 12,
        ("other", "y"): 25,
    }
    systems = {
        system: values(hits(n, 40), "acc_at_1").assign(acc_at_1_tied=hits(n + (n == 30), 40))
        for system, n in right.items()
    }
    return results(systems, "acc_at_1", statistics=counted(20))


def test_the_sections_of_a_benchmark() -> None:
    page_results = facts()
    sections = (models.section, differences.section)
    check_snapshot(
        "facts", [part for section in sections for part in section(page_results, "facts")]
    )


def test_a_difference_of_few_queries_is_marked() -> None:
    systems = {("one", "x"): hits(5, 8), ("other", "x"): hits(3, 8)}
    page_results = results({key: values(x, "acc_at_1") for key, x in systems.items()}, "acc_at_1")
    found = best(page_results)
    _, test = found.rival(found.best)
    assert test and not test.clear
    text = "".join(lines(leaderboard.table("", [("", found, found.best)])))
    assert f"| +25.0 {MARK} (other 37.5; p = 0.5) |" in text


def test_what_is_certain_for_these_answers_alone_is_no_difference() -> None:
    """`one` is right wherever the first two of four answers are: all places have the same p."""
    answers = np.arange(60) // 15
    systems = {
        ("one", "x"): values((answers < 2).astype(float), "acc_at_1").assign(answer=answers),
        ("other", "x"): values(np.zeros(60), "acc_at_1").assign(answer=answers),
    }
    page_results = results(systems, "acc_at_1")
    test = page_results.significance.iloc[0]
    assert test["p_holm"] > LEVEL
    text = "".join(
        line for part in differences.section(page_results, "facts") for line in lines(part)
    )
    assert "| full | models under one method | 1 | 0 |" in text
    text_of_p = p_value(test["p_holm"]).removeprefix("p = ")
    assert f"| {text_of_p} | no |" in text
    found = best(page_results)
    entry = leaderboard.table("", [("", found, found.best)])
    assert f"{MARK} (other 0.0; p = {text_of_p})" in "".join(lines(entry))


def test_a_baseline_is_in_the_same_metric_tested_or_not() -> None:
    """There are no tests; the control that says yes to everything has a value in the metric."""
    systems = {("one", "x"): hits(6, 10), ("one", "x:always-true"): hits(9, 10)}
    tables = {key: values(x, "acc_at_1_by_answer") for key, x in systems.items()}
    untested = pd.DataFrame(columns=SIGNIFICANCE)
    page_results = results(tables, "acc_at_1_by_answer", significance=untested)
    control = verdicts.control(page_results, best(page_results, "acc_at_1_by_answer").best)
    assert control
    assert (control.name, control.value, control.evidence) == (
        "always saying true",
        0.9,
        "not tested",
    )
    assert not control.beaten and control.mark == ""


def test_one_model_alone_is_compared_with_nobody() -> None:
    page_results = results({("one", "x"): values(hits(3, 9), "acc_at_1")}, "acc_at_1")
    assert not best(page_results).rival(best(page_results).best)
    assert differences.section(page_results, "facts") == []


def test_six_diseases_show_nothing_however_far_apart() -> None:
    """The intervals of .6 and .33 may not overlap; of six diseases no test says so."""
    good, poor = [0.9, 0.8, 0.7, 0.6, 0.4, 0.2], [0.3, 0.3, 0.5, 0.3, 0.3, 0.3]
    systems = {
        (model, "fill_mask"): values([*numbers], "acc_at_1")
        for model, numbers in (("a", good), ("b", poor), ("c", [0.3] * 6))
    }
    page_results = results(systems, "acc_at_1")
    found = best(page_results)
    tests = [found.test(found.best, row) for _, row in found.rows[1:].iterrows()]
    assert len(tests) == 2 and not any(test and test.clear for test in tests)
    page_results.benchmarks["facts"] = replace(page_results.benchmarks["facts"], cluster="target")
    page_lines = [
        line for part in differences.section(page_results, "facts") for line in lines(part)
    ]
    assert "| full | models under one method | 3 | 0 | ∞ |" in page_lines
    assert any("with so few diseases" in line for line in page_lines)


def test_the_chance_of_several_answers_is_that_of_drawing() -> None:
    """Answers are counted by the benchmark's rule; a relation ranks the names of its type."""
    names = [("Gout", "treats"), ("gout", "treats"), ("flu", "treats"), ("rash", "causes")]
    query_rows = [
        ("q0", "facts", "treats", "s", "S", "[Y]", ["the gout"], [""], "full"),
        ("q1", "facts", "causes", "s", "S", "[Y]", ["rash"], [""], "full"),
        ("q2", "facts", "causes", "s", "S", "[Y]", ["not among them"], [""], "full"),
    ]
    benchmark = BenchmarkTables(
        pd.DataFrame(query_rows, columns=QUERY_COLUMNS),
        pd.DataFrame([(a, "", b, "full") for a, b in names], columns=CANDIDATE_COLUMNS),
        normalise="biolama",
    )
    table = statistics(benchmark).set_index("relation")
    assert table.loc["treats", ["candidates", "chance_at_1", "chance_at_5"]].tolist() == (
        pytest.approx([3, 2 / 3, 1])
    )
    assert table.loc["causes", ["candidates", "chance_at_1"]].tolist() == pytest.approx([1, 0.5])
    assert table.loc["all", "chance_at_1"] == pytest.approx((2 / 3 + 1 + 0) / 3)


@given(st.integers(0, 1000), st.integers(2, 30), st.sampled_from(["acc_at_1", "perplexity"]))
def test_a_mark_says_what_the_tests_say(seed: int, n: int, metric: str) -> None:
    draw, least = np.random.default_rng(seed), float(metric == "perplexity")
    systems = {
        (model, "x"): values((draw.random(n) < share).astype(float) + least, metric)
        for model, share in (("a", 0.2), ("b", 0.5), ("c", 0.9))
    }
    page_results = results(systems, metric)
    macro = page_results.comparison.query("relation == 'macro' and metric == @metric")
    order = macro.sort_values("value", ascending=metric == "perplexity", kind="stable")
    first, second, _ = order["model"]
    tests = page_results.significance
    own_tests = tests[tests[["model_a", "model_b"]].isin([first, second]).all(axis=1)]
    found = best(page_results, metric)
    rival, test = found.rival(found.best)
    assert (found.best["model"], rival["model"]) == (first, second)
    assert test and test.clear == (own_tests["p_holm"].item() < LEVEL)
    assert (MARK in "".join(lines(leaderboard.table("", [("", found, found.best)])))) != test.clear


def test_what_is_no_common_quantity_is_not_compared() -> None:
    tables = {(m, "perplexity"): values([2.0, 3, 4], "perplexity") for m in ("mlm", "gpt")}
    kinds = {"mlm": "masked", "gpt": "causal"}
    tested = significance(
        {name: average_by_query(weighted(table)) for name, table in tables.items()},
        *("facts", SCORING.params, 1),
        kinds=kinds,
    )
    page_results = results(tables, "perplexity", significance=tested)
    found = best(page_results, "perplexity")
    assert found.rival(found.best) is None
    page_lines = [line for part in models.section(page_results, "facts") for line in lines(part)]
    assert not any("best model" in line for line in page_lines)


def test_answers_to_other_subjects_are_the_control_and_else_the_strongest() -> None:
    systems = {("a", "x"): hits(10, 10), ("a", "x:copy"): hits(1, 10)}
    systems |= {("a", "x:always-true"): hits(3, 10), ("a", "x:shuffled"): hits(2, 10)}
    for value, beaten in ((0.2, True), (0.3, True)):
        tables = {key: values(x, "acc_at_10") for key, x in systems.items()}
        page_results = results(tables, "acc_at_10")
        control = verdicts.control(page_results, best(page_results, "acc_at_10").best)
        assert control and (control.value, control.beaten) == (value, beaten)
        systems.pop(("a", "x:shuffled"), None)


def test_baselines_orient_and_are_not_tested() -> None:
    page_results = results({("a", "x"): values(hits(3, 10), "acc_at_1")}, "acc_at_1")
    majority = page_results.comparison.assign(model="baseline", method="majority", value=0.25)
    page_results = replace(page_results, baselines=majority)
    found = best(page_results)
    assert verdicts.control(page_results, found.best) is None
    assert verdicts.baselines(page_results, found.best) == {"the majority baseline": 0.25}
    assert "| 25.0 |" in "".join(lines(leaderboard.table("", [("", found, found.best)])))


def test_what_repeats_another_variant_digit_for_digit_is_shown_once() -> None:
    """`x:same` repeats `x` for both models, `x:once` for one of them; `y` is another method."""
    right = {("one", "x"): 5, ("two", "x"): 3, ("one", "x:same"): 5, ("two", "x:same"): 3}
    right |= {("one", "x:once"): 5, ("two", "x:once"): 4, ("one", "y"): 5, ("two", "y"): 3}
    tables = {key: values(hits(n, 8), "acc_at_1") for key, n in right.items()}
    page_results = results(tables, "acc_at_1", significance=pd.DataFrame(columns=SIGNIFICANCE))
    assert {*without_repeats(page_results.comparison)["method"]} == {"x", "x:once", "y"}
    text = "".join(line for part in models.section(page_results, "facts") for line in lines(part))
    assert "digit for digit the same as another variant: x:same." in text
    assert "| one | x |" in text and "| one | x:same |" not in text
