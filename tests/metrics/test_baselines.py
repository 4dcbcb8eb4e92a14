"""What is reached without looking at a subject: the majority, a random answer, and chance."""

import os
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.benchmarks import find
from medprobe.core.benchmark_statistics import has_common_answer, statistics, weak_relations
from medprobe.core.tables import RELATION_ANSWERS, BenchmarkTables
from medprobe.metrics import baselines

RELEASED = Path(os.environ.get("MEDPROBE_RELEASED_DATA", ""), "medlama-released")


def tables(rows: list[tuple[str, list[str]]]) -> BenchmarkTables:
    """Queries of one relation: subjects and their answers."""
    queries = pd.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(len(rows))],
            "subset": "full",
            "relation": "treats",
            "subject": [subject for subject, _ in rows],
            "subject_id": [subject for subject, _ in rows],
            "answers": [answers for _, answers in rows],
            "answer_ids": [answers for _, answers in rows],
        }
    )
    names = sorted({answer for _, answers in rows for answer in answers})
    candidates = pd.DataFrame({"name": names, "id": names, "type": "", "subset": "full"})
    return BenchmarkTables(queries, candidates)


def accuracy(rows: list[tuple[str, list[str]]], k: int) -> float:
    """The share of queries that one of the first k of the majority baseline answers."""
    table = baselines.majority(tables(rows), k)
    hits = set(table.loc[table["hit"] & (table["rank"] <= k), "query_id"])
    return len(hits) / len(rows)


def test_the_next_answer_is_right_for_the_most_queries_that_have_none() -> None:
    """Two frequent answers share their queries, so the second on the list is a rarer one."""
    both, rows = ["pain", "fever"], []
    rows += [(f"a{number}", both) for number in range(4)]
    rows += [("b", ["fever"]), ("c", ["gout"]), ("d", ["gout"])]
    table = baselines.majority(tables(rows), 2)
    of_query = table[table["query_id"] == "q0"]
    assert of_query[["prediction", "score"]].values.tolist() == [["fever", 5 / 7], ["gout", 2 / 7]]
    assert accuracy(rows, 2) == 1


ANSWERS = st.lists(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=2, max_size=12
).filter(lambda rows: len({*map(tuple, rows)}) > 1 and len({x for row in rows for x in row}) > 1)


@given(ANSWERS)
def test_no_constant_answer_exceeds_the_majority(answers: list[list[str]]) -> None:
    """At 1 it is the best constant; at 3 it has 19/27 of what the best three have, or more, as an
    answer that is chosen after another always does (Nemhauser et al., 1978)."""
    rows = [(f"subject {number}", row) for number, row in enumerate(answers)]
    names = {name for row in answers for name in row}

    def best(count: int) -> float:
        chosen = combinations(names, min(count, len(names)))
        return max(np.mean([not {*row}.isdisjoint(some) for row in answers]) for some in chosen)

    assert accuracy(rows, 1) == pytest.approx(best(1))
    assert best(3) + 1e-9 >= accuracy(rows, 3) >= 19 / 27 * best(3) - 1e-9


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=3, max_size=8)
)
def test_a_random_answer_is_a_guess_among_the_answers_of_the_relation(
    answers: list[list[str]],
) -> None:
    """Against all orders of the answers."""
    names = sorted({answer for row in answers for answer in row})
    rows = [(f"subject {number}", row) for number, row in enumerate(answers)]
    table = baselines.random_answer(tables(rows))
    if len(names) == 1:
        assert table.empty
        return
    values = table.set_index(["query_id", "prediction"])["score"]
    orders = [*permutations(names)]
    for number, row in enumerate(answers):
        for k in (1, 5):
            hits = sum(any(name in row for name in order[:k]) for order in orders)
            assert values[f"q{number}", f"acc_at_{k}"] == pytest.approx(hits / len(orders))


def test_the_answers_of_a_drawn_benchmark_are_those_of_its_source() -> None:
    """So the guess is as good on ten queries as on all."""
    benchmark = tables([("a", ["pain"]), ("b", ["fever"])])
    source = pd.DataFrame({"relation": "treats", "name": ["pain", "fever", "gout", "cough"]})
    drawn = BenchmarkTables(
        benchmark.queries, benchmark.candidates, others={RELATION_ANSWERS: source}
    )
    values = baselines.random_answer(drawn).set_index(["query_id", "prediction"])["score"]
    assert values["q0", "acc_at_1"] == 1 / 4


def test_a_benchmark_of_single_answers_has_no_majority() -> None:
    assert baselines.majority(tables([("a", ["pain"]), ("b", ["pain"])]), 10).empty


@pytest.mark.skipif(not RELEASED.is_dir(), reason="MEDPROBE_RELEASED_DATA names no such folder")
def test_the_majority_and_a_random_answer_of_released_medlama(tmp_path: Path) -> None:
    (tmp_path / "medlama").mkdir()
    for path in [*RELEASED.glob("2021AA/*.csv"), RELEASED / "prompts.csv"]:
        (tmp_path / "medlama" / path.name).symlink_to(path.resolve())
    builder = find("medlama_released")
    benchmark = builder.build(tmp_path, builder.settings(), 2021)
    queries = benchmark.queries[benchmark.queries["subset"] == "full"]

    table = baselines.majority(benchmark, 10)

    def accuracy(k: int) -> float:
        hits = set(table.loc[(table["rank"] <= k) & table["hit"], "query_id"])
        right = queries["query_id"].isin(hits)
        return 100 * float(right.groupby(queries["relation"]).mean().mean())

    assert accuracy(k=1) == pytest.approx(25.77, abs=0.005)
    assert accuracy(k=10) == pytest.approx(62.02, abs=0.005)
    in_relation = queries["relation"] == "may_treat"  # two answers are commonest, 44 times each
    hits = set(table.loc[(table["rank"] == 1) & table["hit"], "query_id"])
    assert queries.loc[in_relation, "query_id"].isin(hits).mean() == pytest.approx(0.044)
    guess = baselines.random_answer(benchmark)
    guess = guess[guess["prediction"] == "acc_at_1"].set_index("query_id")["score"]
    by_relation = queries["query_id"].map(guess).groupby(queries["relation"]).mean()
    assert by_relation["gene_encodes_gene_product"] == pytest.approx(0.001, abs=1e-4)

    uncommon = queries.loc[~has_common_answer(queries), "query_id"]
    counts = statistics(benchmark).set_index(["subset", "relation"])
    assert len(uncommon) == counts.loc[("full", "all"), "uncommon"] == 8287
    assert not table.loc[table["query_id"].isin(uncommon) & (table["rank"] == 1), "hit"].any()
    assert weak_relations(counts.reset_index(), "full") == [
        "disease_has_abnormal_cell",
        "disease_has_normal_cell_origin",
        "disease_has_normal_tissue_origin",
    ]
