"""Trust: signals by hand, metrics against slow ones, and their properties."""

import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from helpers.toy_project import METADATA
from medprobe.core.params import ScoreParams
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    write_predictions,
)
from medprobe.extensions.trust.metrics.trust import (
    COUNTS,
    COVERAGES,
    Trust,
    estimate,
    signals_by_query,
    summarise,
)
from medprobe.extensions.trust.sections.trust import section
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import COMPARISON, score_table, to_rows
from medprobe.report.results import Results
from medprobe.tracking.headlines import headlines

NAMES = [metric.name for metric in Trust.METRICS if metric.name not in COUNTS]
SCORING = Scoring(ScoreParams(bootstrap=200, confidence=0.95), 0)
items = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=6)


def make_predictions(*parts: tuple[str, list[tuple[str, str, float, bool]]]) -> pd.DataFrame:
    rows = [
        ("", "", query, rank, name, id_, score, hit)
        for query, ranked in parts
        for rank, (name, id_, score, hit) in enumerate(ranked, 1)
    ]
    return pd.DataFrame(rows, columns=PREDICTION_COLUMNS)


def signals(scores: list[float], meanings: str) -> tuple[float, float]:
    """The entropy and the margin of one query whose predictions have these meanings."""
    ranked = [(letter, "", score, False) for letter, score in zip(meanings, scores, strict=True)]
    table = make_predictions(("q", ranked))
    row = signals_by_query(table.assign(meaning=table["prediction"])).iloc[0]
    return float(row["entropy"]), float(row["margin"])


def measure(rows: list[tuple[int, bool]], weights: list[int] | None = None) -> dict[str, float]:
    table = pd.DataFrame(rows, columns=["sure", "right"])
    counts = np.ones((1, len(rows))) if weights is None else np.array([weights], float)
    return dict(zip(NAMES, estimate(table, counts)[0], strict=True))


def measure_slowly(rows: list[tuple[int, bool]]) -> dict[str, float]:
    """The mean over all orders in which equal signals may be."""
    n, totals, orders = len(rows), dict.fromkeys(["area", *COVERAGES], 0.0), 0
    for order in permutations(rows):
        if [sure for sure, _ in order] != sorted((sure for sure, _ in rows), reverse=True):
            continue
        orders += 1
        hits = [right for _, right in order]
        totals["area"] += sum(1 - sum(hits[:i]) / i for i in range(1, n + 1)) / n
        for coverage in COVERAGES:
            whole, part = divmod(coverage * n / 100, 1)
            right = sum(hits[: int(whole)]) + (part * hits[int(whole)] if whole < n else 0)
            totals[coverage] += right / (coverage * n / 100)
    return {key: total / orders for key, total in totals.items()}


def test_draws_that_mean_the_same_are_one() -> None:
    entropy, margin = signals([0.5, 0.25, 0.25], "aba")
    assert entropy == pytest.approx(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert margin == pytest.approx(math.log(3))
    assert signals([0.5, 0.5], "aa") == (0, math.inf)


def test_logarithms_go_through_the_softmax_and_far_ones_do_not_vanish() -> None:
    odds = [8.0, 1.0, 1.0]
    entropy, margin = signals([math.log(x) - 100 for x in odds], "abc")
    assert entropy == pytest.approx(sum(x / 10 * math.log(x / 10) for x in odds))
    assert margin == pytest.approx(math.log(8))
    assert signals([-1.0, -61.0], "ab")[1] == pytest.approx(60)


@given(scores=st.lists(st.floats(-80, 0), min_size=1, max_size=10))
def test_the_entropy_of_ten_predictions_is_at_most_log_ten(scores: list[float]) -> None:
    entropy, margin = signals(scores, "abcdefghij"[: len(scores)])
    assert -math.log(10) <= entropy + 1e-9 and entropy <= 0 <= margin  # the surer, the higher


def test_metrics_counted_by_hand() -> None:
    numbers = measure([(4, True), (3, True), (2, False), (1, True), (0, False)])
    assert numbers["trust_auroc"] == pytest.approx(5 / 6)
    assert numbers["right_at_20"] == 1
    assert numbers["right_at_50"] == pytest.approx(2 / 2.5)
    assert numbers["right_at_80"] == pytest.approx(3 / 4)
    assert numbers["right_at_100"] == pytest.approx(3 / 5)
    assert numbers["risk_area"] == pytest.approx((0 + 0 + 1 / 3 + 1 / 4 + 2 / 5) / 5)


@given(rows=items)
def test_equal_signals_are_in_random_order(rows: list[tuple[int, bool]]) -> None:
    numbers, slow = measure(rows), measure_slowly(rows)
    assert numbers["risk_area"] == pytest.approx(slow["area"])
    for coverage in COVERAGES:
        assert numbers[f"right_at_{coverage}"] == pytest.approx(slow[coverage])
    shuffled = measure([(0, right) for _, right in rows])  # the control: no gain, exactly
    assert all(shuffled[name] == pytest.approx(0) for name in NAMES if name.endswith("_gain"))


@given(rows=items, seed=st.randoms())
def test_only_the_order_of_signals_counts(rows: list[tuple[int, bool]], seed: object) -> None:
    numbers = measure(rows)
    shuffled = sorted(rows, key=lambda _: seed.random())  # type: ignore[attr-defined]
    for other in ([(sure**3 - 7, right) for sure, right in rows], shuffled):
        assert measure(other) == pytest.approx(numbers, nan_ok=True)
    assert math.isnan(numbers["trust_auroc"]) or 0 <= numbers["trust_auroc"] <= 1
    best = measure([(int(right), right) for _, right in rows])
    worst = measure([(-int(right), right) for _, right in rows])
    assert best["risk_area"] <= numbers["risk_area"] + 1e-9 <= worst["risk_area"] + 2e-9


@given(rows=items, data=st.data())
def test_a_weight_is_that_many_rows(rows: list[tuple[int, bool]], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    repeated = [row for row, weight in zip(rows, weights, strict=True) for _ in range(weight)]
    if repeated:
        assert measure(rows, weights) == pytest.approx(measure(repeated), nan_ok=True)


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Two dozen queries of two relations."""
    rows = [
        (f"q{i}", "b", f"r{i % 2}", f"s{i}", f"S{i}", "[Y] .", ["Fever"], ["C0"], "full")
        for i in range(24)
    ]
    names = [("Fever", "C0", "", "full"), ("Pyrexia", "C0", "", "full"), ("Pain", "C1", "", "full")]
    queries = pd.DataFrame(rows, columns=QUERY_COLUMNS)
    folder = tmp_path / "b"
    BenchmarkTables(queries, pd.DataFrame(names, columns=CANDIDATE_COLUMNS)).write(folder)
    return folder


def score(benchmark: Path, predictions: pd.DataFrame, family: str) -> Scores:
    path = benchmark.parent / "predictions.parquet"
    write_predictions(predictions, path, family)
    return score_table(path, benchmark, SCORING)


def test_names_of_one_concept_are_one_meaning_and_the_page_says_what_it_brings(
    benchmark: Path,
) -> None:
    sure = [("fever", "", 0.6, True), ("Pyrexia", "C0", 0.4, True)]
    torn = [("pain", "", 0.6, False), ("Fever", "C0", 0.4, True)]
    # q23 has no prediction: wrong, and the least sure
    parts = [(f"q{i}", sure if i < 12 else torn) for i in range(23)]
    scores = score(benchmark, make_predictions(*parts), "accuracy")["default"]
    numbers = scores["full/signal:entropy"]["micro"]
    assert numbers["trust_auroc"]["value"] == 1
    assert (numbers["right_at_50"]["value"], numbers["right_at_100"]["value"]) == (1, 0.5)
    assert set(scores["full/signal:margin"]) == {"macro", "micro"}
    rows = pd.DataFrame(to_rows({"b": {"default": scores}}, "m", "answering"), columns=COMPARISON)
    run = headlines(rows, METADATA, edges=False)
    assert (run["more_trust_auroc"], run["more_right_at_50"]) == (1, 1)
    results = Results(rows, benchmarks={"b": METADATA})
    (part,) = section(results, "b")
    texts = repr(part)
    assert "100.0" in texts and "50.0" in texts and "b-trust-m" in texts
    assert section(Results(rows[rows["subset"] == "full"], benchmarks={"b": METADATA}), "b") == []


def test_settings_of_sweeps_are_not_scored(benchmark: Path) -> None:
    table = make_predictions(*((f"q{i}", [("Fever", "C0", -1.0 * i, True)]) for i in range(8)))
    variants = [table.assign(variant=name) for name in ("", "original", "step-50")]
    scores = score(benchmark, pd.concat(variants, ignore_index=True), "accuracy")
    signals = {name: "full/signal:entropy" in subsets for name, subsets in scores.items()}
    assert signals == {"default": True, "original": True, "step-50": False}


def test_names_ahead_of_an_answer_say_nothing_of_trust(benchmark: Path) -> None:
    table = make_predictions(*((f"q{i}", [("Fever", "C0", -1.0 * i, True)]) for i in range(8)))
    subsets = score(benchmark, table.assign(ahead=True), "accuracy")["default"]
    assert subsets["full"]["micro"]["acc_at_1"]["value"] == pytest.approx(8 / 24, abs=1e-6)
    assert not any("signal" in subset for subset in subsets)


def test_a_judgment_is_trusted_by_how_far_it_is_from_one_half(benchmark: Path) -> None:
    pair = {True: [("a", "", 0.9, True), ("b", "", 0.2, False)], False: [("a", "", 0.4, True)]}
    parts = [(f"q{i}", pair[i < 11]) for i in range(16)]
    scores = score(benchmark, make_predictions(*parts), "judgment")["default"]
    numbers = scores["full/signal:p_true"]["micro"]
    assert (numbers["trust_auroc"]["value"], numbers["trust_auroc"]["n"]) == (1, 27)
    assert numbers["right_at_100"]["value"] == pytest.approx(22 / 27, abs=1e-6)


def test_the_order_of_rows_does_not_matter(benchmark: Path) -> None:
    ranked = [
        (f"q{i}", [("Pain", "C1", -1.0 * i, i > 4), ("Fever", "C0", -1.0 - 2 * i, i <= 4)])
        for i in range(8)
    ]
    table = make_predictions(*ranked)
    shuffled = table.sample(frac=1, random_state=1)
    assert score(benchmark, table, "accuracy") == score(benchmark, shuffled, "accuracy")


def summarise_micro(
    right: np.ndarray, sure: np.ndarray | None = None, scoring: Scoring = SCORING
) -> dict[str, dict]:
    """The micro numbers of queries that are a subject each, the first the surest if not given."""
    n = len(right)
    names = [f"{i:03d}" for i in range(n)]
    about = {"query_id": names, "cluster": names, "relation": "r", "replicate": ""}
    rows = pd.DataFrame({**about, "right": right.astype(float)})
    return summarise(rows.assign(sure=-np.arange(n) if sure is None else sure), scoring)["micro"]


def test_one_right_answer_is_no_finding_however_many_queries_there_are() -> None:
    for place in (0, 60):
        numbers = summarise_micro(np.arange(216) == place)
        assert "value" not in numbers["trust_auroc"]
        assert numbers["trust_right"] == {"value": 1, "n": 216}
        assert numbers["trust_relations"]["value"] == 0
        assert all("low" not in numbers[name] for name in NAMES if name.endswith("_gain"))
    assert summarise_micro(np.arange(216) < 5)["trust_auroc"]["low"] < 1
    assert "value" not in summarise_micro(np.arange(216) >= 4)["trust_auroc"]  # too few wrong ones


def test_the_surest_fifth_has_the_interval_of_a_fifth_of_the_queries() -> None:
    """43 of 216 queries: Wilson's bounds of 43 of 43, and of none of 43, with t instead of 1.96."""
    t = stats.t.ppf(0.975, 42)
    numbers = summarise_micro(np.arange(216) < 50)["right_at_20"]
    assert numbers["value"] == 1
    assert (numbers["low"], numbers["high"]) == pytest.approx((43 / (43 + t**2), 1), abs=1e-5)
    numbers = summarise_micro(np.arange(216) >= 200)["right_at_20"]
    assert (numbers["low"], numbers["high"]) == pytest.approx((0, t**2 / (43 + t**2)), abs=1e-5)


def test_the_macro_auroc_is_of_the_relations_that_have_one_and_says_of_how_many() -> None:
    names = [f"{i:03d}" for i in range(90)]
    relation = np.repeat(["many", "few", "none"], 30)
    right = np.concatenate([np.arange(30) % 2 == 0, np.arange(30) == 29, np.zeros(30)])
    about = {"query_id": names, "cluster": names, "relation": relation, "replicate": ""}
    rows = pd.DataFrame({**about, "right": right.astype(float), "sure": -np.arange(90)})
    numbers = summarise(rows, SCORING)
    assert numbers["macro"]["trust_relations"]["value"] == 1
    assert numbers["macro"]["trust_auroc"]["value"] == numbers["many"]["trust_auroc"]["value"]
    assert numbers["micro"]["trust_right"]["value"] == 16


def test_intervals_hold_the_truth_where_few_answers_are_right() -> None:
    """Where they are given at all: 8 % of 60 queries are right, the surest ones more often."""
    draw = np.random.default_rng(0)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        sure = draw.normal(size=n)
        return sure + draw.normal(size=n) > stats.norm.ppf(0.92) * np.sqrt(2), sure

    right, sure = sample(100_000)
    table = pd.DataFrame({"right": right.astype(float), "sure": sure})
    truth = dict(zip(NAMES, estimate(table, np.ones((1, len(table))))[0], strict=True))
    holds: dict[str, list[bool]] = {"trust_auroc": [], "right_at_20": []}
    quick = Scoring(ScoreParams(bootstrap=100, confidence=0.95), 0)
    for _ in range(40):
        numbers = summarise_micro(*sample(60), quick)
        for name, results in holds.items():
            if "low" in numbers[name]:
                results.append(numbers[name]["low"] <= truth[name] <= numbers[name]["high"])
    assert len(holds["trust_auroc"]) > 10 and np.mean(holds["trust_auroc"]) > 0.9
    assert np.mean(holds["right_at_20"]) > 0.9


def sentence(*gains: tuple[float, float, float]) -> str:
    """What the page says of systems with these gains of their surest half, and their intervals."""
    keys = ["value", "low", "high"]
    rows = []
    for place, gain in enumerate(gains):
        about = ("b", "full/signal:entropy", "micro", f"m{place}", "x")
        rows.append((*about, "right_at_50_gain", *gain))
        rows.append((*about, "right_at_50", 0.3 + gain[0], 0.2, 0.4))
        rows.append((*about, "right_at_100", 0.3, 0.2, 0.4))
    table = pd.DataFrame(rows, columns=[*COMPARISON[:6], *keys]).assign(n=100.0, std=np.nan)
    main = table.assign(subset="full", metric="acc_at_1")
    (part,) = section(Results(pd.concat([main, table]), benchmarks={"b": METADATA}), "b")
    return repr(part.blocks[0])


def test_the_page_names_a_gain_only_where_its_interval_is_above_zero() -> None:
    text = sentence((0.2, -0.1, 0.5), (0.05, 0.01, 0.09), (-0.1, -0.2, -0.05))
    assert "Of 3 systems by signal, 1 gains" in text and "largest gain is that of m1" in text
    assert "35.0 %" in text and "1 is right less often" in text
    for none in (sentence((0.2, -0.1, 0.5)), sentence((0.2, np.nan, np.nan))):
        assert "No signal helps" in none and "largest gain" not in none
