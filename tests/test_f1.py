"""F1 by disease and category, averages, intervals, the released code's figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from medprobe.core.params import ScoreParams
from medprobe.metrics import Scoring
from medprobe.metrics.f1 import SCORER, f1, outcomes

NOWHERE = Path("benchmark")  # is not read


def rows(
    disease: str, said: list[list[int]], seed: int = 0, variant: str = "", category: str = "tests"
) -> pd.DataFrame:
    """Predictions of a disease: a list for each positive, itself first, then its negatives."""
    return pd.DataFrame(
        [
            {
                "variant": variant,
                "replicate": f"seed-{seed}",
                "query_id": f"{disease}{place}" + (f"-similar-{number}" if number else ""),
                "target": disease,
                "disease": disease,
                "category": category,
                "label": int(number == 0),
                "prediction": str(answer),
            }
            for place, answers in enumerate(said)
            for number, answer in enumerate(answers)
        ]
    )


def scores(*tables: pd.DataFrame) -> dict:  # type: ignore[type-arg]
    scoring = Scoring(ScoreParams(), seed=2021)
    return SCORER.score(pd.concat(tables, ignore_index=True), NOWHERE, scoring)


def test_paired_tests_compare_positives_with_their_negatives() -> None:
    one = rows("d", [[1, 0, 0], [0, 1, 0], [1, 1, 1]], seed=0)
    other = rows("d", [[0, 0, 0], [0, 0, 0], [1, 1, 1]], seed=1)
    table = SCORER.paired(pd.concat([one, other], ignore_index=True), NOWHERE)
    assert table["query_id"].tolist() == ["d 0", "d 1", "d 2"]
    assert table["f1_by_positive"].tolist() == [0.5, 0, 0.5]  # the means of 1, 0, .5 and 0, 0, .5


def test_by_hand() -> None:
    table = scores(
        rows("gout", [[1, 0, 0], [0, 1, 0]]),  # one of two found, one false: F1 1/2
        rows("flu", [[1, 0], [1, 0], [1, 0], [0, 0]]),  # F1 2*3/(2*3+1) = 6/7
        rows("ague", [[1, 0]]),  # a single positive is not reported
    )["default"]["tests"]
    assert set(table) == {"gout", "flu", "macro", "weighted"}
    assert table["gout"]["f1"]["value"] == 0.5
    assert table["flu"]["f1"]["value"] == pytest.approx(6 / 7, abs=1e-6)
    assert table["macro"]["f1"]["value"] == pytest.approx((1 / 2 + 6 / 7) / 2, abs=1e-6)
    assert table["weighted"]["f1"]["value"] == pytest.approx((2 / 2 + 4 * 6 / 7) / 6, abs=1e-6)
    assert table["macro"]["f1"]["n"] == 6
    assert "std" not in table["macro"]["f1"]


def test_a_disease_goes_by_its_cui() -> None:
    predictions = pd.concat(
        rows(name, [[1, 0], [1, 0]]).assign(target=cui)
        for name, cui in (("gout", "C1"), ("stroke", "C2"))
    )
    names = [*scores(predictions)["default"]["tests"]]
    assert names == ["C1", "C2", "macro", "weighted"]  # its name may be licensed


def test_seeds_are_averaged_and_their_deviation_kept() -> None:
    good, bad = [[1, 0], [1, 0]], [[0, 0], [0, 0]]
    number = scores(rows("gout", good), rows("gout", bad, seed=1))["default"]["tests"]["macro"]
    assert number["f1"]["value"] == 0.5
    assert number["f1"]["std"] == pytest.approx(np.std([1, 0], ddof=1), abs=1e-6)


@pytest.mark.parametrize("n", [1, 4, 10])
def test_always_true_is_two_p_over_one_plus_p(n: int) -> None:
    table = scores(rows("gout", [[1] * (n + 1)] * 3, variant="always-true"))
    p = 1 / (n + 1)
    number = table["always-true"]["tests"]["macro"]
    assert number["f1"]["value"] == pytest.approx(2 * p / (1 + p), abs=1e-6)
    assert number["f1_as_released"]["value"] == 1.0  # it looks at positives alone


def test_interval_holds_the_value_and_repeats() -> None:
    table = rows("gout", [[1, 0], [0, 0], [1, 1], [0, 1], [1, 0]])
    number = scores(table)["default"]["tests"]["gout"]["f1"]
    assert number["low"] < number["value"] < number["high"]
    assert scores(table)["default"]["tests"]["gout"]["f1"] == number


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1), st.integers(0, 9))
def test_equals_sklearn(answers: list[tuple[bool, bool]], extra: int) -> None:
    true = [label for label, _ in answers] + [True]
    said = [answer for _, answer in answers] + [extra % 2 == 0]
    counts = np.array(
        [
            sum(t and s for t, s in zip(true, said, strict=True)),
            sum(not t and s for t, s in zip(true, said, strict=True)),
            sum(t and not s for t, s in zip(true, said, strict=True)),
        ],
        dtype=float,
    )
    positives = [s for t, s in zip(true, said, strict=True) if t]
    found = f1(counts)
    assert found[0] == pytest.approx(f1_score(true, said, zero_division=0))
    released = f1_score([True] * len(positives), positives, average="macro", zero_division=0)
    assert found[1] == pytest.approx(released)


def test_outcomes() -> None:
    counts = outcomes(pd.concat([rows("a", [[1, 1], [0, 0]]), rows("a", [[1, 0], [1, 1]], seed=1)]))
    assert counts.tolist() == [[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 1, 0]]]
