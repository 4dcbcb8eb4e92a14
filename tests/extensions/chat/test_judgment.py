"""Judgment: what is drawn as wrong, P(true) against the slow way, and its metrics."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from helpers import minicons, probing, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, ScoreParams
from medprobe.core.tables import BenchmarkTables, write_predictions
from medprobe.extensions.chat.methods.judgment import WORDINGS, Judgment, exchange_answers
from medprobe.extensions.chat.metrics import judgment
from medprobe.extensions.chat.sections.judgment import draw, table
from medprobe.methods import Task
from medprobe.metrics import Scoring
from medprobe.report.sections import calibration
from medprobe.report.verdicts import control
from report.test_calibration import results as calibrated
from report.test_sentences import hits, results, values

NAMES = ("pain", "fever", "influenza", "SNCA")
TEMPLATE = "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
PROMPTS = ("Velotrine treats [Y] .", "Aspirin treats [Y] .", "Entecavir treats [Y] .")


def benchmark():
    """Three subjects, of which two are names of one; each has an answer of its own."""
    queries = probing.queries(PROMPTS, ["pain"])
    queries["subject"] = ["Velotrine", "Aspirin", "Entecavir"]
    queries["subject_id"] = ["C1", "C1", "C2"]
    queries["answers"] = [["pain"], ["fever", "a fever"], ["influenza"]]
    queries["answer_ids"] = [["A0"], ["A1", "A1"], ["A2"]]
    return BenchmarkTables(queries, probing.candidates(NAMES))


def method(folder, budget=8192, **settings):
    return Judgment(folder, Judgment.Settings(**settings), EngineParams(token_budget=budget), 0)


@pytest.fixture(scope="module")
def chat_model(tiny_model, tmp_path_factory):
    copy = tmp_path_factory.mktemp("judge") / "gpt2"
    return tiny.with_template(tiny_model("gpt2"), copy, TEMPLATE)


def task(prober, tables):
    (only,) = prober.tasks(tables, 10)
    return only


def test_no_wrong_answer_is_right_for_another_name_of_the_subject(tiny_model) -> None:
    whole_task = task(method(tiny_model("bert")), benchmark())
    chosen = {tuple(exchange_answers(whole_task, seed)) for seed in range(20)}
    assert chosen == {("influenza", None, "pain"), (None, "influenza", "fever")}


def test_facts_of_other_splits_are_true_too(tiny_model) -> None:
    tables = benchmark()
    train = probing.queries(["Entecavir treats [Y] ."], ["Fever"]).assign(subject_id="C2")
    train["answer_ids"] = [["A1"]]
    train["answers"] = [["fever"]]
    tables = BenchmarkTables(tables.queries, tables.candidates, others={"train": train})
    whole_task = task(method(tiny_model("bert")), tables)
    assert {exchange_answers(whole_task, seed)[2] for seed in range(20)} == {"pain"}


def test_wrong_answers_are_of_the_answers_type(tiny_model) -> None:
    tables = benchmark()
    tables.candidates["type"] = ["symptom", "symptom", "disease", "gene"]
    prober = method(tiny_model("bert"))
    whole_task = task(prober, tables)
    assert exchange_answers(whole_task, 0) == [None] * 3
    assert prober.predict(whole_task, "likelihood").empty  # and other relations are judged


@given(
    st.lists(st.lists(st.sampled_from("aaaabbc"), min_size=1, max_size=3), min_size=2, max_size=30),
    st.permutations("abc"),
    st.integers(0, 99),
)
def test_a_judge_that_ignores_the_subject_is_right_in_one_half(answers, order, seed) -> None:
    """Whatever the judge thinks of the answers, however skewed they are."""
    queries = probing.queries([f"S{number} treats [Y] ." for number in range(len(answers))], ["a"])
    queries = queries.assign(answers=answers, answer_ids=answers)
    queries["subject_id"] = queries["subject"] = [f"S{number}" for number in range(len(answers))]
    whole = Task("r", queries, probing.candidates(["a", "b", "c"]), 10, {"facts": queries})
    wrong = exchange_answers(whole, seed)
    judged = [(names, other) for names, other in zip(answers, wrong, strict=True) if other]
    assert all(other not in names for names, other in judged)
    assert sorted(names[0] for names, _ in judged) == sorted(other for _, other in judged)
    right = sum(order.index(names[0]) < order.index(other) for names, other in judged)
    assert right == len(judged) / 2


@pytest.mark.parametrize(
    ("arch", "pass_"), [("gpt2", "chat"), *((arch, "none") for arch in probing.CAUSAL)]
)
def test_belief_in_words_is_the_mean_over_wordings_and_orders(
    arch, pass_, chat_model, tiny_model
) -> None:
    folder = chat_model if pass_ == "chat" else tiny_model(arch)
    prober = method(folder)
    assert prober.passes() == [*(["chat"] if pass_ == "chat" else []), "none", "likelihood"]
    whole_task = task(prober, benchmark())
    predictions = prober.predict(whole_task, pass_)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

    def log_prob(before: str, word: str) -> float:
        prefix, whole = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            if pass_ == "chat"
            else probing.causal_ids(tokenizer, text)
            for text in (before, before + word)
        )
        logs = probing.log_probs(model, whole)
        return sum(logs[i - 1, whole[i]].item() for i in range(len(prefix), len(whole)))

    expected = []
    sample = predictions if arch == "gpt2" else predictions.head(2)
    for query, name in zip(sample["query_id"], sample["prediction"], strict=True):
        statement = PROMPTS[int(query[1:])].replace("[Y]", name)
        shares = []
        for (question, true, false), turned in product(WORDINGS, (False, True)):
            words = (false, true) if turned else (true, false)
            put = question.replace("[1]", words[0]).replace("[2]", words[1])
            before = f"{statement}\n{put}" + ("<|endoftext|>" if pass_ == "chat" else "\n")
            odds = [math.exp(log_prob(before, word)) for word in (true, false)]
            shares.append(odds[0] / sum(odds))
        expected.append(sum(shares) / len(shares))
    assert sample["score"].tolist() == pytest.approx(expected, abs=1e-4)
    assert predictions["hit"].tolist() == [True, False] * 2  # the third has no partner
    assert predictions.sort_values(["query_id", "rank"])["score"].diff()[1::2].max() <= 0
    alone = method(folder, budget=1).predict(whole_task, pass_)
    assert alone["score"].tolist() == pytest.approx(predictions["score"].tolist(), abs=1e-5)


@pytest.mark.parametrize("arch", ["bert", *probing.MASKED, *probing.CAUSAL])
def test_two_statements_share_their_likelihood(arch, tiny_model) -> None:
    folder = tiny_model(arch)
    prober, small = method(folder), method(folder, budget=1)
    assert prober.passes()[-1] == "likelihood"
    whole_task = task(prober, benchmark())
    predictions = prober.predict(whole_task, "likelihood")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    totals = []
    sample = predictions if arch in ("bert", "gpt2") else predictions.head(2)
    for query, name in zip(sample["query_id"], sample["prediction"], strict=True):
        text = PROMPTS[int(query[1:])].replace("[Y]", name)
        if arch in tiny.CAUSAL:
            ids = probing.causal_ids(tokenizer, text, answer_first=text.startswith(name))
            logs = probing.log_probs(prober.backend.model.model, ids)[:-1]
            totals.append(logs[range(len(logs)), ids[1:]].sum().item())
            continue
        ids, total = tokenizer(text)["input_ids"], 0.0
        for place in range(1, len(ids) - 1):
            masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
            total += probing.log_probs(prober.model.model, masked)[place, ids[place]].item()
        totals.append(total)
    for true in range(0, len(totals), 2):
        wrong = true + 1
        share = 1 / (1 + math.exp(totals[wrong] - totals[true]))
        assert predictions["score"].iloc[true] == pytest.approx(share, abs=1e-4)
        assert predictions["score"].iloc[wrong] == pytest.approx(1 - share, abs=1e-4)
    alone = small.predict(whole_task, "likelihood")
    assert alone["score"].tolist() == pytest.approx(predictions["score"].tolist(), abs=1e-5)


def test_a_statement_longer_than_the_window_is_refused(tiny_model) -> None:
    tables = benchmark()
    tables.queries["prompt"] = "Velotrine " * 70 + "treats [Y] ."
    for arch, pass_ in (("gpt2", "none"), ("gpt2", "likelihood"), ("bert", "likelihood")):
        prober = method(tiny_model(arch))
        with pytest.raises(BadInput, match=r"query q0: .*the model reads"):
            prober.predict(task(prober, tables), pass_)


STATEMENTS = st.lists(
    st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.booleans(), st.integers(0, 3)), min_size=1
)


@given(STATEMENTS)
def test_auroc_is_the_librarys_and_weights_are_repetitions(rows) -> None:
    score, true, weight = (np.array(column) for column in zip(*rows, strict=True))
    (area,) = judgment.auroc(score, true, weight[None].astype(float))
    repeated = np.repeat(true, weight)
    if repeated.all() or not repeated.any():
        assert np.isnan(area)
    else:
        assert area == pytest.approx(roc_auc_score(repeated, np.repeat(score, weight)))


@given(STATEMENTS)
def test_calibration_error_is_the_mean_distance_over_bins(rows) -> None:
    score, true, _ = (np.array(column) for column in zip(*rows, strict=True))
    (error,) = judgment.calibration_error(score, true, np.ones((1, len(rows))))
    expected = 0.0
    for low in range(10):
        inside = (np.floor(np.minimum(score, 0.99) * 10) == low).nonzero()[0]
        if len(inside):
            gap = abs(score[inside].mean() - true[inside].mean())
            expected += gap * len(inside) / len(rows)
    assert error == pytest.approx(expected)


@pytest.fixture
def judged() -> tuple[pd.DataFrame, BenchmarkTables]:
    """Two relations of four queries: P(true) is right in the first, and turned in the second."""
    queries = probing.queries(["a [Y] ."] * 8, ["pain"])
    queries["subject"], queries["relation"] = queries["query_id"], ["r1"] * 4 + ["r2"] * 4
    tables = BenchmarkTables(queries, pd.DataFrame())
    rows = pd.DataFrame(
        {
            "variant": "none",
            "replicate": "",
            "query_id": [f"q{i // 2}" for i in range(16)],
            "rank": 1,
            "prediction": "pain",
            "prediction_id": "A0",
            "score": [0.9, 0.1] * 4 + [0.1, 0.9] * 4,
            "hit": [True, False] * 8,
        }
    )
    return rows, tables


def test_scores_by_relation_and_their_means(judged) -> None:
    rows, tables = judged
    scoring = Scoring(ScoreParams(bootstrap=200), 1)
    scores = judgment.SCORER.score(rows, tables, scoring)["none"]
    assert {"all", "all/answer-length:1-10", "all/answer:common"} == set(scores)
    values = {
        relation: [numbers[metric.name]["value"] for metric in judgment.Judgment.METRICS]
        for relation, numbers in scores["all"].items()
    }
    assert values["r1"] == pytest.approx([1.0, 0.5, 1.0, 0.1])
    assert values["r2"] == pytest.approx([0.0, 0.5, 0.0, 0.9])
    assert values["macro"] == pytest.approx([0.5, 0.5, 0.5, 0.5])
    assert values["micro"] == pytest.approx([0.5, 0.5, 0.5, 0.4])
    assert scores["all"]["micro"]["auroc"]["n"] == 16
    for numbers in scores["all"].values():
        assert "low" not in numbers["called_true"]  # half of each query's statements
        assert all(
            estimate["low"] <= estimate["value"] <= estimate["high"]
            for estimate in numbers.values()
            if "low" in estimate
        )
    shuffled = rows.sample(frac=1, random_state=3)
    assert judgment.SCORER.score(shuffled, tables, scoring)["none"] == scores
    paired = judgment.SCORER.paired(rows, tables, scoring)
    assert np.average(paired["judged_right"], weights=paired["weight"]) == pytest.approx(0.5)
    assert len(paired) == 8


def test_a_model_that_calls_everything_true_is_known_by_it(judged) -> None:
    rows, tables = judged
    scoring = Scoring(ScoreParams(bootstrap=200), 1)

    def score(*values: float) -> Any:
        by_variant = judgment.SCORER.score(rows.assign(score=values * 8), tables, scoring)
        return by_variant["none"]["all"]["micro"]

    everything, nothing, mixed = score(0.9, 0.8), score(0.1, 0.2), score(0.9, 0.5)
    assert everything["judged_right"] == nothing["judged_right"] == {"value": 0.5, "n": 16}
    assert everything["called_true"]["value"] == everything["called_true"]["high"] == 1
    assert nothing["called_true"]["value"] == nothing["called_true"]["low"] == 0
    assert 0.5 < everything["called_true"]["low"] < 1
    assert mixed["called_true"]["value"] == 0.75
    scores = judgment.SCORER.score(
        rows.assign(score=[0.9, 0.8] * 5 + [0.1, 0.2] * 3), tables, scoring
    )
    called = scores["none"]["all"]["micro"]["called_true"]
    assert called["value"] == 0.625 and called["low"] < 0.625 < called["high"]


def test_replicates_are_averaged_and_drawn(judged) -> None:
    rows, tables = judged
    scoring = Scoring(ScoreParams(bootstrap=200), 1)
    other = rows.assign(score=1 - rows["score"], replicate="1")

    def score(*parts: pd.DataFrame) -> Any:
        scores = judgment.SCORER.score(pd.concat(parts), tables, scoring)
        return scores["none"]["all"]["r1"]["auroc"]

    both = score(rows, other)
    assert (both["value"], both["n"]) == (0.5, 8)
    assert both["std"] == pytest.approx(np.std([1, 0], ddof=1), abs=1e-6)
    assert both["low"] < 0.1 and both["high"] > 0.9
    once, twice = score(rows), score(rows, rows.assign(replicate="1"))
    assert twice == {**once, "std": 0.0}


def test_a_coin_is_chance_for_true_and_false() -> None:
    systems = {(name, "judgment"): values(hits(6, 10), "judged_right") for name in ("a", "b")}
    page_results = results(systems, "judged_right")
    coin = control(page_results, page_results.main_rows("facts").iloc[0])
    assert coin and (coin.value, coin.state) == (pytest.approx(0.5), "not")


def test_calibration_goes_by_the_metrics_of_judgments() -> None:
    """Of a method that has not the benchmark's main metric."""
    by_metric = {
        "judged_right": ((0.8, 0.7, 0.9), (0.5, 0.4, 0.6)),
        "auroc": ((0.7, 0.5, 0.9), (0.5, 0.4, 0.6)),
    }
    more = [calibrated({"judgment:chat": x}, (name,)).comparison for name, x in by_metric.items()]
    both = replace(calibrated(), comparison=pd.concat([calibrated().comparison, *more]))
    indexed = calibration.pairs(both, "own").set_index(["metric", "method"])
    assert indexed.index.unique("metric").tolist() == ["acc_at_1", "judged_right", "auroc"]
    assert indexed.loc[["judged_right", "auroc"], "higher"].all()


def test_a_reliability_diagram_has_a_line_a_variant_and_the_diagonal(judged, tmp_path) -> None:
    rows, _ = judged
    path = tmp_path / "taught/judgment/toy.parquet"
    path.parent.mkdir(parents=True)
    write_predictions(rows, path, "judgment")
    calibrated_table = table({"taught": path})
    assert calibrated_table["said"].tolist() == pytest.approx([0.1, 0.9])
    assert calibrated_table[["true", "n"]].to_numpy().tolist() == [[0.5, 8], [0.5, 8]]
    (drawing,) = draw(calibrated_table, "toy")
    assert drawing.file == "toy-reliability-taught.svg"
    assert "none" in drawing.svg and "as it says" in drawing.svg
    other = tmp_path / "taught/likelihood/toy.parquet"
    other.parent.mkdir(parents=True)
    write_predictions(rows, other, "accuracy")
    assert table({"taught": other}).empty


@pytest.mark.parametrize("model", minicons.MODELS)
@pytest.mark.parametrize(
    ("pass_", "metric"), [("likelihood", "original"), ("within_word_l2r", "within_word_l2r")]
)
def test_judgment_compares_the_totals_of_minicons(model, pass_, metric):
    right, wrong = "hepatitis B", "influenza"
    queries = probing.queries([minicons.PROMPT] * 2).assign(
        subject=["a", "b"], subject_id=["C1", "C2"], answers=[[right], [wrong]]
    )
    queries["answer_ids"] = [["A0"], ["A1"]]
    tables = BenchmarkTables(queries, probing.candidates([right, wrong]))
    prober = Judgment(
        minicons.checkpoint(model), Judgment.Settings(within_word_l2r=True), minicons.engine(), 0
    )
    assert prober.passes() == ["likelihood", "within_word_l2r"]
    predictions = prober.predict(task(prober, tables), pass_)
    assert set(predictions["variant"]) == {pass_}
    assert predictions["prediction"].tolist() == [right, wrong, wrong, right]
    share = expit(minicons.total(model, right, metric) - minicons.total(model, wrong, metric))
    assert predictions["score"].tolist() == pytest.approx(
        [share, 1 - share, 1 - share, share], abs=1e-3
    )


def test_without_the_setting_there_is_no_such_pass():
    prober = Judgment(minicons.checkpoint("bert"), Judgment.Settings(), minicons.engine(), 0)
    assert prober.passes() == ["likelihood"]
