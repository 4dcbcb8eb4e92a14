"""Names ahead of the best answer, found by proof, against scoring every name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.backends.base import Ranking
from medprobe.backends.served import _rank_ahead
from medprobe.core.params import EngineParams
from medprobe.engine import ahead, likeliest, ranking, reader
from medprobe.engine.ahead import Contest
from medprobe.engine.by_name import Readings
from medprobe.engine.load import load
from medprobe.engine.trie import Trie
from medprobe.testing import tiny
from test_best_first import NAMES as MADE_NAMES
from test_best_first import TOKENS, ScriptedModel, everything
from test_likeliest import NAMES, PROMPTS, all_scores, slots_of


def decided(model, names, contests):
    """The ranking of each contest by a search of a scripted model."""
    trie = Trie.build(names)
    steps = ahead.search(trie, model.before, len(model.after), contests)
    requests = next(steps)
    while True:
        try:
            requests = steps.send([model.ask(trie, top, node) for top, node in requests])
        except StopIteration:
            break
    return [
        ahead.rank_names(
            trie, contest, lambda leaf, v=contest.variant: model.score(trie.tokens(leaf), v)
        )
        for contest in contests
    ]


def check(ranked, listed, scores, answers, *, k, near=0.0):
    """Check that names found ahead of answers say what the list of the k best names says."""
    found = [i for i, _ in ranked.names]
    best = max((scores[i] for i in answers), default=-np.inf)
    if {*answers} & {*listed}:
        assert found == [i for i in listed if scores[i] >= best - near]
        return
    assert len(found) == len({*found}) >= min(k, len(scores))
    assert not {*found} & {*answers}
    assert all(scores[i] >= best - near for i in found)
    assert [score for _, score in ranked.names] == sorted(
        (s for _, s in ranked.names), reverse=True
    )


@given(
    names=MADE_NAMES,
    seed=st.integers(0, 2**16),
    k=st.integers(1, 8),
    around=st.tuples(st.integers(0, 3), st.lists(TOKENS, max_size=2)),
    answer_sets=st.lists(st.sets(st.integers(0, 29), max_size=3), min_size=1, max_size=4),
)
def test_a_proof_says_what_a_list_says(names, seed, k, around, answer_sets):
    before, after = around
    model = ScriptedModel(seed, before, tuple(after))
    trie = Trie.build(names)
    answer_sets = [sorted(i for i in answers if i < len(names)) for answers in answer_sets]
    contests = [
        Contest(variant, k, trie.leaves_of(answers))
        for answers in answer_sets
        for variant in (0, 1)
    ]
    for contest, ranked in zip(contests, decided(model, names, contests), strict=True):
        _, scores = everything(model, names, contest.variant)
        answers = [i for leaf in contest.answers for i in trie.rows[leaf]]
        listed = ranking.best_indices(np.array(scores), k, ranking.MAX_TIES).tolist()
        check(ranked, listed, scores, answers, k=k)


@given(
    names=MADE_NAMES,
    seed=st.integers(0, 2**16),
    k=st.integers(1, 8),
    answers=st.sets(st.integers(0, 29), max_size=3),
)
def test_reading_whole_names_says_what_a_list_says(names, seed, k, answers):
    model = ScriptedModel(seed, 1, (2,))
    answers = [i for i in sorted(answers) if i < len(names)]

    def read(places):
        rows = [(*names[i], *model.after) for i in places]
        return [[-1.5, *(model.log_prob(r[: i + 1]) for i in range(len(r)))] for r in rows]

    readings = Readings([(9, *name, *model.after) for name in names], read)
    for variant, ranked in enumerate(
        _rank_ahead(readings, answers, Ranking(names, k, variants=2, ahead=True))
    ):
        _, scores = everything(model, names, variant)
        listed = ranking.best_indices(np.array(scores), k, ranking.MAX_TIES).tolist()
        check(ahead.cut_behind(ranked), listed, scores, answers, k=k)


@pytest.mark.parametrize("arch", [*tiny.CAUSAL, *tiny.SEQ2SEQ])
def test_a_proof_says_what_a_list_says_on_real_architectures(arch, tiny_model, monkeypatch):
    kind = "seq2seq" if arch in tiny.SEQ2SEQ else "causal"
    model = load(tiny_model(arch), kind, EngineParams(token_budget=200))
    prompts = [*PROMPTS, "Aspirin , with water , may treat [Y]", PROMPTS[0]]
    slots, sources = slots_of(model, prompts)
    slow = list(all_scores(model, slots, sources))
    fifth = [[int(np.argsort(-scores[0])[4])] for scores in slow]
    tries = likeliest.NameTries(model.tokenizer, NAMES)
    lists = likeliest.find_likeliest(model, slots, prompts, tries, 7, sources=sources)
    for answers in ([[3, 50], [9], [], [20], [0, 1]], fifth):
        for room in (reader.TABLE_BYTES, 1):
            monkeypatch.setattr(reader, "TABLE_BYTES", room)
            found = likeliest.find_ahead(
                model, slots, prompts, tries, 7, answers=answers, sources=sources, variants=2
            )
            for rankings, of_list, scores, right in zip(found, lists, slow, answers, strict=True):
                for ranked, listed, of_variant in zip(rankings, of_list, scores, strict=True):
                    check(ranked, [i for i, _ in listed.names], of_variant, right, k=7, near=1e-4)
