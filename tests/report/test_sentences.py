"""The sections on made-up tables: they say what the paired tests say, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pytest

from helpers import made_board
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
        "main": {("facts", model): method for model, method in [*systems][::-1]},
        "benchmarks": {"facts": metadata},
    }
    return PageData(**{**provenance, **about})  # type: ignore[arg-type]


def hits(right: int, of: int) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


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


def test_chance_among_many_names_is_a_number_wherever_it_is_known() -> None:
    systems = {("one", "x"): values(hits(9, 40), "acc_at_1").assign(acc_at_10=hits(12, 40))}
    page = results(systems, "acc_at_1", statistics=counted(5000))
    shown = [line for part in models.section(page, "facts") for line in lines(part)]
    [row] = {line for line in shown if line.startswith("| uniform chance")}
    assert row.split(" | ")[2:4] == ["0.0", "0.2"]


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


def test_the_main_results_stand_beside_their_controls_letters_and_baselines() -> None:
    page_data = made_board.page_data({"facts": {"a": 0.5, "b": 0.3}}, ["a b"], ["a"])
    macro = page_data.comparison
    blind = macro.assign(subset="full/letters:blind", value=0.4)
    majority = macro.head(1).assign(model="baseline", method="majority", value=0.25)
    letters = page_data.significance.query("family == 'controls'").assign(
        family="letters", model_b="baseline", method_b="letters"
    )
    tests = pd.concat([page_data.significance, letters])
    results_of_letters = replace(
        page_data,
        comparison=pd.concat([macro, blind]),
        baselines=majority,
        significance=tests,
    )
    [table, *_] = models.section(results_of_letters, "facts")[0].blocks
    [caption, head, first, second] = lines(table)
    assert "not tested: the majority baseline 25.0 %" in caption
    assert head.endswith(
        "| control: its answers to other subjects | above it | corrected p | letters | "
        "above them | where letters do not find it |"
    )
    assert "| 10.0 | +40.0  [+35.0, +45.0] | 0.001 | 10.0 |" in first
    assert "| +20.0  [+15.0, +25.0] | 0.4 |" in second and "| 40.0  [" in second
