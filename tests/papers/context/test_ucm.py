"""Rank change and UCM: a worked example, what always holds, and the scores of made-up models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Scoring
from medprobe.papers.context.metrics.ucm import SCORER
from medprobe.papers.context.rank_changes import (
    SHARES,
    by_triple,
    change_table,
    over_resources,
    rank_changes,
    shares,
)

# One context around the target T: the entities that its steps add, and all ranks after each step.
ADDED = ["", "T", "wrong", "right", "right", "also right"]
ROLES = ["", "target", "incorrect", "correct", "correct", "correct"]
RANKS = {
    "T": [9, 2, 4, 3, 3, 5],
    "wrong": [8, 8, 1, 2, 2, 2],
    "right": [7, 7, 6, 1, 1, 1],
    "also right": [6, 5, 5, 5, 4, 2],
}


def example() -> tuple[pd.DataFrame, pd.DataFrame]:
    queries = pd.DataFrame(
        {
            "query_id": [f"x/{step}" for step in range(len(ADDED))],
            "context_id": "x",
            "step": range(len(ADDED)),
            "added": ADDED,
            "added_role": ROLES,
            "target": "T",
            "relation": "has",
            "subject_id": "S",
            "cluster": "S",
            "fact_id": "T",
            "resource": "notes",
            "kind": "real",
            "draw": 0,
        }
    )
    predictions = pd.DataFrame(
        [
            {"query_id": f"x/{step}", "prediction": name, "rank": rank, "hit": name != "wrong"}
            for name, all_ranks in RANKS.items()
            for step, rank in enumerate(all_ranks)
        ]
    )
    return queries, predictions


def test_the_four_series_of_the_example() -> None:
    changes = rank_changes(*example()).set_index("step")
    assert changes["rc_target"].tolist() == [-7, 2, -1, 0, 2]
    assert changes["rc_added"].tolist() == [-7, -7, -5, 0, -2]
    # of those that the context held before, the target apart
    assert changes["rc_incorrect"].tolist()[2:] == [1, 0, 0]
    assert changes["rc_incorrect"].isna().tolist()[:2] == [True, True]
    assert changes["rc_correct"].tolist()[3:] == [0, 0]
    assert changes["rc_correct"].isna().tolist()[:3] == [True] * 3


def test_the_order_of_the_tables_does_not_matter() -> None:
    queries, predictions = example()
    mixed = rank_changes(queries, predictions.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(mixed, rank_changes(queries, predictions))


def test_the_shares_of_the_example() -> None:
    table = shares(rank_changes(*example()))
    micro = table[table["relation"] == "micro"].set_index("metric")
    assert micro["value"].tolist() == [1 / 3, 1 / 3, 1 / 3]
    assert (micro["n"] == 1).all()


def test_the_means_of_the_example() -> None:
    table = change_table(rank_changes(*example()))
    assert table.loc["correct"].round(3).tolist() == [0.333, -2.333, 0, 0.333]
    assert table.loc["incorrect", "rc_target"] == 2


def steps(rows: list[tuple[str, str, str, str, float]]) -> pd.DataFrame:
    columns = ["relation", "subject_id", "fact_id", "resource", "rc_target"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(added_role="correct", cluster=table["subject_id"], weight=1.0)


def value(table: pd.DataFrame, relation: str, metric: str) -> float:
    chosen = table[(table["relation"] == relation) & (table["metric"] == metric)]
    return float(chosen["value"].iloc[0])


def test_ucm_k_averages_triples_and_ucm_m_steps() -> None:
    triple_steps = [("a", "S", "O1", "notes", -1.0)] * 3 + [("a", "S", "O1", "notes", 1.0)]
    other = [("a", "S", "O2", "notes", 0.0)]
    table = shares(steps(triple_steps + other + [("b", "S", "O3", "notes", -1.0)]))
    assert value(table, "a", "understand") == (0.75 + 0) / 2
    assert value(table, "macro", "understand") == (0.375 + 1) / 2
    assert value(table, "micro", "understand") == 4 / 6


def test_only_steps_that_add_a_correct_object_count() -> None:
    table = steps([("a", "S", "O", "notes", -1.0)]).assign(added_role="incorrect")
    assert shares(table).empty


rows = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from("ST"),
    st.sampled_from("OPQ"),
    st.sampled_from(["notes", "articles"]),
    st.sampled_from([-3.0, -1.0, 0.0, 2.0]),
)


@given(st.lists(rows, min_size=1, max_size=40))
def test_shares_sum_to_one_and_intervals_hold_them(step_rows: list[Any]) -> None:
    table = shares(steps(step_rows), resamples=50)
    assert set(table["metric"]) == set(SHARES)
    assert np.allclose(table.groupby("relation")["value"].sum(), 1)
    defined = table.dropna()  # of a single subject there is no interval between 0 and 1
    assert len(defined) == len(table) or len({subject for _, subject, *_ in step_rows}) < 3
    assert (defined["low"] <= defined["value"] + 1e-12).all()
    assert (defined["value"] <= defined["high"] + 1e-12).all()
    assert defined[["low", "high"]].stack().between(0, 1).all()


@given(st.lists(rows, min_size=1, max_size=40), st.randoms())
def test_shares_do_not_depend_on_the_order_of_steps(step_rows: list[Any], random: Any) -> None:
    mixed = list(step_rows)
    random.shuffle(mixed)
    in_order, other = (
        shares(steps(drawn_steps), resamples=20) for drawn_steps in (step_rows, mixed)
    )
    pd.testing.assert_frame_equal(in_order, other)


def write_project(folder: Path, correct_first: bool) -> tuple[BenchmarkTables, pd.DataFrame, Path]:
    """Contexts of 30 triples, around target and negative target, and a model's predictions."""
    query_rows, predicted, draw = [], [], np.random.default_rng(1)
    for triple in range(30):
        for centre in ("target", "negative"):
            for step, added in enumerate(["", "c", "x"]):
                query = f"{triple}-{centre}/{step}"
                target = {"target": "t", "negative": "n"}[centre]
                main = centre == "target"
                query_rows.append(
                    {
                        "query_id": query,
                        "benchmark": "context",
                        "relation": "has",
                        "subject": f"S{triple}",
                        "subject_id": f"S{triple}",
                        "prompt": "[Y]",
                        "answers": ["t", "c"],
                        "answer_ids": ["T", "C"],
                        "subset": ["alone", "steps", "full"][step] if main else "steps",
                        "context_id": f"{triple}-{centre}",
                        "fact_id": "T",
                        "resource": "notes",
                        "centre": centre,
                        "kind": "real",
                        "draw": 0,
                        "step": step,
                        "added": added,
                        "added_role": ["", "correct", "incorrect"][step],
                        "target": target,
                        "objects": 2,
                        "frequency": 1 + triple,
                    }
                )
                rises = centre == "target" if correct_first else draw.random() < 0.5
                rank = [50, 40 if rises else 60, 50][step]
                predicted += [
                    {"variant": "", "query_id": query, "prediction": name, "rank": at, "hit": hit}
                    for name, at, hit in [(target, rank, main), ("c", 3, True), ("x", 9, False)]
                ]
    tables = BenchmarkTables(pd.DataFrame(query_rows), pd.DataFrame())
    facts = folder / "facts.csv"
    lines = [f"S{n},has,T,{n % 3}" for n in range(30)]
    facts.write_text("subject_cui,relation,object_cui,times\n" + "\n".join(lines))
    table = pd.DataFrame(predicted).assign(replicate="", score=0.5)
    return tables, table, facts


def test_each_draw_of_random_contexts_has_its_shares_and_the_first_counts(tmp_path: Path) -> None:
    """A real context in which the target rises, and three random ones; it falls in the last."""
    benchmark, predictions, _ = write_project(tmp_path, correct_first=True)
    real = benchmark.queries.query("centre == 'target'")
    real_predictions = predictions[predictions["query_id"].isin(real["query_id"])]
    tables, rows = [real], [real_predictions]
    for draw in range(3):
        names = {column: real[column] + f"-{draw}" for column in ("query_id", "context_id")}
        drawn = real.assign(**names, kind="knowledge-random", draw=draw, subset="steps")
        tables.append(drawn)
        row = real_predictions.assign(query_id=real_predictions["query_id"] + f"-{draw}")
        falls = row["rank"].eq(40) & (draw == 2)
        rows.append(row.assign(rank=row["rank"].mask(falls, 60)))
    scoring = Scoring(ScoreParams(bootstrap=50), 2021, "subject_id")
    benchmark = BenchmarkTables(pd.concat(tables[:2]), pd.DataFrame())
    single = SCORER.score(pd.concat(rows[:2]), benchmark, scoring)["default"]
    assert not any("/draw:" in subset for subset in single)
    benchmark = BenchmarkTables(pd.concat(tables), pd.DataFrame())
    scores = SCORER.score(pd.concat(rows), benchmark, scoring)["default"]
    draws = [scores[f"target/draw:{n}"]["micro"]["understand"]["value"] for n in (1, 2, 3)]
    assert draws == [1, 1, 0]
    assert single == {name: scores[name] for name in scores if "/draw:" not in name}


def test_scores_separate_understanding_from_chance(tmp_path: Path) -> None:
    benchmark, predictions, facts = write_project(tmp_path, correct_first=True)
    scoring = Scoring(ScoreParams(bootstrap=200), 2021, "subject_id", facts)
    scores = SCORER.score(predictions, benchmark, scoring)["default"]
    assert scores["target"]["micro"]["understand"]["value"] == 1
    assert scores["negative"]["micro"]["misunderstand"]["value"] == 1
    assert scores["target"]["has"]["understand"]["n"] == 30
    assert scores["alone"]["micro"]["acc_at_5"]["value"] == 1
    assert scores["alone"]["micro"]["acc_at_1"]["value"] == 0
    assert scores["target/added:correct"]["micro"]["rc_target"]["value"] == -10
    assert {"target/kind:real", "target/resource:notes", "target/objects:2-3"} <= set(scores)
    assert scores["target/read:1"]["micro"]["understand"]["n"] == 10
    json.dumps(scores)
    benchmark, predictions, _ = write_project(tmp_path, correct_first=False)
    scores = SCORER.score(predictions, benchmark, scoring)["default"]
    target, negative = (scores[c]["micro"]["understand"] for c in ("target", "negative"))
    assert target["low"] <= negative["high"] and negative["low"] <= target["high"]


def test_accuracy_is_split_as_ucm_is(tmp_path: Path) -> None:
    """By number of objects, frequency and resource. Of triples 0 to 9 the target is first in the
    prompt alone, behind the context nothing is."""
    benchmark, predictions, _ = write_project(tmp_path, correct_first=True)
    queries = benchmark.queries
    triple = queries["subject_id"].str[1:].astype(int)
    queries["objects"] = 1 + triple // 10  # ten triples each of one, two and three objects
    queries["resource"] = np.where(triple % 2, "notes", "articles")
    benchmark = BenchmarkTables(queries, pd.DataFrame())
    first = queries.loc[(triple < 10) & (queries["subset"] == "alone"), "query_id"]
    is_first = predictions["query_id"].isin(first) & (predictions["prediction"] == "t")
    predictions["rank"] = predictions["rank"].mask(is_first, 1)
    scoring = Scoring(ScoreParams(bootstrap=50), 2021, "subject_id")
    scores = SCORER.score(predictions, benchmark, scoring)["default"]
    by_part = {
        name: numbers["micro"]["acc_at_1"]["value"]
        for name, numbers in scores.items()
        if name.startswith(("alone", "full"))
    }
    assert by_part.pop("alone") == pytest.approx(1 / 3, abs=1e-6)
    assert {name: value for name, value in by_part.items() if value} == {
        "alone/objects:1": 1,
        "alone/resource:articles": pytest.approx(1 / 3, abs=1e-6),
        "alone/resource:notes": pytest.approx(1 / 3, abs=1e-6),
        "alone/frequency:1": 1,
        "alone/frequency:2-3": 1,
        "alone/frequency:4-10": 1,
    }
    assert {name.partition("/")[2] for name in by_part if name != "full"} == {
        name.partition("/")[2]
        for name in scores
        if name.startswith(("target/objects", "target/frequency", "target/resource"))
    }
    for name in ("target/resource:notes", "negative/objects:2-3", "target/kind:real"):
        assert set(scores[name]) == {"macro", "micro"}, "UCM_k and UCM_m"
        shares_of_part = scores[name]["macro"]
        assert sum(shares_of_part[share]["value"] for share in SHARES) == pytest.approx(1)


def test_accuracy_is_the_mean_over_resources() -> None:
    """Two of ten triples are in articles, all in notes, and the first has three contexts there.

    Behind the whole context the model is right about the first triple in one of its three contexts
    in notes, and about both triples in articles: 2/2 in articles and (1/3) / 10 in notes.
    """
    rows: list[dict[str, Any]] = []
    predicted = []
    contexts = [("articles", 0, 0), ("articles", 1, 0)]
    contexts += [("notes", triple, context) for triple in range(10) for context in range(3)]
    contexts = [key for key in contexts if key[0] == "articles" or key[1] == 0 or key[2] == 0]
    for resource, triple, context in contexts:
        for step, subset in enumerate(["alone", "full"]):
            name = f"{resource}-{triple}-{context}"
            is_right = subset == "full" and (resource == "articles" or (triple, context) == (0, 1))
            rank = 1 if is_right else 99
            rows.append({"query_id": f"{name}/{step}", "benchmark": "context", "relation": "has"})
            rows[-1] |= {"subject": "S", "subject_id": f"S{triple}", "prompt": "[Y]"}
            rows[-1] |= {"answers": ["t"], "answer_ids": ["T"], "subset": subset, "fact_id": "T"}
            rows[-1] |= {"context_id": name, "resource": resource, "centre": "target", "draw": 0}
            rows[-1] |= {"kind": "real", "step": step, "added": "c" if step else "", "target": "t"}
            rows[-1] |= {"added_role": "correct" if step else "", "objects": 1, "frequency": 1}
            predicted.append({"query_id": f"{name}/{step}", "prediction": "t", "rank": rank})
    benchmark = BenchmarkTables(pd.DataFrame(rows), pd.DataFrame())
    predictions = pd.DataFrame(predicted).assign(variant="", replicate="", score=0.5, hit=True)
    scoring = Scoring(ScoreParams(bootstrap=50), 2021, "subject_id")
    scores = SCORER.score(predictions, benchmark, scoring)["default"]
    in_notes = pytest.approx(1 / 30, abs=1e-6)
    both = pytest.approx((1 + 1 / 30) / 2, abs=1e-6)
    assert scores["full/resource:articles"]["macro"]["acc_at_1"]["value"] == 1
    assert scores["full/resource:notes"]["macro"]["acc_at_1"]["value"] == in_notes
    for mean in ("has", "macro", "micro"):
        assert scores["full"][mean]["acc_at_1"]["value"] == both
        assert scores["full/objects:1"]["micro"]["acc_at_1"]["value"] == both
    assert scores["full"]["macro"]["acc_at_1"]["n"] == 10, "triples"
    paired = SCORER.paired(predictions, benchmark, scoring).query("subset == 'full'")
    assert np.average(paired["acc_at_1"], weights=paired["weight"]) == both


def test_paired_tests_compare_triples(tmp_path: Path) -> None:
    benchmark, predictions, _ = write_project(tmp_path, correct_first=True)
    table = SCORER.paired(predictions, benchmark, Scoring(ScoreParams(), 1, "subject_id"))
    assert table["cluster"].nunique() == 30
    assert table.groupby("subset")["query_id"].nunique().to_dict() == {
        name: 30 for name in ("alone", "full", "negative", "target")
    }
    assert len(table) == 4 * 30
    of = table.set_index("subset")
    assert (of.loc["target", "understand"] == 1).all()
    assert (of.loc["negative", "misunderstand"] == 1).all()
    assert (of.loc["alone", "acc_at_5"] == 1).all()


@given(st.lists(rows, min_size=1, max_size=40))
def test_what_is_tested_is_the_macro_mean(step_rows: list[Any]) -> None:
    each, whole = by_triple(steps(step_rows)), shares(steps(step_rows), resamples=2)
    for name in SHARES:
        mean = np.average(each[name], weights=each["weight"])
        assert mean == pytest.approx(value(whole, "macro", name))


@given(st.lists(rows, min_size=1, max_size=40))
def test_a_mean_is_that_of_its_resources(step_rows: list[Any]) -> None:
    """Whatever the resources hold: by relation, over relations, and over all triples."""
    triples = by_triple(steps(step_rows)).assign(size=1.0)
    table = over_resources(triples, SHARES, 2, 0.95, 0)
    for name in SHARES:
        of_relation = triples.groupby(["relation", "resource"])[name].mean().groupby("relation")
        assert value(table, "macro", name) == pytest.approx(of_relation.mean().mean())
        for relation, mean in of_relation.mean().items():
            assert value(table, str(relation), name) == pytest.approx(mean)
        by_resource = triples.groupby("resource")[name].mean()
        assert value(table, "micro", name) == pytest.approx(by_resource.mean())


@pytest.mark.parametrize("missing", ["misunderstand", "confuse", "understand"])
def test_a_share_of_nothing_is_none(missing: str) -> None:
    change = {"understand": 1.0, "confuse": -1.0, "misunderstand": 0.0}[missing]
    table = shares(steps([("a", "S", f"O{n}", "notes", change) for n in range(5)]))
    assert value(table, "micro", missing) == 0
