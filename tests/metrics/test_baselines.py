"""What is reached without looking at a subject: the prior, any answer, and chance."""

import os
import random
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.benchmarks import find
from medprobe.core import baselines
from medprobe.core.benchmark_statistics import statistics, weak_relations
from medprobe.core.commonest import has_common_answer
from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics.significance import significance, strongest_baselines

HALF, OTHER = (
    [name for name, half in sorted(baselines.halves("abcd").items()) if half == side]
    for side in (0, 1)
)
RELEASED = Path(os.environ.get("MEDPROBE_RELEASED_DATA", ""), "medlama-released")


def tables(
    rows: list[tuple[str, list[str]]], train: list[tuple[str, list[str]]] | None = None
) -> BenchmarkTables:
    """Queries of one relation: subjects and their answers."""

    def table(rows: list[tuple[str, list[str]]]) -> pd.DataFrame:
        return pd.DataFrame(
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
    others = {"train": table(train)} if train else {}
    return BenchmarkTables(table(rows), candidates, others=others)


def first_predictions(rows: list[tuple[str, list[str]]]) -> list[tuple[str, bool]]:
    """The first prediction for each query, and whether it is right."""
    table = baselines.prior(tables(rows), "subject_id", 10)
    best = table[table["rank"] == 1]
    return [*best[["prediction", "hit"]].itertuples(index=False, name=None)]


def test_answers_are_counted_in_the_other_half_of_the_subjects() -> None:
    assert baselines.halves("dcba") == baselines.halves("abcda")  # whatever the order
    assert (len(HALF), len(OTHER)) == (2, 2)
    rows = [(HALF[0], ["pain"]), (HALF[1], ["pain"]), (OTHER[0], ["fever"]), (OTHER[1], ["pain"])]
    assert first_predictions([*rows, (OTHER[1], ["fever"])]) == [
        ("fever", False),
        ("fever", False),
        ("pain", False),
        ("pain", True),
        ("pain", False),
    ]


def test_scores_are_shares_of_the_counted_queries() -> None:
    rows = [
        (HALF[0], ["pain"]),
        (OTHER[0], ["pain", "fever"]),
        (OTHER[1], ["fever"]),
        (OTHER[1], ["gout"]),
    ]
    table = baselines.prior(tables(rows), "subject_id", 10)
    own_rows = table[table["query_id"] == "q0"]
    assert own_rows["prediction"].tolist() == ["fever", "pain", "gout"]
    assert own_rows["score"].tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3])


def test_leaving_the_own_answer_out_does_not_make_evenly_frequent_answers_hopeless() -> None:
    """Two answers, each of every second subject: a guess is right in half of the queries."""
    draw = random.Random(0)
    shares = []
    for _ in range(60):
        answers = ["pain", "fever"] * 20
        draw.shuffle(answers)
        rows = [(f"s{number}", [answer]) for number, answer in enumerate(answers)]
        shares.append(sum(hit for _, hit in first_predictions(rows)) / len(rows))
    assert 0.4 < sum(shares) / len(shares) < 0.5


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=3, max_size=8)
)
def test_any_answer_is_a_guess_among_the_answers_of_the_relation(answers: list[list[str]]) -> None:
    """Against all orders of the answers."""
    names = sorted({answer for row in answers for answer in row})
    rows = [(f"subject {number}", row) for number, row in enumerate(answers)]
    table = baselines.any_answer(tables(rows), "subject_id")
    if len(names) == 1:
        assert table.empty
        return
    values = table.set_index(["query_id", "prediction"])["score"]
    orders = [*permutations(names)]
    for number, row in enumerate(answers):
        for k in (1, 5):
            hits = sum(any(name in row for name in order[:k]) for order in orders)
            assert values[f"q{number}", f"acc_at_{k}"] == pytest.approx(hits / len(orders))


def test_a_guess_that_leaves_the_subject_out_has_one_name_fewer() -> None:
    """`pain` is a candidate and the subject of the first query."""
    rows = [("pain", ["fever"]), ("b", ["pain"]), ("c", ["gout"]), ("d", ["cough"])]
    benchmark = tables(rows)
    for table in (
        baselines.chance(benchmark, "subject_id"),
        baselines.any_answer(benchmark, "subject_id"),
    ):
        values = table.set_index(["query_id", "prediction"])["score"]
        assert values["q0", "acc_at_1"] == 1 / 4
        assert values["q0", "acc_at_1_without_subject"] == pytest.approx(1 / 3)
        assert values["q1", "acc_at_1_without_subject"] == 1 / 4


def test_a_train_split_has_a_variant_of_its_own() -> None:
    table = baselines.prior(
        tables([("a", ["pain"]), ("b", ["fever"])], train=[("x", ["gout"]), ("y", ["gout"])]),
        "subject_id",
        10,
    )
    train = table[table["variant"] == "train"]
    assert train["prediction"].tolist() == ["gout", "gout"]


def test_a_benchmark_of_single_answers_has_no_prior() -> None:
    assert baselines.prior(tables([("a", ["pain"]), ("b", ["pain"])]), "subject_id", 10).empty


def test_the_strongest_of_all_baselines_and_controls_decides() -> None:
    """The model is far above the prior and chance, and a little below its control."""
    queries = [f"q{number}" for number in range(40)]
    index = pd.MultiIndex.from_product([["full"], queries], names=["subset", "query_id"])
    about = pd.DataFrame({"cluster": queries, "answer": queries, "weight": 1.0}, index)
    right = {
        ("m", "x"): 20,
        ("m", "x:neutral"): 21,
        ("m", "x:original"): 2,  # another variant, and no control
        ("baseline", "prior"): 0,
        ("baseline", "chance"): 1,
    }
    systems = {
        system: about.assign(acc_at_1=[float(number < count) for number in range(40)])
        for system, count in right.items()
    }
    tests = significance(systems, "b", ScoreParams(bootstrap=20), 0)
    strongest = strongest_baselines(tests).set_index("method")
    assert strongest.loc["x", "baseline"] == "x:neutral"
    assert strongest.loc["x", "difference"] == pytest.approx(-1 / 40)
    assert strongest.loc["x", "p"] > 0.05
    del systems["m", "x:neutral"]
    row = strongest_baselines(significance(systems, "b", ScoreParams(bootstrap=20), 0))
    row = row.set_index("method").loc["x"]
    assert (row["baseline"], row["difference"]) == ("chance", pytest.approx(19 / 40))
    assert row["p"] < 0.001
    assert [*strongest_baselines(tests.head(0))["p"]] == []


LETTERS = "abcdefghijklmnopqrstuvwxyz"


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ABCDEF"), st.sets(st.sampled_from(LETTERS), min_size=1, max_size=12)
        ),
        min_size=2,
        max_size=14,
    ).filter(lambda rows: len({answer for _, answers in rows for answer in answers}) > 1)
)
def test_the_prior_is_the_count_over_the_other_half(rows: list[tuple[str, set[str]]]) -> None:
    """Against counting for each query, with more answers than are ranked."""
    table = baselines.prior(
        tables([(subject, [*answers]) for subject, answers in rows]), "subject_id", 3
    )
    half = baselines.halves(subject for subject, _ in rows)
    for number, (subject, _) in enumerate(rows):
        others = [answers for other, answers in rows if half[other] != half[subject]]
        counts = {answer: sum(answer in answers for answers in others) for answer in LETTERS}
        expected = sorted((count for count in counts.values() if count), reverse=True)
        ranked = table[table["query_id"] == f"q{number}"]["prediction"].tolist()
        assert [counts[answer] for answer in ranked[:3]] == expected[:3]
        tied = sum(count == expected[2] for count in expected[3:8]) if len(expected) > 3 else 0
        assert len(ranked) == len(expected[:3]) + tied


@pytest.mark.skipif(not RELEASED.is_dir(), reason="MEDPROBE_RELEASED_DATA names no such folder")
def test_on_released_medlama_the_commonest_answers_beat_every_published_model(
    tmp_path: Path,
) -> None:
    (tmp_path / "medlama").mkdir()
    for path in [*RELEASED.glob("2021AA/*.csv"), RELEASED / "prompts.csv"]:
        (tmp_path / "medlama" / path.name).symlink_to(path.resolve())
    builder = find("medlama_released")
    benchmark = builder.build(tmp_path, builder.settings(), 2021)
    queries = benchmark.queries[benchmark.queries["subset"] == "full"]

    table = baselines.prior(benchmark, "subject_id", 10)

    def accuracy(k: int) -> float:
        hits = set(table.loc[(table["rank"] <= k) & table["hit"], "query_id"])
        right = queries["query_id"].isin(hits)
        return 100 * float(right.groupby(queries["relation"]).mean().mean())

    assert accuracy(k=1) == pytest.approx(25.6, abs=0.05)
    assert accuracy(k=10) == pytest.approx(55.3, abs=0.05)
    in_relation = queries["relation"] == "may_treat"  # two answers are commonest, 44 times each
    hits = set(table.loc[(table["rank"] == 1) & table["hit"], "query_id"])
    assert queries.loc[in_relation, "query_id"].isin(hits).mean() == pytest.approx(0.044)
    guess = baselines.any_answer(benchmark, "subject_id")
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
