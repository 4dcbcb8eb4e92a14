"""Names ahead of the best answer, found by proof, against scoring every name."""

import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.likelihood.test_best_first import NAMES as MADE_NAMES
from extensions.likelihood.test_best_first import TOKENS, ScriptedModel, everything, ranked
from extensions.likelihood.test_likeliest import NAMES, PROMPTS, all_scores, slots_of
from helpers import nightly, probing, tiny
from medprobe.core import places
from medprobe.core.answers import with_hits
from medprobe.core.params import EngineParams, Params
from medprobe.core.tables import BenchmarkTables, lists_outranking
from medprobe.engine import ranking
from medprobe.engine.load import load
from medprobe.engine.slots import answer_ids
from medprobe.extensions.likelihood import likeliest, reader
from medprobe.extensions.likelihood.best_first import Contest
from medprobe.extensions.likelihood.methods import likelihood
from medprobe.extensions.likelihood.methods.likelihood import Likelihood
from medprobe.extensions.likelihood.trie import Trie
from medprobe.library.model import predict_answers
from medprobe.metrics.accuracy import values
from medprobe.pipeline.stages.probe import probe


def check(found, listed, scores, answers, *, near=0.0):
    """Check that a proof says what the list of the k best names says."""
    best = max((scores[i] for i in answers), default=-np.inf)
    expected = [i for i in listed if scores[i] >= best - near] if {*answers} & {*listed} else []
    assert [i for i, _ in found.names] == expected


@given(
    names=MADE_NAMES,
    seeds=st.lists(st.integers(0, 2**16), min_size=1, max_size=3),
    k=st.integers(1, 8),
    around=st.tuples(st.integers(0, 3), st.lists(TOKENS, max_size=2)),
    answer_sets=st.lists(st.sets(st.integers(0, 29), max_size=3), min_size=1, max_size=4),
)
def test_a_proof_says_what_a_list_says(names, seeds, k, around, answer_sets):
    before, after = around
    models = [ScriptedModel(seed, before + i, tuple(after)) for i, seed in enumerate(seeds)]
    trie = Trie.build(names)
    leaves = [trie.leaves_of([i for i in answers if i < len(names)]) for answers in answer_sets]
    contests = [
        [Contest(variant, k, answers, ahead=True) for answers in leaves for variant in (0, 1)]
        for _ in models
    ]
    rankings = ranked(models, names, contests)
    for model, of_prompt, found in zip(models, contests, rankings, strict=True):
        for contest, proof in zip(of_prompt, found, strict=True):
            _, scores = everything(model, names, contest.variant)
            answers = [i for leaf in contest.answers for i in trie.rows_of(leaf)]
            listed = ranking.best_indices(np.array(scores), k, ranking.MAX_TIES).tolist()
            check(proof, listed, scores, answers)


# How each architecture is read is `test_likeliest`'s; here, with a window and with an encoder.
@pytest.mark.parametrize("arch", ["gpt2", *nightly("gemma3_text", "t5")])
def test_a_proof_says_what_a_list_says_on_real_architectures(arch, tiny_model, monkeypatch):
    kind = "seq2seq" if arch in tiny.SEQ2SEQ else "causal"
    model = load(tiny_model(arch), kind, EngineParams(token_budget=200))
    prompts = [*PROMPTS, "Aspirin , with water , may treat [Y]", PROMPTS[0], "It treats ([Y] )"]
    slots, sources = slots_of(model, prompts)
    slow = list(all_scores(model, slots, sources))
    fifth = [[int(np.argsort(-scores[0])[4])] for scores in slow]
    tries = likeliest.NameTries(model.tokenizer, NAMES)
    lists = likeliest.find_likeliest(model, slots, prompts, tries, 7, sources=sources)
    for answers in ([[3, 50], [9], [], [20], [0, 1], [7]], fifth):
        for room, pool in ((reader.TABLE_BYTES, reader.FEW_PROMPTS), (1, 2)):
            monkeypatch.setattr(reader, "TABLE_BYTES", room)
            monkeypatch.setattr(reader, "FEW_PROMPTS", pool)
            found = likeliest.find_likeliest(
                model, slots, prompts, tries, 7, answers=answers, sources=sources, ahead=True
            )
            for proofs, of_list, scores, right in zip(found, lists, slow, answers, strict=True):
                for proof, listed, of_variant in zip(proofs, of_list, scores, strict=True):
                    check(proof, [i for i, _ in listed.names], of_variant, right, near=1e-4)


TWINS = ["renal ☂", "renal ☃"]  # T5's tokenizer has neither sign: their tokens are equal


def predicted(folder, tables, k=10, **settings):
    """The predictions of all tasks, with hits."""
    method = Likelihood(folder, Likelihood.Settings(**settings), EngineParams(), 0)
    parts = [method.predict(task, "") for task in method.tasks(tables, k)]
    return with_hits(pd.concat(parts, ignore_index=True), tables)


def facts(names, answers):
    """Two prompts, one of which many queries share; answers; a subject that is a name."""
    prompts = [PROMPTS[i % 7 == 0] for i in range(len(answers))]
    rows = probing.queries(prompts).assign(answers=answers, subject=names[0], subject_id="S")
    return BenchmarkTables(rows, probing.candidates(names))


def assert_accuracy_of_lists(folder, tables):
    queries = tables.queries.assign(cluster="", answer="")
    proved, listed = (
        predicted(folder, tables, per_token=True, lists=lists) for lists in (False, True)
    )
    by_proof, by_list = (values(table, queries) for table in (proved, listed))
    assert lists_outranking(proved) and not lists_outranking(listed)
    assert "acc_at_10_tied" in by_proof
    pd.testing.assert_frame_equal(by_proof, by_list.drop(columns="subject_at_1"))
    return by_proof


@pytest.mark.parametrize("arch", ["gpt2", "t5", *nightly("llama", "bart")])
def test_accuracy_by_proof_is_that_of_lists(arch, tiny_model):
    names = sorted([*NAMES, *TWINS])  # "renal" and "renal pain": some begin like others
    answers = [[name] for name in names] + [[], ["no name"], names[3:6], TWINS[:1]]
    scores = assert_accuracy_of_lists(tiny_model(arch), facts(names, answers))
    for k in (1, 5, 10):
        assert 0 < scores[f"acc_at_{k}"].mean() < 1


def test_ties_with_an_answer_are_shared_as_in_lists(tiny_model):
    names = sorted([*NAMES[:8], *TWINS])
    ids = answer_ids(load(tiny_model("t5"), "seq2seq").tokenizer, TWINS, " ")
    assert ids[0] == ids[1]
    scores = assert_accuracy_of_lists(tiny_model("t5"), facts(names, [[TWINS[0]], [TWINS[1]]] * 8))
    tied = scores[[f"acc_at_{k}_tied" for k in (1, 5, 10)]].to_numpy()
    assert ((tied > 0) & (tied < 1)).any() or (scores["acc_at_10"] == 1).all()


@pytest.mark.parametrize("arch", ["gpt2", "t5"])
def test_a_single_candidate_is_first(arch, tiny_model):
    scores = assert_accuracy_of_lists(tiny_model(arch), facts(["renal"], [["renal"], ["pain"]]))
    assert scores["acc_at_1"].tolist() == [1, 0] * 2


def test_a_proof_stopped_between_blocks_goes_on_as_if_it_had_not(
    tiny_model, working_folder, monkeypatch
):
    tables = facts(NAMES, [[name] for name in NAMES[:12]])
    tables.queries["relation"] = ["a"] * 6 + ["b"] * 6
    tables.write(places.BENCHMARKS / "toy")
    shutil.copytree(tiny_model("gpt2"), places.MODELS / "mine")
    params = Params.model_validate(
        {"models": {"causal": {"mine": {}}}, "methods": {"causal": {"likelihood": {"toy": {}}}}}
    )
    table = places.PREDICTIONS / "mine/likelihood/toy.parquet"
    probe("mine", "likelihood", "toy", params)
    whole = pd.read_parquet(table)
    monkeypatch.setattr(likelihood, "BLOCK", 7)  # across relations
    probe("mine", "likelihood", "toy", params)
    blocks = pd.read_parquet(table)
    query = ["variant", "query_id", "rank"]
    pd.testing.assert_frame_equal(
        *(part.sort_values(query, ignore_index=True) for part in (blocks, whole)), rtol=1e-5
    )
    shutil.rmtree(places.PARTS)
    predict, asked = Likelihood.predict, []

    def stop_at_second(self, task, pass_):
        asked.append(task.name)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return predict(self, task, pass_)

    monkeypatch.setattr(Likelihood, "predict", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        probe("mine", "likelihood", "toy", params)
    probe("mine", "likelihood", "toy", params)
    assert asked == ["block 1", "block 2", "block 2"]
    pd.testing.assert_frame_equal(pd.read_parquet(table), blocks)


def test_ask_lists_the_best_names_whatever_is_proved(tiny_model):
    tables = facts(NAMES, [[NAMES[5]]])
    method = Likelihood(tiny_model("gpt2"), Likelihood.Settings(), EngineParams(), 0)
    best = predict_answers(method, tables, 5)
    listed = predicted(tiny_model("gpt2"), tables, 5, lists=True)
    assert best["prediction"].tolist() == listed["prediction"].tolist()[:5]
