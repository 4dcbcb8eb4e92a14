"""Inside: what statements are made, probes against slow ones, and the metrics of pairs."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import probing
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, ScoreParams
from medprobe.core.tables import BenchmarkTables, Metadata
from medprobe.engine.hidden_states import hidden_states
from medprobe.engine.load import load
from medprobe.engine.pair_probe import RIDGE, Moments, PairProbes, share_ranked
from medprobe.methods import Task
from medprobe.methods.inside import FACTS, Inside, make_statements
from medprobe.methods.judgment import Judgment
from medprobe.metrics import Scoring, inside
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Table
from medprobe.report.results import Results
from medprobe.report.sections.inside import section
from medprobe.testing import tiny

NAMES = ("pain", "fever", "influenza", "SNCA", "acute renal failure")
PROMPTS = ("{} treats [Y] .", "[Y] is treated by {} .", "{} may prevent [Y]")


def benchmark(answers: list[list[str]] | None = None) -> BenchmarkTables:
    """Three relations, in which each of five subjects has an answer of its own."""
    by_subject = answers or [[name] for name in NAMES]
    parts = []
    for number, prompt in enumerate(PROMPTS):
        rows = probing.queries([prompt.format(f"Aspirin{i}") for i in range(len(by_subject))])
        rows["query_id"] = [f"r{number}-{i}" for i in range(len(rows))]
        rows["relation"] = f"r{number}"
        rows["subject"] = [f"Aspirin{i}" for i in range(len(rows))]
        rows["subject_id"] = [f"S{i}" for i in range(len(rows))]
        rows["answers"] = by_subject
        rows["answer_ids"] = [[f"A-{name}" for name in names] for names in by_subject]
        parts.append(rows)
    return BenchmarkTables(pd.concat(parts, ignore_index=True), probing.candidates(NAMES))


def task(tables: BenchmarkTables) -> Task:
    return Task("all", tables.queries, tables.candidates, 10, {FACTS: tables.queries})


def method(folder: Path, budget: int = 8192, **settings: object) -> Inside:
    chosen = Inside.Settings(**settings)  # type: ignore[arg-type]
    return Inside(folder, chosen, EngineParams(token_budget=budget), 0)


ANSWERS = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True), min_size=4, max_size=9
)


@given(ANSWERS, st.integers(1, 4), st.integers(0, 3))
def test_each_name_is_right_in_as_many_pairs_as_wrong(
    answers: list[list[str]], wrong: int, seed: int
) -> None:
    """So that a score which sees the name alone ranks half of the pairs right."""
    tables = benchmark(answers)
    settings = Inside.Settings(wrong=wrong)
    try:
        statements = make_statements(task(tables), settings, seed)
    except BadInput:  # everybody has one answer
        return
    right, false = (np.array(statements.names)[statements.pairs[:, side]] for side in (0, 1))
    assert sorted(right) == sorted(false)
    scores = {name: (place + seed) * 7 % 5 for place, name in enumerate(NAMES)}
    differences = [scores[a] - scores[b] for a, b in zip(right, false, strict=True)]
    assert share_ranked(np.array(differences, float)) == 0.5
    queries = statements.queries[statements.pairs[:, 0]]
    exchanges = set(zip(queries, statements.partners, strict=True))
    assert exchanges == {(b, a) for a, b in exchanges}
    for query, name in zip(queries, false, strict=True):
        assert name not in tables.queries["answers"].iloc[query]
    keys = list(zip(statements.queries, statements.names, strict=True))
    assert len(keys) == len(set(keys))
    assert max(np.bincount(queries)) <= wrong


def test_a_statement_is_the_prompt_with_the_answer() -> None:
    statements = make_statements(task(benchmark()), Inside.Settings(wrong=2), 0)
    for text, name, stop in zip(statements.texts, statements.names, statements.stops, strict=True):
        assert text[stop - len(name) : stop] == name
    right = [statements.texts[i] for i in np.unique(statements.pairs[:, 0])]
    assert right[1] == "Aspirin1 treats fever ." and right[-1].endswith("acute renal failure")
    fewer = make_statements(task(benchmark()), Inside.Settings(wrong=2, per_relation=2), 0)
    assert len(np.unique(fewer.queries)) == 2 * len(PROMPTS)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_relations_are_refused(count: int) -> None:
    tables = benchmark()
    few = tables.queries[tables.queries["relation"] < f"r{count}"]
    with pytest.raises(BadInput, match=rf"subset all: .* in {count} relations, .*; add relations"):
        make_statements(replace(task(tables), queries=few), Inside.Settings(), 0)


@pytest.mark.parametrize("arch", [*probing.MASKED, *tiny.CAUSAL])
def test_states_are_those_of_a_statement_read_alone(arch: str, tiny_model) -> None:  # type: ignore[no-untyped-def]
    prober = method(tiny_model(arch), budget=64)
    statements = make_statements(task(benchmark()), prober.settings, 0)
    rows, positions = prober._tokenize(statements)
    fast = hidden_states(prober.model, rows, positions, prober.layers)
    tokenizer, network = prober.model.tokenizer, prober.model.model
    sample = range(0, len(rows), 7)
    for i in sample:
        with torch.no_grad():
            output = network(torch.tensor([rows[i]]), output_hidden_states=True)
        alone = np.stack([layer[0].numpy() for layer in output.hidden_states], axis=1)
        assert fast[i] == pytest.approx(alone[positions[i]], abs=1e-4)
        answer, last = (tokenizer.decode([rows[i][at]]).strip() for at in positions[i])
        assert statements.names[i].lower().endswith(answer.replace("##", "").lower())
        assert statements.texts[i].lower().endswith(last.replace("##", "").lower())


def slow_direction(states: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """By plain loops over statements and pairs."""
    size = states.shape[1]
    scale = states.std(axis=0)
    covariance, mean = np.zeros((size, size)), np.zeros(size)
    for row in (states - states.mean(axis=0)) / scale:
        covariance += np.outer(row, row) / len(states)
    for row in differences / scale:
        mean += row / len(differences)
    return np.linalg.inv(covariance + RIDGE * np.eye(size)) @ mean / scale


def planted(strength: float, size: int = 6) -> PairProbes:
    """Four groups of ten queries with three statements, the last right: along one direction."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(120, 2, size)).astype(np.float32)
    states[2::3, 1, 0] += strength
    pairs = np.array(
        [(3 * query + 2, 3 * query + wrong) for query in range(40) for wrong in (0, 1)]
    )
    return PairProbes(states, pairs, np.repeat(np.arange(4), 30))


def test_probes_are_those_fitted_to_the_training_pairs_alone() -> None:
    probes = planted(1.0)
    scores, places = probes.across_groups()
    pair_groups = probes.groups[probes.pairs[:, 0]]
    held_out = np.zeros((4, 2))
    for place, group in product(range(2), range(4)):
        states = probes.states[:, place].astype(float)
        differences = states[probes.pairs[:, 0]] - states[probes.pairs[:, 1]]
        members = probes.groups == group
        weights = slow_direction(states[~members], differences[pair_groups != group])
        assert scores[members, place] == pytest.approx(states[members] @ weights)
        for other in {*range(4)} - {group}:
            rest = ~np.isin(probes.groups, [group, other])
            weights = slow_direction(states[rest], differences[rest[probes.pairs[:, 0]]])
            held_out[group, place] += share_ranked(differences[pair_groups == other] @ weights)
    assert places.tolist() == held_out.argmax(axis=1).tolist() == [1] * 4
    folds = np.arange(120) // 3 % 5
    pair_folds = np.stack([folds[probes.pairs[:, 0]], (folds[probes.pairs[:, 0]] + 1) % 5], axis=1)
    within = probes.within_groups(places, folds, pair_folds)
    states = probes.states[:, 1].astype(float)
    differences = states[probes.pairs[:, 0]] - states[probes.pairs[:, 1]]
    for group, fold in product(range(4), range(5)):
        train = (pair_groups == group) & ~(pair_folds == fold).any(axis=1)
        test = (probes.groups == group) & (folds == fold)
        statements = sorted({*probes.pairs[train].ravel()})
        weights = slow_direction(states[statements], differences[train])
        assert within[test] == pytest.approx(states[test] @ weights)


def ranked(probes: PairProbes, scores: np.ndarray) -> float:
    return share_ranked(scores[probes.pairs[:, 0]] - scores[probes.pairs[:, 1]])


def test_a_planted_direction_is_found_and_not_by_shuffled_labels() -> None:
    probes = planted(4.0)
    scores, places = probes.across_groups()
    assert ranked(probes, scores[:, 1]) > 0.95 and abs(ranked(probes, scores[:, 0]) - 0.5) < 0.15
    shuffled = probes.across_groups_shuffled(places, 200, 0)
    assert shuffled.shape == (120, 200)
    assert np.mean([ranked(probes, draw) for draw in shuffled.T]) == pytest.approx(0.5, abs=0.06)
    nothing, _ = planted(0.0).across_groups()
    assert abs(ranked(probes, nothing[:, 1]) - 0.5) < 0.15


def test_features_that_do_not_vary_have_no_weight() -> None:
    states = np.random.default_rng(0).normal(size=(9, 3)) * [1.0, 0.0, 1.0]
    moments = Moments.of(states, states[1:] - states[:-1])
    assert moments.direction()[1] == 0 and moments.direction()[0] != 0
    others = Moments.of(np.ones((4, 3)) * 1e3, np.ones((3, 3)))
    rest = moments + others - others  # but for rounding
    assert rest.direction() == pytest.approx(moments.direction())
    assert not Moments.of(np.empty((0, 3)), np.empty((0, 3))).direction().any()


@pytest.mark.parametrize("arch", ["bert", "gpt2"])
def test_predictions_hold_each_statement_by_each_probe(arch: str, tiny_model) -> None:  # type: ignore[no-untyped-def]
    tables = benchmark()
    prober = method(tiny_model(arch), wrong=2)
    (whole,) = prober.tasks(tables, 10)
    predictions = pd.concat([prober.predict(whole, pass_) for pass_ in prober.passes()])
    layers = [f"{token}layer-{n}" for token in ("", "answer-") for n in prober.layers]
    assert {*predictions["variant"]} == {"", "subjects", "shuffled", "likelihood", *layers}
    assert predictions.groupby("variant")["replicate"].nunique()["shuffled"] == 10
    keys = ["variant", "replicate", "query_id"]
    assert (predictions.groupby(keys)["hit"].sum() == 1).all()
    ordered = predictions.sort_values([*keys, "rank"])
    assert (ordered.groupby(keys)["score"].diff().dropna() <= 0).all()
    again = method(tiny_model(arch), budget=16, wrong=2).predict(whole, "")
    first = predictions[predictions["variant"] != "likelihood"].reset_index(drop=True)
    assert again["score"].tolist() == pytest.approx(first["score"].tolist(), abs=1e-3)
    assert (first.loc[first["variant"] == "layer-0", "score"].abs() < 1e3).all()


@pytest.mark.parametrize("arch", ["bert", "gpt2"])
def test_likelihood_is_that_of_judgment(arch: str, tiny_model) -> None:  # type: ignore[no-untyped-def]
    prober = method(tiny_model(arch), wrong=1)
    (whole,) = prober.tasks(benchmark(), 10)
    rows = prober.predict(whole, "likelihood").set_index(["query_id", "hit"])["score"].unstack()
    judge = Judgment(tiny_model(arch), Judgment.Settings(), EngineParams(token_budget=8192), 0)
    statements = make_statements(whole, prober.settings, 0)
    order = [i for pair in statements.pairs for i in pair]
    texts = [statements.texts[i] for i in order]
    shares = judge._compare_likelihoods(texts, texts, "token")[::2]
    queries = whole.queries["query_id"].to_numpy()[statements.queries[statements.pairs[:, 0]]]
    odds = (rows[True] - rows[False]).loc[queries]
    assert (1 / (1 + np.exp(-odds))).tolist() == pytest.approx(shares, abs=1e-4)


def test_what_a_model_cannot_read_is_refused(tiny_model) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=r"no layer 9; choose from 0 to 2"):
        method(tiny_model("bert"), layers=(1, 9))
    tables = benchmark()
    tables.queries["prompt"] = "Velotrine " * 70 + "treats [Y] ."
    prober = method(tiny_model("gpt2"))
    for pass_ in prober.passes():
        with pytest.raises(BadInput, match=r"query r0-0: .*the model reads"):
            prober.predict(*prober.tasks(tables, 10), pass_)


def test_only_the_layers_that_are_asked_for_are_read(tiny_model) -> None:  # type: ignore[no-untyped-def]
    model = load(tiny_model("bert"), "masked")
    every = hidden_states(model, [[2, 5, 3]], [[1]], [0, 1, 2])
    assert (
        hidden_states(model, [[2, 5, 3]], [[1]], [2])[0, 0, 0].tolist() == every[0, 0, 2].tolist()
    )


SCORES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-3, 3), st.booleans()), min_size=1, max_size=12
)


def value_table(rows: list[tuple[int, int, bool]], scores: list[float]) -> pd.DataFrame:
    queries = probing.queries(["a [Y] ."] * 3).assign(cluster="c", answer="a")
    numbers, _, hits = zip(*rows, strict=True)
    predictions = pd.DataFrame(
        {
            "variant": "",
            "replicate": "",
            "query_id": [f"q{number}" for number in numbers],
            "score": scores,
            "hit": hits,
        }
    )
    return inside.values(predictions, queries).set_index("query_id")


@given(SCORES)
def test_ranked_pairs_follow_from_the_order_alone(rows: list[tuple[int, int, bool]]) -> None:
    scores = [float(score) for _, score, _ in rows]
    values = value_table(rows, scores)
    for query, of_query in values.iterrows():
        right, wrong = (
            [s for n, s, hit in rows if f"q{n}" == query and hit == kind] for kind in (True, False)
        )
        wins = [(a > b) + (a == b) / 2 for a, b in product(right, wrong)]
        assert of_query["pairs_ranked"] == pytest.approx(sum(wins) / len(wins))
        assert of_query["all_pairs_ranked"] == all(win == 1 for win in wins)
    moved = value_table(rows, [np.exp(score) * 7 - 3 for score in scores])
    pd.testing.assert_frame_equal(moved, values)
    reversed_ = value_table(rows, [-score for score in scores])["pairs_ranked"]
    assert (reversed_ + values["pairs_ranked"]).to_numpy() == pytest.approx(1)


def test_scores_are_means_of_queries_with_intervals(tmp_path: Path) -> None:
    queries = probing.queries(["a [Y] ."] * 4)
    queries["relation"] = ["r1", "r1", "r1", "r2"]
    queries["subject_id"] = list("abcd")
    queries.to_parquet(tmp_path / "queries.parquet")
    rows = pd.DataFrame(
        {
            "variant": "",
            "replicate": "",
            "query_id": np.repeat(queries["query_id"], 3),
            "prediction": "pain",
            "score": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 1.0, 1.0],
            "hit": [True, False, False] * 4,
        }
    )
    scoring = Scoring(ScoreParams(bootstrap=200), 1)
    scores = inside.SCORER.score(rows, tmp_path, scoring)["default"]["all"]
    assert scores["r1"]["pairs_ranked"]["value"] == pytest.approx((1 + 0.25 + 1) / 3)
    assert scores["r1"]["all_pairs_ranked"]["value"] == pytest.approx(2 / 3)
    assert scores["macro"]["pairs_ranked"]["value"] == pytest.approx(0.375)
    assert scores["micro"]["pairs_ranked"]["n"] == 4
    paired = inside.SCORER.paired(rows, tmp_path, scoring)
    assert np.average(paired["pairs_ranked"], weights=paired["weight"]) == pytest.approx(0.375)
    with pytest.raises(BadInput, match="query other: a prediction's query is not in the benchmark"):
        inside.SCORER.score(rows.assign(query_id="other"), tmp_path, scoring)


def test_the_page_shows_the_probe_next_to_likelihood_and_controls() -> None:
    values = {
        "inside": 0.8,
        "inside:likelihood": 0.7,
        "inside:shuffled": 0.5,
        "inside:layer-0": 0.5,
        "inside:layer-1": 0.8,
    }
    rows = [
        ("toy", "full", "macro", "taught", name, metric, value, value - 0.1, value + 0.1, 9, None)
        for name, value in values.items()
        for metric in ("pairs_ranked", "all_pairs_ranked")
    ]
    tests = pd.DataFrame([dict.fromkeys(SIGNIFICANCE)]).assign(
        benchmark="toy", subset="full", metric="pairs_ranked", model_a="taught", model_b="taught"
    )
    tests = tests.assign(
        method_a="inside:likelihood", method_b="inside", difference=-0.1, p_holm=0.03,
        p_relation_holm=0.04,
    )  # fmt: skip
    about = {"toy": Metadata("a", "b", "c", (), "acc_at_1")}
    results = Results(pd.DataFrame(rows, columns=COMPARISON), tests, benchmarks=about)
    (part,) = section(results, "toy")
    sentence, table, drawing = part.blocks
    assert sentence.text == (
        "taught: the probe ranks 80.0 % of the pairs right, likelihood 70.0 % (p = 0.04)."
    )
    assert isinstance(table, Table) and [str(cell) for cell in table.rows[0]].count("–") == 2
    assert "by layer of inside" in drawing.caption
    assert section(replace(results, comparison=results.comparison.head(0)), "toy") == []
