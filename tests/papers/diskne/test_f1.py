"""F1, top-1 and AUC by disease and category, averages, intervals, the released code's figure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score

from helpers.toy_project import NAMED, project
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import PREDICTIONS
from medprobe.core.tables import BenchmarkTables, read_table, write_predictions
from medprobe.metrics import Scoring
from medprobe.metrics.significance import read_tests
from medprobe.papers.diskne.metrics.f1 import ESTIMATES, SCORER, count_outcomes, estimate, f1
from medprobe.pipeline.stages.score import score

NO_TABLES = BenchmarkTables(pd.DataFrame(), pd.DataFrame())


def rows(
    disease: str,
    seed_scores: Sequence[Sequence[float]],
    seed: int = 0,
    variant: str = "",
    category: str = "tests",
) -> pd.DataFrame:
    """Predictions of a disease: a list of scores for each positive, its own first, then those of
    its negatives; what is over one half is said to be true."""
    return pd.DataFrame(
        [
            {
                "variant": variant,
                "replicate": f"seed-{seed}",
                "query_id": f"{disease}{place}" + (f"-similar-{number}" if number else ""),
                "target": disease,
                "disease": disease,
                "category": category,
                "fewest": 2,
                "label": int(number == 0),
                "prediction": str(int(answer > 0.5)),
                "score": float(answer),
            }
            for place, answers in enumerate(seed_scores)
            for number, answer in enumerate(answers)
        ]
    )


def scores(*tables: pd.DataFrame) -> dict:  # type: ignore[type-arg]
    scoring = Scoring(ScoreParams(), seed=2021)
    return SCORER.score(pd.concat(tables, ignore_index=True), NO_TABLES, scoring)


def test_paired_tests_compare_diseases_by_what_the_macro_mean_is_of() -> None:
    first = [rows("d", [[1, 0, 0], [0, 1, 0]]), rows("e", [[1, 0], [0.9, 0]])]
    other = [rows("d", [[0, 0, 0], [0, 0, 0]], seed=1), rows("e", [[1, 0], [0.9, 0]], seed=1)]
    alone = rows("f", [[1, 0]])  # a single positive is not reported
    table = pd.concat([*first, *other, alone], ignore_index=True)
    paired = SCORER.paired(table, NO_TABLES, Scoring(ScoreParams(), seed=2021)).set_index("subset")
    for subset, numbers in scores(table)["default"].items():
        part = paired.loc[subset]
        assert part["query_id"].tolist() == ["d", "e"]
        for metric in ("f1", "top_1"):
            macro = numbers["macro"][metric]["value"]
            assert part[metric].mean() == pytest.approx(macro, abs=1e-6)
    assert (paired["cluster"] == paired["query_id"]).all() and (paired["weight"] == 1).all()
    assert paired.loc["tests", "f1"].tolist() == [0.25, 1]  # of d: the mean of 1/2 and 0


def test_a_part_of_the_diseases_has_its_own_means() -> None:
    """As if the others had not been tested; of its category alone."""
    few, more = rows("gout", [[1, 0], [0, 1]]), rows("flu", [[1, 0], [1, 0]])
    other = rows("gout", [[0, 0], [0, 0]], category="signs")
    parts = pd.DataFrame({"part": "few", "category": "tests", "target": ["gout"]})
    tables = BenchmarkTables(pd.DataFrame(), pd.DataFrame(), others={"parts": parts})
    scoring = Scoring(ScoreParams(), seed=2021)
    found = SCORER.score(pd.concat([few, more, other]), tables, scoring)["default"]
    assert found["tests/diseases:few"] == scores(few)["default"]["tests"]
    assert "signs/diseases:few" not in found
    assert {**found, "tests/diseases:few": None} == {
        **scores(few, more, other)["default"],
        "tests/diseases:few": None,
    }


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


@pytest.mark.parametrize(
    ("fewest", "reported"), [(1, {"ague", "gout", "flu"}), (2, {"gout", "flu"}), (3, {"flu"})]
)
def test_a_disease_with_fewer_positives_than_the_benchmark_asks_for_is_not_reported(
    fewest: int, reported: set[str]
) -> None:
    sizes = {"ague": 1, "gout": 2, "flu": 3}
    tables = [rows(name, [[1, 0]] * size).assign(fewest=fewest) for name, size in sizes.items()]
    assert {*scores(*tables)["default"]["tests"]} == {*reported, "macro", "weighted"}
    paired = SCORER.paired(pd.concat(tables), NO_TABLES, Scoring(ScoreParams(), seed=2021))
    assert set(paired["query_id"]) == reported


def test_rare_and_common_diseases_are_averaged_apart() -> None:
    """By their positives in all categories; what is reported of each bin is of its diseases."""
    right, wrong = [1, 0], [0, 0]
    rare = [rows("gout", [right] * 2), rows("ague", [wrong] * 2)]
    common = [rows("flu", [right] * 3), rows("flu", [wrong] * 4, category="symptoms")]
    common[1]["query_id"] = "other" + common[1]["query_id"]
    table = scores(*rare, *common)["default"]
    parts = {name: part for name, part in table.items() if "/" in name}
    assert set(parts) == {"full/positives:2", "full/positives:6-10"}
    assert all(set(part) == {"macro", "weighted"} for part in parts.values())
    assert parts["full/positives:2"]["macro"]["f1"]["value"] == 0.5
    seven = parts["full/positives:6-10"]["macro"]["f1"]
    assert (seven["value"], seven["n"]) == (pytest.approx(2 * 3 / (2 * 3 + 4), abs=1e-6), 7)
    assert not [name for name in scores(*common)["default"] if "/" in name]  # one bin alone


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
    predicted = [answer for _, answer in answers] + [extra % 2 == 0]
    counts = np.array(
        [
            sum(t and s for t, s in zip(true, predicted, strict=True)),
            sum(not t and s for t, s in zip(true, predicted, strict=True)),
            sum(t and not s for t, s in zip(true, predicted, strict=True)),
        ],
        dtype=float,
    )
    positives = [s for t, s in zip(true, predicted, strict=True) if t]
    our_f1 = f1(counts)
    assert our_f1[0] == pytest.approx(f1_score(true, predicted, zero_division=0))
    released = f1_score([True] * len(positives), positives, average="macro", zero_division=0)
    assert our_f1[1] == pytest.approx(released)


def test_outcomes() -> None:
    outcomes = count_outcomes(
        pd.concat([rows("a", [[1, 1], [0, 0]]), rows("a", [[1, 0], [0.4, 0.6]], seed=1)])
    )
    assert outcomes.counts.tolist() == [[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]]
    assert outcomes.top.tolist() == [[0.5, 0.5], [1, 0]]
    assert outcomes.above.tolist() == [[[0.5, 1], [0, 0.5]], [[1, 1], [1, 0]]]


def test_top_1_shares_ties() -> None:
    """Whatever says the same of everything is at chance: one over how many are asked about."""
    seed_scores = [
        [0.7, 0.7, 0.7, 0.7],
        [0.9, 0.2, 0.3, 0.4],
        [0.5, 0.5, 0.1, 0.1],
        [0.1, 0.2, 0, 0],
    ]
    outcomes = count_outcomes(rows("gout", seed_scores))
    assert outcomes.top.tolist() == [[1 / 4, 1, 1 / 2, 0]]
    same = scores(rows("gout", [[1, 1, 1]] * 3))["default"]["tests"]["macro"]
    assert same["top_1"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert same["auc"]["value"] == 0.5


SCORES = st.lists(
    st.lists(st.sampled_from([0.1, 0.3, 0.6, 0.9]), min_size=2, max_size=4), min_size=2, max_size=5
)


@given(SCORES)
def test_auc_is_scikit_learns(seed_scores: list[list[float]]) -> None:
    table = rows("gout", seed_scores)
    estimates = estimate(count_outcomes(table))[0, 0]
    assert estimates[ESTIMATES.index("auc")] == pytest.approx(
        roc_auc_score(table["label"], table["score"])
    )


@given(SCORES, st.data())
def test_a_resample_is_what_its_positives_say_together(
    seed_scores: list[list[float]], data: st.DataObject
) -> None:
    """Taking groups several times is the same as copies of them."""
    indices = st.integers(0, len(seed_scores) - 1)
    drawn = data.draw(st.lists(indices, min_size=len(seed_scores), max_size=len(seed_scores)))
    times = np.bincount(drawn, minlength=len(seed_scores)).astype(float)
    copies = count_outcomes(rows("gout", [seed_scores[i] for i in drawn]))
    estimates = estimate(count_outcomes(rows("gout", seed_scores)), times[None])
    assert np.allclose(estimates, estimate(copies))


def test_all_categories_together_are_the_subset_full() -> None:
    parts = [("tests", [[1, 0], [1, 1]]), ("symptoms", [[0, 0], [1, 0]])]
    tables = [rows("gout", seed_scores, category=name) for name, seed_scores in parts]
    tables[1]["query_id"] = "other" + tables[1]["query_id"]
    table = scores(*tables)["default"]
    assert set(table) == {"full", "tests", "symptoms"}
    assert table["full"]["gout"]["f1"] | {"low": 0, "high": 0} == {
        **{"value": pytest.approx(2 * 3 / (2 * 3 + 1 + 1), abs=1e-6), "n": 4},
        **{"low": 0, "high": 0},
    }


def test_intervals_of_means_are_over_diseases() -> None:
    """Positives that are all alike within each disease tell nothing of other diseases."""
    right, wrong = [[1, 0]] * 4, [[0, 1]] * 4
    tables = [rows(f"d{i}", right if i % 2 else wrong) for i in range(10)]
    table = scores(*tables)["default"]["tests"]
    macro = table["macro"]["top_1"]
    assert macro["value"] == 0.5
    assert macro["high"] - macro["low"] > 0.5  # of ten draws of 0 or 1, not of forty
    few = scores(*tables[:4])["default"]["tests"]["macro"]["top_1"]
    assert few["high"] - few["low"] > macro["high"] - macro["low"]


def test_intervals_are_over_seeds_too() -> None:
    seed_scores = [[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.2, 0.8]]
    tables = [rows(f"d{i}", seed_scores[seed], seed=seed) for i in range(5) for seed in range(2)]
    macro = scores(*tables)["default"]["tests"]["macro"]["top_1"]
    assert macro["value"] == 0.5
    assert macro["low"] < 0.1 and macro["high"] > 0.9


def test_a_mean_of_one_disease_is_its_own_number() -> None:
    table = scores(rows("gout", [[1, 0], [0, 0], [1, 1], [0, 1]]))["default"]["tests"]
    assert table["macro"] == table["weighted"] == table["gout"]


def test_what_has_no_negatives_or_no_positive_is_not_ranked() -> None:
    table = rows("gout", [[1], [1, 0], [0, 1], [1, 1]])
    orphan = table["query_id"] == "gout3"  # its negative stands, itself does not
    outcomes = count_outcomes(table[~orphan])
    assert outcomes.positive.tolist() == [True, True, True, False]
    assert np.array_equal(outcomes.top, [[np.nan, 1, 0, np.nan]], equal_nan=True)
    auc, top = (estimate(outcomes)[0, 0, ESTIMATES.index(name)] for name in ("auc", "top_1"))
    assert top == 0.5
    assert auc == pytest.approx(roc_auc_score([1, 1, 0, 1, 0, 0], [1, 1, 0, 0, 1, 1]))
    alone = scores(rows("gout", [[1], [1]]))["default"]["tests"]["macro"]
    assert set(alone) == {"f1", "f1_as_released"}


PARAMS = Params(score=ScoreParams(bootstrap=100), **NAMED)


def test_the_stage_of_paired_tests_compares_what_the_family_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)
    for model, label in (("taught", "1"), ("untaught", "0")):
        path = PREDICTIONS / model / "contrastive/made_up.parquet"
        table = read_table(path, []).query("rank == 1 and variant == '' and replicate == 'set-0'")
        table = table.assign(
            category="tests", target=["C1", "C2"] * 10, label=1, prediction=label, fewest=2
        )
        table["query_id"] = [f"{number}-0" for number in range(20)]
        write_predictions(table, path, "f1")
    score(PARAMS)
    tests = read_tests().query("metric == 'f1' and family == 'under contrastive'")
    whole, row = tests.to_dict("records")
    assert (whole["subset"], row["subset"], row["difference"]) == ("full", "tests", 1)
    assert (row["n"], row["units"]) == (2, 2)
    assert row["untestable"] == "2 independent subjects", "no difference could be found"
