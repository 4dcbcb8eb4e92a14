"""The sections on made-up tables: they say what the paired tests say, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pytest

from helpers.render_helpers import check_snapshot, lines
from helpers.tested import made_tests
from helpers.toy_project import METADATA
from medprobe.core.benchmark_statistics import statistics
from medprobe.core.params import ScoreParams
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables
from medprobe.metrics import Scoring, catalog
from medprobe.metrics.results import COMPARISON, to_rows, without_repeats
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.metrics.summary import summarise
from medprobe.report import leaderboard, verdicts
from medprobe.report.leaderboard import Standing, standing
from medprobe.report.page_data import PageData
from medprobe.report.sections import differences, models

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
    metadata = replace(METADATA, primary_metric=metric)
    provenance = {
        "comparison": pd.DataFrame(rows, columns=COMPARISON),
        "significance": made_tests(systems, metric),
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


def test_what_is_no_common_quantity_is_not_compared() -> None:
    tables = {(m, "perplexity"): values([2.0, 3, 4], "perplexity") for m in ("mlm", "gpt")}
    kinds = {"mlm": "masked", "gpt": "causal"}
    tested = made_tests(tables, "perplexity", kinds=kinds)
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
