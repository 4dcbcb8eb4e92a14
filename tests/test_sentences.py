"""The page's sentences on made-up tables: they say what the paired tests say, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import METADATA
from medprobe.benchmarks import context
from medprobe.core.params import ScoreParams
from medprobe.core.statistics import statistics
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, BenchmarkTables
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, rows_of
from medprobe.metrics.significance import by_query, significance
from medprobe.metrics.summary import summarise, weighted
from medprobe.report.blocks import Block, Chapter, Folded, Paragraph, Part
from medprobe.report.results import Results
from medprobe.report.sections import differences, models, published, sweeps, ucm
from medprobe.report.template_free import chapter as template_free
from medprobe.report.template_free import scores

SCORING = Scoring(ScoreParams(bootstrap=200), 1)
System = tuple[str, str]


def values(numbers: Sequence[float], metric: str, subset: str = "full") -> pd.DataFrame:
    """One value a query, which is a cluster of its own."""
    names = [f"q{number}" for number in range(len(numbers))]
    about = {"variant": "", "replicate": "", "query_id": names, "subset": subset, "cluster": names}
    return pd.DataFrame({**about, "relation": "may_treat", metric: list(numbers)})


def results(systems: Mapping[System, pd.DataFrame], metric: str, **about: object) -> Results:
    """The scores of systems and their paired tests, of a benchmark judged by this metric."""
    rows = []
    for (model, method), table in systems.items():
        name, _, variant = method.partition(":")
        found = summarise(table.assign(variant=variant), SCORING)
        rows += list(rows_of({"facts": found}, model, name))
    tables = {name: by_query(weighted(table)) for name, table in systems.items()}
    metadata = replace(METADATA, primary_metric=metric)
    made = {
        "comparison": pd.DataFrame(rows, columns=COMPARISON),
        "significance": significance(tables, "facts", SCORING.params, 1),
        "benchmarks": {"facts": metadata},
    }
    return Results(**{**made, **about})  # type: ignore[arg-type]


def said(parts: Sequence[Part | Block]) -> str:
    """All paragraphs among parts or blocks."""
    texts = []
    for one in parts:
        if isinstance(one, Part | Folded):
            texts.append(said(one.blocks))
        elif isinstance(one, Paragraph):
            texts.append(one.text)
    return " ".join(texts)


def hits(right: int, of: int) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


def two(one: Sequence[float], other: Sequence[float], metric: str = "acc_at_1") -> Results:
    systems = {("one", "x"): values(one, metric), ("other", "x"): values(other, metric)}
    return results(systems, metric)


def test_a_clear_difference_is_called_one() -> None:
    found = two(hits(30, 40), hits(10, 40))
    text = said(models.section(found, "facts"))
    assert text == (
        "The highest acc@1 is one's under x, 75.0 %; other follows under the same method with "
        "25.0 %, a difference that is significant (corrected p < 0.001)."
    )
    told = said(differences.section(found, "facts"))
    assert "1 of 1 pair of models under one method differs significantly in acc@1" in told
    assert "a permutation test that swaps the two on queries;" in told
    assert "A true difference of about 23.1 points would be found four times in five" in told


def test_a_difference_of_few_queries_names_no_winner() -> None:
    text = said(models.section(two(hits(5, 8), hits(3, 8)), "facts"))
    assert "62.5 %; other follows under the same method with 37.5 %" in text
    assert "is not significant (corrected p = 0.5)" in text
    assert "Neither of one and other is shown to be better." in text


def test_ties_have_no_winner() -> None:
    swapped = [1.0, 0.0] * 10
    text = said(models.section(two(swapped, swapped[::-1]), "facts"))
    assert text == "Under x one and other have the same acc@1, 50.0 %."


def test_ties_of_two_methods_have_no_winner_either() -> None:
    systems = {
        (model, method): values(hits(right, 20), "acc_at_1")
        for model, method, right in (("one", "x", 9), ("other", "y", 9), ("other", "x", 2))
    }
    text = said(models.section(results(systems, "acc_at_1"), "facts"))
    assert text == "The highest acc@1, 45.0 %, is that of one under x and other under y."


def test_one_model_alone_is_compared_with_nobody() -> None:
    found = results({("one", "x"): values(hits(3, 9), "acc_at_1")}, "acc_at_1")
    assert said(models.section(found, "facts")) == ""
    assert differences.section(found, "facts") == []


def test_six_diseases_show_nothing_however_far_apart() -> None:
    """The intervals of .6 and .33 may not overlap; of six diseases no test says so."""
    good, poor = [0.9, 0.8, 0.7, 0.6, 0.4, 0.2], [0.3, 0.3, 0.5, 0.3, 0.3, 0.3]
    systems = {
        (model, "classifier"): values([*numbers], "f1")
        for model, numbers in (("a", good), ("b", poor), ("c", [0.3] * 6))
    }
    found = results(systems, "f1")
    assert "Neither of a and b is shown to be better." in said(models.section(found, "facts"))
    found.benchmarks["facts"] = replace(found.benchmarks["facts"], cluster="target")
    told = said(differences.section(found, "facts"))
    assert "0 of 3 pairs of models under one method differ" in told
    assert "With so few diseases no difference, however large, could be found." in told


def test_chance_is_named_where_there_is_one() -> None:
    names = [f"name {number}" for number in range(20)]
    asked = [
        (f"q{n}", "facts", "may_treat", "s", f"S{n}", "[Y]", [names[n]], [""], "full")
        for n in range(10)
    ]
    benchmark = BenchmarkTables(
        pd.DataFrame(asked, columns=QUERY_COLUMNS),
        pd.DataFrame([(name, "", "", "full") for name in names], columns=CANDIDATE_COLUMNS),
    )
    counted = {"facts": statistics(benchmark)}
    systems = {(model, "x"): values(hits(6, 10), "acc_at_10") for model in ("one", "other")}
    found = results(systems, "acc_at_10", statistics=counted)
    text = said(models.section(found, "facts"))
    assert "Names in random order reach 50.0 % acc@10." in text
    assert "the dotted line is chance" in str(models.section(found, "facts"))
    assert "random" not in said(models.section(results(systems, "acc_at_10"), "facts"))


def test_the_chance_of_several_answers_is_that_of_drawing() -> None:
    """Answers are counted by the benchmark's rule; a relation ranks the names of its type."""
    names = [("Gout", "treats"), ("gout", "treats"), ("flu", "treats"), ("rash", "causes")]
    asked = [
        ("q0", "facts", "treats", "s", "S", "[Y]", ["the gout"], [""], "full"),
        ("q1", "facts", "causes", "s", "S", "[Y]", ["rash"], [""], "full"),
        ("q2", "facts", "causes", "s", "S", "[Y]", ["not among them"], [""], "full"),
    ]
    benchmark = BenchmarkTables(
        pd.DataFrame(asked, columns=QUERY_COLUMNS),
        pd.DataFrame([(a, "", b, "full") for a, b in names], columns=CANDIDATE_COLUMNS),
        normalise="biolama",
    )
    table = statistics(benchmark).set_index("relation")
    assert table.loc["treats", ["candidates", "chance_at_1", "chance_at_5"]].tolist() == (
        pytest.approx([3, 2 / 3, 1])
    )
    assert table.loc["causes", ["candidates", "chance_at_1"]].tolist() == pytest.approx([1, 0.5])
    assert table.loc["all", "chance_at_1"] == pytest.approx((2 / 3 + 1 + 0) / 3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 30), st.sampled_from(["acc_at_1", "perplexity"]))
def test_a_sentence_says_what_its_test_says(seed: int, n: int, metric: str) -> None:
    draw = np.random.default_rng(seed)
    systems = {
        (model, "x"): values((draw.random(n) < share).astype(float) + 1, metric)
        for model, share in (("a", 0.2), ("b", 0.5), ("c", 0.9))
    }
    found = results(systems, metric)
    text = said(models.section(found, "facts"))
    assert "interval" not in text
    macro = found.comparison.query("relation == 'macro' and metric == @metric")
    order = macro.sort_values("value", ascending=metric == "perplexity", kind="stable")
    first, second = order["model"].head(2)
    tests = found.significance
    row = tests[tests["model_a"].isin([first, second]) & tests["model_b"].isin([first, second])]
    if order["value"].iloc[0] == order["value"].iloc[1]:
        assert "have the same" in text
    else:
        assert text.count("is significant") == (row["p_holm"].iloc[0] < 0.05)
        assert text.count("shown to be better") == (row["p_holm"].iloc[0] >= 0.05)


def test_what_is_no_common_quantity_is_not_compared() -> None:
    tables = {(m, "perplexity"): values([2.0, 3, 4], "perplexity") for m in ("mlm", "gpt")}
    kinds = {"mlm": "masked", "gpt": "causal"}
    tested = significance(
        {name: by_query(weighted(table)) for name, table in tables.items()},
        *("facts", SCORING.params, 1),
        kinds=kinds,
    )
    found = results(tables, "perplexity", significance=tested)
    assert said(models.section(found, "facts")) == ""


def test_rewiring_is_judged_by_its_test() -> None:
    systems = {
        ("one", "contrastive"): values(hits(7, 20), "acc_at_1"),
        ("one", "contrastive:original"): values(hits(5, 20), "acc_at_1"),
    }
    text = said(sweeps.section(results(systems, "acc_at_1"), "facts"))
    assert text == (
        "Rewiring takes one from 25.0 % to 35.0 % acc@1 under contrastive, a difference that is "
        "not significant (corrected p = 0.5)."
    )


def test_rewiring_that_moves_nothing_is_not_called_a_difference() -> None:
    names = ("contrastive", "contrastive:original")
    found = results({("one", name): values(hits(5, 20), "acc_at_1") for name in names}, "acc_at_1")
    assert said(sweeps.section(found, "facts")) == (
        "Rewiring leaves one at 25.0 % acc@1 under contrastive."
    )


def test_variants_that_rank_fewer_names_are_in_no_sentence() -> None:
    systems = {
        (model, method): values(hits(right, 20), "acc_at_1")
        for model, of_method in (("one", (8, 18)), ("other", (4, 19)))
        for method, right in zip(("x", "x:relation"), of_method, strict=True)
    }
    text = said(models.section(results(systems, "acc_at_1"), "facts"))
    assert text.startswith("The highest acc@1 is one's under x, 40.0 %; other follows")


def test_a_coin_is_chance_for_true_and_false() -> None:
    systems = {(name, "judgment"): values(hits(6, 10), "judged_right") for name in ("a", "b")}
    text = said(models.section(results(systems, "judged_right"), "facts"))
    assert text.endswith("Guessing reaches 50.0 % judged right.")


def test_how_ties_fall_is_told_where_it_matters() -> None:
    table = values(hits(5, 20), "acc_at_1").assign(acc_at_1_tied=hits(6, 20))
    systems = {("one", "x"): table, ("other", "x"): table.assign(acc_at_1_tied=hits(5, 20))}
    text = said(models.section(results(systems, "acc_at_1"), "facts"))
    assert "Names of equal score stand in the order of the alphabet, upper case first." in text
    assert "In random order one would have 30.0 % acc@1 under x, not 25.0 %" in text
    even = {name: table.assign(acc_at_1_tied=hits(5, 20)) for name in systems}
    assert "random order" not in said(models.section(results(even, "acc_at_1"), "facts"))


def test_a_deviation_over_sets_stands_beside_its_paper() -> None:
    sets = pd.concat(
        values(hits(right, 100), "acc_at_1").assign(replicate=name)
        for name, right in (("set-0", 2), ("set-1", 6))
    )
    systems = {("mine", "contrastive"): sets}
    about = {"published": {"mine": "BioBERT"}, "builders": {"facts": "medlama"}}
    found = results(systems, "acc_at_1", **about)
    assert found.comparison["std"].iloc[0] == pytest.approx(np.std([0.02, 0.06], ddof=1), abs=1e-6)
    assert "4.0 ± 2.8 %" in str(published.section(found, "facts"))
    assert "4.0 ± 2.8  [" in str(models.section(found, "facts"))


def understood(target: Mapping[str, float], negative: Mapping[str, float], n: int = 40) -> Results:
    """Models (`copy` is the control's) that understand these shares of triples, a step each."""
    systems = {}
    for model in target:
        tables = []
        for centre, shares in (("target", target), ("negative", negative)):
            rises = np.arange(n) < shares[model] * n
            table = values(rises.astype(float), "understand", centre)
            tables.append(table.assign(confuse=0.0, misunderstand=1.0 - rises))
        asked = ("one", "rank_change:copy") if model == "copy" else (model, "rank_change")
        systems[asked] = pd.concat(tables)
    found = results(systems, "understand")
    tested = significance(
        {name: by_query(weighted(table)) for name, table in systems.items()},
        *("facts", SCORING.params, 1),
        contrasts=[("target", "negative")],
    )
    about = {"facts": replace(context.METADATA, cluster="subject_id")}
    return replace(found, significance=tested, benchmarks=about)


def test_around_a_negative_target_low_is_good() -> None:
    found = understood({"one": 0.5, "two": 0.5}, {"one": 0.1, "two": 0.6})
    text = said(models.section(found, "facts"))
    assert "The lowest Understand, where low is good, is one's under rank_change, 10.0 %" in text
    assert "Under rank_change one and two have the same Understand, 50.0 %." in text
    held = str(models.section(found, "facts"))
    assert (
        "The highest Misunderstand, where high is good, is one's under rank_change, 90.0 %" in held
    )


def test_the_negative_target_tells_a_model_from_copying() -> None:
    found = understood({"one": 0.25, "copy": 0.275}, {"one": 0.05, "copy": 0.55})
    text = said(ucm.section(found, "facts"))
    assert (
        "Understand of one and the copy control: around targets 25.0 % and 27.5 %, not "
        "significant (corrected p = 1); around negative targets (low is good) 5.0 % and 55.0 %,"
        " significant (corrected p < 0.001)." in text
    )
    assert "what tells them apart is the negative target" in text
    assert "Around targets one understands 25.0 %, around negative targets 5.0 %, a" in text
    even = understood({"one": 0.25, "copy": 0.275}, {"one": 0.25, "copy": 0.3})
    text = said(ucm.section(even, "facts"))
    assert "what tells them apart" not in text
    assert "is not significant" in text and "is significant" not in text


def test_of_four_models_no_rankings_are_compared() -> None:
    def ranks(models: str) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {"name": name, "kind": kind, "domain": "general", "model": model, "rank": place}
                for name, kind in (("A", "template-based"), ("B", "template-free"))
                for place, model in enumerate(models, start=1)
            ]
        )

    assert scores.displacement(ranks("vwxy")).empty
    (row,) = scores.displacement(ranks("vwxyz")).to_dict("records")
    assert (row["models"], row["tau"]) == (5, pytest.approx(1))
    few = Results(pd.DataFrame(columns=COMPARISON), template_free={"rankings": ranks("vwxy")})
    assert template_free.chapter(few) == []


def test_favourites_are_set_against_chance() -> None:
    shares = pd.DataFrame(
        {"name": "SQuAD", "kind": "template-free", "model": ["a", "b"], "entities": 20}
    ).assign(distinct_at_1=0.5, distinct_at_5=0.6, distinct_at_10=0.7)
    shares = shares.assign(favourite_share=[0.5, 0.7], chance=0.5, times_chance=[1.0, 1.4])
    often = pd.DataFrame(
        [("SQuAD", "template-free", "a", place, "x", 0.5) for place in (1, 2)],
        columns=["name", "kind", "model", "place", "entity", "share"],
    )
    tables = {"overconfidence": shares, "frequent": often}
    found = Results(pd.DataFrame(columns=COMPARISON), template_free=tables)
    chapters: list[Chapter] = template_free.chapter(found)
    assert (
        "a model's favourite entity is in its ten best answers to 60.0 % of the queries, 1.2 times "
        "as often as in ten names at random (50.0 %)." in said(chapters[0].parts)
    )
