"""What bench.significance measures, in small."""

from functools import partial

import numpy as np
import pytest

from bench import significance
from bench.habits import HABITS, gradually
from bench.significance import ignorant, knowing
from bench.worlds import IGNORANT, MakeWorld, Structure, like_medlama, made
from helpers import nightly

SMALL = partial(made, 3, 40, 12, 1.0)


@pytest.fixture(scope="module")
def structure() -> Structure:
    """Six relations like those of MedLAMA."""
    whole = like_medlama(np.random.default_rng(0))
    return Structure(*(codes[whole.relation < 6] for codes in whole))


@pytest.mark.parametrize(
    "make", [SMALL, *nightly(partial(SMALL, of_subject=4), partial(SMALL, named=True))]
)
def test_no_ignorant_model_is_often_above_its_shuffled_answers(
    make: MakeWorld,
) -> None:
    for row in ignorant("small", make, 30):
        assert max(row[model] for model in IGNORANT) <= 0.17  # 5 of 30


def test_the_more_facts_are_known_the_more_often_it_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(significance, "KNOWN", (0.0, 0.6))
    row = knowing("small", SMALL, 10, "one order")
    assert (row["0% known"], row["60% known"]) == (0, 1)


def test_intervals_over_clusters_hold_more_often_where_skill_goes_by_names(
    structure: Structure,
) -> None:
    habit = gradually(cluster=0.8)
    row = significance.coverage(structure, "cluster", habit, 0.25, 40)
    assert row["macro, subjects drawn"] < row["clusters drawn"]
    assert row["clusters drawn"] > 0.85
    assert row["difference"] > 0.8
    assert row["false alarms"] < 0.2


def test_a_habit_has_the_accuracy_that_it_says(structure: Structure) -> None:
    draw = np.random.default_rng(0)
    for _, habit, (accuracy, *_) in HABITS:
        hits, chance = habit(structure, accuracy, 200, draw)
        by_answer = np.abs(hits.mean(axis=1) - chance)
        assert by_answer.mean() < 0.03
        assert hits.mean() == pytest.approx(accuracy, abs=0.03)
