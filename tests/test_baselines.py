"""The prior: a relation's commonest answers, each subject's own left out."""

import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe import baselines
from medprobe.benchmark_statistics import statistics, weak_relations
from medprobe.benchmarks import find
from medprobe.core.commonest import has_common_answer
from medprobe.core.tables import BenchmarkTables

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


def test_a_subject_does_not_count_for_itself() -> None:
    """Two of three queries have `pain`: the one subject sees it once, and `fever` once."""
    rows = [("a", ["pain"]), ("b", ["pain"]), ("c", ["fever"])]
    assert first_predictions(rows) == [("pain", True), ("pain", True), ("pain", False)]
    rows = [("a", ["pain"]), ("b", ["fever"]), ("c", ["fever"])]
    assert first_predictions(rows)[0] == ("fever", False)
    assert first_predictions([("a", ["pain"]), ("a", ["pain"]), ("b", ["fever"])]) == [
        ("fever", False),
        ("fever", False),
        ("pain", False),
    ]


def test_scores_are_shares_of_the_other_queries() -> None:
    rows = [("a", ["pain"]), ("b", ["pain", "fever"]), ("c", ["fever"])]
    table = baselines.prior(tables(rows), "subject_id", 10)
    own_rows = table[table["query_id"] == "q0"]
    assert own_rows["prediction"].tolist() == ["fever", "pain"]
    assert own_rows["score"].tolist() == [1.0, 0.5]


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


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=3)
        ),
        min_size=2,
        max_size=14,
    ).filter(lambda rows: len({answer for _, answers in rows for answer in answers}) > 1)
)
def test_the_prior_is_the_count_over_all_other_subjects(
    rows: list[tuple[str, list[str]]],
) -> None:
    """Against counting anew for each query."""
    table = baselines.prior(tables(rows), "subject_id", 3)
    for number, (subject, _) in enumerate(rows):
        others = [set(answers) for other, answers in rows if other != subject]
        counts = {
            answer: sum(answer in own_answers for own_answers in others) for answer in "vwxyz"
        }
        expected = sorted((count for count in counts.values() if count), reverse=True)[:3]
        ranked = table[table["query_id"] == f"q{number}"]["prediction"].tolist()
        assert [counts[answer] for answer in ranked[:3]] == expected


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

    assert accuracy(k=1) == pytest.approx(25.51, abs=0.005)
    assert accuracy(k=10) == pytest.approx(55.83, abs=0.005)

    uncommon = queries.loc[~has_common_answer(queries), "query_id"]
    counts = statistics(benchmark).set_index(["subset", "relation"])
    assert len(uncommon) == counts.loc[("full", "all"), "uncommon"] == 8287
    ranked = baselines.prior(benchmark, "subject_id", 10)
    assert not ranked.loc[ranked["query_id"].isin(uncommon) & (ranked["rank"] <= 10), "hit"].any()
    assert weak_relations(counts.reset_index(), "full") == [
        "disease_has_abnormal_cell",
        "disease_has_normal_cell_origin",
        "disease_has_normal_tissue_origin",
    ]
