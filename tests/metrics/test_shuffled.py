"""Accuracy with answers to other subjects, from the predictions alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.library.probing import compare_variants, score
from medprobe.metrics import Scoring

NAMES = ("pain", "Fever", "gout", "a cough")
SCORING = Scoring(ScoreParams(bootstrap=20), 3, "subject_id")


def benchmark(answers: list[list[str]], subjects: list[str] | None = None) -> BenchmarkTables:
    subjects = subjects or [f"drug{number}" for number in range(len(answers))]
    queries = pd.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(len(answers))],
            "benchmark": "toy",
            "relation": ["r", "s"] * (len(answers) // 2) + ["r"] * (len(answers) % 2),
            "subject": subjects,
            "subject_id": subjects,
            "prompt": [f"{subject} treats [Y] ." for subject in subjects],
            "answers": answers,
            "answer_ids": answers,
            "subset": "full",
        }
    )
    candidates = pd.DataFrame({"name": NAMES, "id": NAMES, "type": "", "subset": "full"})
    return BenchmarkTables(queries, candidates)


def predictions(lists: list[list[str]], answers: list[list[str]], replicate: str = ""):
    rows = [
        ("", replicate, f"q{query}", rank, name, name, -float(rank), name in answers[query])
        for query, names in enumerate(lists)
        for rank, name in enumerate(names, start=1)
    ]
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "prediction_id", "score"]
    return pd.DataFrame(rows, columns=[*columns, "hit"])


def compare(lists: list[list[str]], answers: list[list[str]]) -> pd.DataFrame:
    return compare_variants(
        predictions(lists, answers), benchmark(answers), "accuracy", SCORING, ("m", "asked")
    )


RUNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
        st.permutations(NAMES),
    ),
    min_size=4,
    max_size=9,
)


@given(RUNS, st.integers(1, 4))
def test_each_list_is_scored_with_the_answers_to_all_other_subjects(runs, length) -> None:
    """Against a loop over pairs of queries."""
    answers, lists = [run[0] for run in runs], [run[1][:length] for run in runs]
    tables = benchmark(answers)
    scores = score(predictions(lists, answers), tables, "accuracy", SCORING)
    for k in (1, 5, 10):
        means = []
        for relation in ("r", "s"):
            of = [n for n, name in enumerate(tables.queries["relation"]) if name == relation]
            pairs = [(query, other) for query in of for other in of if query != other]
            hits = [any(name in answers[q] for name in lists[d][:k]) for q, d in pairs]
            means.append(np.mean(hits))
            found = scores["shuffled"]["full"][relation][f"acc_at_{k}"]["value"]
            assert found == pytest.approx(means[-1], abs=1e-6)
        found = scores["shuffled"]["full"]["macro"][f"acc_at_{k}"]["value"]
        assert found == pytest.approx(np.mean(means), abs=1e-6)


def test_a_constant_list_scores_the_same_shuffled() -> None:
    answers = [["pain"], ["Fever"], ["pain"], ["pain"], ["gout"], ["Fever"]] * 3
    found = compare([["pain", "gout"]] * 18, answers)
    row = found[found["metric"] == "acc_at_1"].iloc[0]
    assert (row["difference"], row["p"]) == (pytest.approx(0, abs=0.03), 1)


def test_a_model_that_knows_its_subjects_is_above_and_the_test_says_so() -> None:
    answers = [[NAMES[number % 3]] for number in range(36)]
    found = compare_variants(
        predictions(answers, answers), benchmark(answers), "accuracy", SCORING, ("m", "asked")
    )
    [row] = found[found["metric"] == "acc_at_1"].to_dict("records")
    assert {row["method_a"], row["method_b"]} == {"asked", "asked:shuffled"}
    assert abs(row["difference"]) > 0.5
    assert row["p_holm"] == pytest.approx(2 / 2000)


def test_other_answers_count_as_the_methods_own_do() -> None:
    """A method that ignores case and articles is shuffled by the same rule."""
    answers = [["pain"], ["Fever"], ["a cough"], ["pain"]] * 2
    lists = [["Pain"], ["fever"], ["cough"], ["Pain"]] * 2
    table = predictions(lists, answers).assign(hit=True)
    shuffled = score(table, benchmark(answers), "accuracy", SCORING)["shuffled"]["full"]
    # relation r: pain, cough twice each; s: fever, pain twice each; of three others one fits
    assert shuffled["macro"]["acc_at_1"]["value"] == pytest.approx(1 / 3, abs=1e-6)


def test_the_control_has_no_number_of_the_models_own_answers() -> None:
    answers = [["pain"], ["Fever"], ["gout"], ["pain"]] * 3
    numbers = score(predictions(answers, answers), benchmark(answers), "accuracy", SCORING)
    accuracies = {"acc_at_1", "acc_at_5", "acc_at_10"}
    assert (
        {*numbers["shuffled"]["full"]["macro"]}
        == accuracies
        < {*numbers["default"]["full"]["macro"]}
    )
    assert {*compare(answers, answers)["metric"]} == accuracies


def test_replicates_are_averaged() -> None:
    answers = [["pain"], ["pain"], ["gout"], ["gout"]] * 2
    right, wrong = answers, [["a cough"]] * 8
    both = pd.concat([predictions(right, answers, "0"), predictions(wrong, answers, "1")])
    one = predictions(right, answers)
    halves, whole = (
        score(table, benchmark(answers), "accuracy", SCORING)["shuffled"]["full"]["macro"]
        for table in (both, one)
    )
    assert halves["acc_at_1"]["value"] == pytest.approx(whole["acc_at_1"]["value"] / 2, abs=1e-6)


def test_a_large_relation_is_shuffled_in_blocks(monkeypatch) -> None:
    """A model that knows its subjects is above, and a constant list is not."""
    monkeypatch.setattr("medprobe.metrics.shuffled.LARGEST", 10)
    answers = [[NAMES[number % 2]] for number in range(80)]
    found = compare_variants(
        predictions(answers, answers), benchmark(answers), "accuracy", SCORING, ("m", "asked")
    )
    mixed = [[NAMES[(number // 2) % 3]] for number in range(80)]
    found = compare_variants(
        predictions(mixed, mixed), benchmark(mixed), "accuracy", SCORING, ("m", "asked")
    )
    assert found.set_index("metric").loc["acc_at_1", "p"] == pytest.approx(2 / 2000)
