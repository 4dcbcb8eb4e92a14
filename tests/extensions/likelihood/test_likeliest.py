"""The search for the likeliest names, on real architectures, against scoring every name."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from engine.test_causal import PREFIX, with_two_start_tokens
from helpers import nightly, probing, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine import causal, heads, ranking, seq2seq
from medprobe.engine.load import load
from medprobe.engine.slots import answer_ids
from medprobe.extensions.likelihood import likeliest, reader
from medprobe.extensions.likelihood.methods.likelihood import Likelihood

WORDS = ("acute", "chronic", "renal", "pain", "hepatitis", "gene", "protein")
NAMES = sorted({" ".join(words) for n in (1, 2, 3) for words in product(WORDS, repeat=n)})[::7]
PROMPTS = [*probing.PROMPTS[:2], "Aspirin may treat [Y]"]


def slots_of(model, prompts=PROMPTS):
    """Slots, and what an encoder reads for each."""
    if model.model.config.is_encoder_decoder:
        frames = seq2seq.frames(model, prompts, prompts)
        return [frame.target for frame in frames], [frame.source for frame in frames]
    return causal.prompt_slots(model, prompts, prompts), []


def all_scores(model, slots, sources, names=NAMES):
    """For each slot the scores of all names, each variant's: [variants, names]."""
    for i, slot in enumerate(slots):
        ids = answer_ids(model.tokenizer, names, slot.preceding)
        rests = [[*of_name, *slot.after] for of_name in ids]
        source = sources[i] if sources else ()
        before, after = causal.continuations(model, slot.before, rests, 4096, source)
        before = before[slot.forced - 1 :]
        totals = np.array([sum(before) + sum(scores) for scores in after])
        yield np.stack([totals, totals / [len(before) + len(scores) for scores in after]])


FURTHER = [*probing.SEQ2SEQ[1:], *probing.CAUSAL[1:], *tiny.RECURRENT[1:]]


@pytest.mark.parametrize("arch", ["t5", "gpt2", tiny.RECURRENT[0], *nightly(*FURTHER)])
def test_the_search_ranks_as_scoring_every_name_does(arch, tiny_model, monkeypatch):
    kind = "seq2seq" if arch in probing.SEQ2SEQ else "causal"
    model = load(tiny_model(arch), kind, EngineParams(token_budget=200))
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 10 * model.config.vocab_size)  # ten positions
    slots, sources = slots_of(model)
    names = NAMES[::2]
    answers = [[3, 25]] * len(slots)
    slow = list(all_scores(model, slots, sources, names))
    tries = likeliest.NameTries(model.tokenizer, names)
    read = []
    for room in (reader.TABLE_BYTES, 1):  # of 1, for nothing but prompts: much is read again
        monkeypatch.setattr(reader, "TABLE_BYTES", room)
        name_rankings = likeliest.find_likeliest(
            model, slots, PROMPTS, tries, 7, sources=sources, answers=answers, on_reader=read.append
        )
        for rankings, scores in zip(name_rankings, slow, strict=True):
            for ranked, of_variant in zip(rankings, scores, strict=True):
                order = ranking.best_indices(of_variant, len(names))
                assert [i for i, _ in ranked.names] == order[:7].tolist()
                ranked_scores = [score for _, score in ranked.names]
                assert ranked_scores == pytest.approx(of_variant[order[:7]], abs=1e-4)
                assert ranked.rank == 1 + np.flatnonzero(np.isin(order, answers[0])).min()
    roomy, tight = read
    assert roomy.tokens_read <= tight.tokens_read
    if model.keeps_states:
        assert len(roomy.states.free) == roomy.states.capacity  # all is given back


@pytest.mark.parametrize("arch", ["gpt2", *nightly("t5")])
def test_float32_decides_what_bfloat16_cannot(arch, tiny_model):
    kind = "seq2seq" if arch == "t5" else "causal"
    exact, half = (
        load(tiny_model(arch), kind, EngineParams(precision=precision))
        for precision in ("float32", "bfloat16")
    )
    slots, sources = slots_of(exact)
    tries = likeliest.NameTries(exact.tokenizer, NAMES)
    slow = [scores[0] for scores in all_scores(exact, slots, sources)]
    for place in (0, 4, 12):
        answers = [[int(np.argsort(-scores)[place])] for scores in slow]
        found, expected = (
            likeliest.find_likeliest(
                model, slots, PROMPTS, tries, 7, sources=sources, answers=answers, variants=1,
                ahead=True, exact=lambda: exact,
            )
            for model in (half, exact)
        )  # fmt: skip
        for ((ours,), (theirs,)), scores in zip(
            zip(found, expected, strict=True), slow, strict=True
        ):
            assert [i for i, _ in ours.names] == [i for i, _ in theirs.names]
            assert bool(ours.names) == (place < 7)
            assert dict(ours.names) == pytest.approx({i: scores[i] for i, _ in ours.names}, abs=2)


def test_names_of_equal_tokens_share_a_score_and_go_by_name(tiny_model):
    model = load(tiny_model("gpt2"), "causal")
    with torch.no_grad():  # two tokens that no model can tell apart
        model.model.get_input_embeddings().weight[5] = model.model.get_input_embeddings().weight[9]
    slots, _ = slots_of(model, PROMPTS[:1])
    names = [model.tokenizer.decode([token]) for token in (9, 5, 30, 31)]
    tries = likeliest.NameTries(model.tokenizer, names)
    (rankings,) = likeliest.find_likeliest(model, slots, PROMPTS[:1], tries, 4)
    scores = dict(rankings[0].names)
    assert scores[0] == scores[1]
    places = [i for i, _ in rankings[0].names]
    assert places.index(1) == places.index(0) + 1


def predicted(folder, **settings):
    chosen = Likelihood.Settings(**{"per_token": True, "lists": True, **settings})
    method = Likelihood(folder, chosen, EngineParams(), 0)
    queries = probing.queries().assign(answers=[[NAMES[3], NAMES[50]], [NAMES[9]], ["no"], []])
    return method.predict(probing.task(queries, probing.candidates(NAMES), 5), "")


@pytest.mark.parametrize(("arch", "more"), [("gpt2", {}), ("t5", {}), ("bert", {"shortlist": 0})])
def test_ranks_of_answers(arch, more, tiny_model):
    predictions = predicted(tiny_model(arch), ranks=True, **more)
    first = predictions.groupby(["variant", "query_id"])["answer_rank"].first()
    assert (first.loc[:, ["q2", "q3"]] == len(NAMES) + 1).all()
    for (variant, query), rows in predictions.groupby(["variant", "query_id"]):
        answers = {"q0": [NAMES[3], NAMES[50]], "q1": [NAMES[9]]}.get(query, [])
        seen = rows.loc[rows["prediction"].isin(answers), "rank"].min()
        rank = first[variant, query]
        assert rank > 5 if np.isnan(seen) else rank == seen
    plain = predicted(tiny_model(arch), **more)
    pd.testing.assert_frame_equal(predictions.drop(columns="answer_rank"), plain)


@pytest.mark.parametrize("arch", ["gpt2", "t5", "bert"])
def test_totals_alone_are_those_of_both_variants(arch, tiny_model):
    both, totals = predicted(tiny_model(arch)), predicted(tiny_model(arch), per_token=False)
    expected = both[~both["variant"].str.endswith("per_token")].reset_index(drop=True)
    assert set(totals["variant"]) == set(expected["variant"]) < set(both["variant"])
    pd.testing.assert_frame_equal(totals, expected, rtol=0, atol=1e-4)


def test_a_masked_models_shortlist_does_not_give_ranks(tiny_model):
    with pytest.raises(BadInput, match="set shortlist: 0"):
        predicted(tiny_model("bert"), ranks=True)


def test_all_start_tokens_are_read_and_none_is_scored(tiny_model, tmp_path):
    model = load(with_two_start_tokens(tiny_model("llama"), tmp_path / "copy"), "causal")
    slots = causal.prompt_slots(model, [f"{PREFIX} [Y] ."], ["q0"])
    tries = likeliest.NameTries(model.tokenizer, ["pain", "hepatitis B"])
    total, mean = likeliest.find_likeliest(model, slots, ["q0"], tries, 2)[0]
    for (index, score), name in zip(sorted(total.names), tries.names, strict=True):
        ids = model.tokenizer(f"{PREFIX} {name} .")["input_ids"]
        logs = probing.log_probs(model.model, ids)
        expected = [logs[i - 1, ids[i]].item() for i in range(2, len(ids))]
        assert score == pytest.approx(sum(expected), abs=1e-4)
        assert dict(mean.names)[index] == pytest.approx(sum(expected) / len(expected), abs=1e-4)
