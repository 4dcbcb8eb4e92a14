"""Answers given to other subjects: name families, and what the permutation test promises."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.shuffling import draw_other, name_families, permutation_p, shuffled_means

WORLDS = 120


def families(*names: str, clusters: str | None = None) -> list[str]:
    table = pd.DataFrame({"relation": "r", "subject": names})
    return name_families(table.assign(cluster=[*(clusters or names)])).tolist()


def test_a_word_in_which_most_subjects_end_tells_nothing() -> None:
    assert families("BRX2 Gene", "Kal1 gene", "TP9 Gene", "velotrine") == [
        *("brx2 gene", "kal1 gene", "tp9 gene", "velotrine"),
    ]
    assert families("big red gene", "red gene", "gene", "gout") == [
        *("red gene", "red gene", "gene", "gout"),
    ]


def test_all_names_of_a_subject_are_of_one_family() -> None:
    found = families("Lung carcinoma", "Pulmonary cancer", "Skin cancer", clusters="aab")
    assert found[0] == found[1]


def test_names_without_words_are_families_of_their_own() -> None:
    assert families("", "+", clusters="ab") == ["a", "b"]


CODES = st.lists(st.integers(0, 3), min_size=2, max_size=7).map(
    lambda codes: np.unique(codes, return_inverse=True)[1]
)


@given(CODES, st.integers(0, 999))
def test_shuffled_means_are_those_of_a_loop(codes: np.ndarray, seed: int) -> None:
    hits = np.random.default_rng(seed).random((len(codes), len(codes)))
    means = shuffled_means(hits, codes)
    for query, own in enumerate(codes):
        others = [hits[query, codes == family].mean() for family in {*codes.tolist()} - {own}]
        assert means[query] == pytest.approx(np.mean(others) if others else np.nan, nan_ok=True)


@given(CODES, st.integers(0, 999))
def test_another_query_is_of_another_family_and_each_family_gives_once(codes, seed) -> None:
    donors = draw_other(codes, seed)
    if len({*codes.tolist()}) == 1:
        assert (donors == -1).all()
        return
    givers = {(own, codes[donor]) for own, donor in zip(codes, donors, strict=True)}
    assert all(own != giver for own, giver in givers)
    assert sorted(own for own, _ in givers) == sorted(giver for _, giver in givers)


def test_p_is_that_of_all_permutations() -> None:
    """Four families of one query: all 24 orders, listed."""
    hits = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 0]], float)
    orders = [*permutations(range(4))]
    totals = np.array([hits[range(4), order].mean() for order in orders])
    observed = hits.diagonal().mean()
    exact = 2 * min((totals >= observed).mean(), (totals <= observed).mean())
    found = permutation_p([hits], [np.arange(4)], permutations=20_000, seed=1)
    assert found[0] == observed
    assert found[2] == pytest.approx(min(1, exact), abs=0.02)


def share_above(answer_lists, truth, codes, seed: int) -> float:
    """The share of worlds in which a model is significantly above shuffled."""
    above = []
    for world in range(WORLDS):
        draw = np.random.default_rng([seed, world])
        right, given_answers = truth(draw), answer_lists(draw)
        hits = (right[:, None] == given_answers[None, :]).astype(float)
        accuracy, shuffled, p = permutation_p([hits], [codes], permutations=199, seed=world)
        above.append(p < 0.05 and accuracy > shuffled)
    return float(np.mean(above))


def test_a_model_that_knows_only_how_usual_answers_are_is_not_above() -> None:
    """Answers are skewed, and those of a name family are often the same."""
    codes, usual = np.repeat(np.arange(30), 3), np.array([0.4, 0.3, 0.2, 0.1])

    def by_family(draw):
        return np.repeat(draw.choice(4, 30, p=usual), 3)

    models = {
        "constant": lambda draw: np.zeros(90, int),
        "by frequency": lambda draw: draw.choice(4, 90, p=usual),
        "an answer per family": by_family,
    }
    for name, model in models.items():
        assert share_above(model, by_family, codes, 1) <= 0.06, name


def test_a_model_that_knows_some_facts_is_above() -> None:
    codes, truth = np.arange(200), np.random.default_rng(3).choice(20, 200)

    def knows_a_tenth(draw):
        return np.where(draw.random(200) < 0.15, truth, draw.choice(20, 200))

    assert share_above(knows_a_tenth, lambda draw: truth, codes, 2) > 0.8
