"""Clusters of names: subjects whose names end alike."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.metrics.clusters import name_clusters

WORDS = ["carcinoma", "Carcinoma", "lung", "gene", "Gene,", "acute", "2"]
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def table(names: list[str], relations: list[str], clusters: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"subject": names, "relation": relations, "key": clusters})


@given(st.lists(st.tuples(NAMES, st.sampled_from("rs"), st.sampled_from("abcdef")), min_size=1))
def test_a_subject_is_in_one_cluster_and_a_cluster_is_a_word_of_its_name(
    rows: list[tuple[str, str, str]],
) -> None:
    queries = table(*map(list, zip(*rows, strict=True)))  # type: ignore[arg-type]
    queries.index = queries.index[::-1] + 7
    clusters = name_clusters(queries)
    assert clusters.index.equals(queries.index)
    first = queries.sort_values("subject").drop_duplicates("key").set_index("key")["subject"]
    for key, labels in clusters.groupby(queries["key"]):
        assert labels.nunique() == 1
        words = first[key].casefold().replace(",", "").split()
        assert labels.iloc[0] in [*words, key]


@pytest.mark.parametrize(
    ("others", "cluster"),
    [(["Aspirin"] * 3, "gene"), (["XR1 Gene", "Aspirin"], "gb2"), (["One gene"] * 3, "gb2")],
    ids=["few share the last word", "most share it", "each other one does"],
)
def test_a_last_word_that_most_share_tells_nothing(others: list[str], cluster: str) -> None:
    names = ["GB2 gene", *others]
    clusters = [str(number) for number in range(len(names))]
    assert name_clusters(table(names, ["r"] * len(names), clusters))[0] == cluster


def test_a_subject_keeps_its_cluster_in_relations_where_its_last_word_is_rare() -> None:
    names = ["A gene", "B gene", "A gene", "gout", "C gene", "flu", "pain"]
    queries = table(names, ["r"] * 2 + ["s"] * 5, [*"aba", "gout", "c", "flu", "pain"])
    assert name_clusters(queries).tolist() == ["a", "b", "a", "gout", "gene", "flu", "pain"]


def test_subjects_of_one_name_are_clusters_of_their_own() -> None:
    queries = table(["Squad"] * 4, ["r"] * 4, [*"abca"])
    assert name_clusters(queries).tolist() == [*"abca"]


def test_without_names_each_subject_is_a_cluster() -> None:
    queries = table(["", "", "-", ""], ["r"] * 4, [*"abca"])
    assert name_clusters(queries).tolist() == [*"abca"]
