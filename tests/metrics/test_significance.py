"""Which models differ: what is tested, what it is corrected for, and what has an interval alone."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from medprobe.core.params import ScoreParams
from medprobe.metrics.pairs import CONTROLS, System
from medprobe.metrics.results import average_by_query
from medprobe.metrics.shuffled import TESTS
from medprobe.metrics.significance import LETTERS, MAIN, Field, significance
from medprobe.metrics.statistics import holm

PARAMS = ScoreParams()


def system(
    values: list[float], clusters: list[str] | None = None, **columns: object
) -> pd.DataFrame:
    """What tests compare of a system: one query a value, in these clusters."""
    names = [f"q{number}" for number in range(len(values))]
    about = {"variant": "", "subset": "full", "query_id": names, "cluster": clusters or names}
    return average_by_query(pd.DataFrame({**about, "weight": 1.0, "acc_at_1": values, **columns}))


def compare(
    systems: Mapping[System, pd.DataFrame],
    main: Mapping[str, str] | None = None,
    params: ScoreParams = PARAMS,
    shuffled: Mapping[System, pd.DataFrame] | None = None,
    **about: object,
) -> pd.DataFrame:
    """The tests of one benchmark; main results are those under `x` unless others are named."""
    main = {model: "x" for model, method in systems if method == "x"} if main is None else main
    field = Field("b", "acc_at_1", "full", main, {}, ())._replace(**about)
    return significance(systems, field, params, shuffled or {})


def of(table: pd.DataFrame, family: str) -> pd.DataFrame:
    return table[(table["family"] == family) & (table["relation"] == "macro")]


def test_models_of_different_methods_are_compared() -> None:
    systems = {("a", "x"): system([1.0] * 12), ("b", "y"): system([0.0] * 12)}
    [row] = of(compare(systems, {"a": "x", "b": "y"}), MAIN).to_dict("records")
    assert (row["difference"], row["n"], row["units"]) == (1, 12, 12)
    assert row["p_holm"] == row["p"] < 0.01


def test_one_model_alone_is_compared_with_nobody() -> None:
    assert of(compare({("m", "x"): system([1.0] * 5)}), MAIN).empty


def test_a_cluster_counts_once() -> None:
    right, wrong = [1.0] * 12, [0.0] * 12
    [alone] = compare({("a", "x"): system(right), ("b", "x"): system(wrong)})["units"].unique()
    by_three = [name for name in "pqr" for _ in range(4)]
    pair = {("a", "x"): system(right, by_three), ("b", "x"): system(wrong, by_three)}
    [together] = of(compare(pair), MAIN).to_dict("records")
    assert (alone, together["n"], together["units"]) == (12, 12, 3)
    assert together["untestable"] == "3 independent subjects"


def test_relations_count_alike_where_queries_have_weights() -> None:
    weights = [1 / 9] * 9 + [1.0]
    many, none = system([1.0] * 9 + [0.0], weight=weights), system([0.0] * 10, weight=weights)
    [row] = of(compare({("a", "x"): many, ("b", "x"): none}), MAIN).to_dict("records")
    assert row["difference"] == pytest.approx(0.5)


def test_only_main_results_controls_and_letters_are_claimed() -> None:
    draw = np.random.default_rng(0)
    methods = ("x", "x:copy", "x:other", "y", "y:step-50")
    systems = {
        (model, method): system([*draw.integers(0, 2, 30).astype(float)])
        for model in "abc"
        for method in methods
    }
    systems["baseline", LETTERS] = system([0.0] * 30)
    table = compare(systems)
    claimed = table[table["p_holm"].notna()]
    assert claimed["family"].value_counts().to_dict() == {MAIN: 3, LETTERS: 3, CONTROLS: 3}
    for _, rows in claimed.groupby("family"):
        assert rows["p_holm"].tolist() == pytest.approx(holm(rows["p"].to_numpy()).tolist())
    assert {*table["family"]} - {*claimed["family"]} == {
        *("under x", "under x:other", "under y"),
        *("methods of a", "methods of b", "methods of c"),
    }
    assert not table[["method_a", "method_b"]].isin(["y:step-50"]).any(axis=None)


def test_of_many_variants_none_makes_a_main_result_less_significant() -> None:
    draw = np.random.default_rng(0)
    main = {
        ("a", "x"): system([*(draw.random(60) < 0.6).astype(float)]),
        ("b", "x"): system([*(draw.random(60) < 0.2).astype(float)]),
    }
    many = {("a", f"x:{number}"): main["a", "x"] for number in range(12)}
    few, more = (of(compare(systems), MAIN) for systems in (main, main | many))
    assert few["p_holm"].tolist() == more["p_holm"].tolist()


def test_forty_models_differ_significantly_where_they_do() -> None:
    draw = np.random.default_rng(0)
    shares = {f"m{number:02}": number / 40 for number in range(40)}
    systems = {
        (model, "x"): system([*(draw.random(200) < share).astype(float)])
        for model, share in shares.items()
    }
    table = of(compare(systems), MAIN)
    assert len(table) == 40 * 39 / 2
    far = table[table["difference"].abs() > 0.35]
    assert len(far) > 200 and (far["p_holm"] < 0.05).all()
    near = table[table["difference"].abs() < 0.05]
    assert (near["p_holm"] > 0.05).all()


def test_of_many_models_those_with_the_reference_are_a_family_of_their_own() -> None:
    draw = np.random.default_rng(0)
    systems = {
        (f"m{number:02}", "x"): system([*(draw.random(60) < number / 22).astype(float)])
        for number in range(22)
    }
    table = of(compare(systems, params=ScoreParams(reference="m05")), MAIN)
    has = (table[["model_a", "model_b"]] == "m05").any(axis=1)
    for rows, count in ((table[has], 21), (table[~has], 210)):
        assert len(rows) == count
        assert rows["p_holm"].tolist() == pytest.approx(holm(rows["p"].to_numpy()).tolist())
    few = dict([*systems.items()][:20])
    rows = of(compare(few, params=ScoreParams(reference="m05")), MAIN)
    assert rows["p_holm"].tolist() == pytest.approx(holm(rows["p"].to_numpy()).tolist())


def test_a_permutation_of_answers_is_the_test_of_a_ranking_and_its_control() -> None:
    values = ("", "full", "acc_at_1", 0.4, 0.2, 0.6, 0.01, np.nan, 30, "", 30)
    shuffled = {("m", "x"): pd.DataFrame([values], columns=TESTS)}
    [row] = of(compare({("m", "x"): system([1.0] * 30)}, shuffled=shuffled), CONTROLS).to_dict(
        "records"
    )
    assert (row["method_b"], row["difference"], row["p_holm"]) == ("x:shuffled", 0.4, 0.01)


def test_a_metric_of_a_kind_is_compared_within_it() -> None:
    def read(number: int) -> pd.DataFrame:
        return system([0.0] * 4, acc_at_1=np.nan, perplexity=[float(number), 2, 3, 4])

    systems = {(model, "x"): read(number) for number, model in enumerate("abc")}
    kinds = {"a": "masked", "b": "masked", "c": "causal"}
    table = of(compare(systems, metric="perplexity", kinds=kinds), MAIN)
    assert table[["model_a", "model_b"]].to_numpy().tolist() == [["a", "b"]]


def test_each_relation_has_its_difference_and_claims_nothing() -> None:
    relations = {"relation": ["r"] * 6 + ["s"] * 6}
    systems = {
        ("a", "x"): system([1.0] * 6 + [0.0] * 6, **relations),
        ("b", "x"): system([0.0] * 12, **relations),
    }
    table = compare(systems)
    rows = table[(table["family"] == MAIN) & (table["relation"] != "macro")].set_index("relation")
    assert rows["difference"].to_dict() == pytest.approx({"r": 1, "s": 0})
    assert rows[["p", "p_holm"]].isna().all(axis=None)


def test_a_system_is_compared_with_itself_on_two_subsets() -> None:
    both = pd.concat([system([1.0] * 8), system([0.0] * 8).assign(subset="negative")])
    table = compare({("a", "x"): both}, contrasts=[("full", "negative")])
    [row] = table[table["subset"] == "full - negative"].to_dict("records")
    assert row["difference"] == 1 and np.isnan(row["p_holm"])


def test_pairs_of_equal_models_seldom_differ_in_any_test_of_a_benchmark() -> None:
    """Six models that know as much: in at most one project of twenty anything is claimed."""
    wrong = 0
    for seed in range(30):
        draw = np.random.default_rng(seed)
        chance = draw.random(80) / 2
        systems = {
            (model, "x"): system([*(draw.random(80) < chance).astype(float)]) for model in "abcdef"
        }
        wrong += bool((of(compare(systems), MAIN)["p_holm"] < 0.05).any())
    assert len([*combinations("abcdef", 2)]) == 15 and wrong <= 3
