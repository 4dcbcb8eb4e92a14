"""Best-first search over tries against scoring everything, with made-up models."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.engine.ranking import MAX_TIES, best_indices
from medprobe.extensions.likelihood.best_first import (
    READ_ALL_SHARE,
    ROUNDING,
    SearchGoal,
    rank_names,
    search,
)
from medprobe.extensions.likelihood.trie import ROOT, Trie

TOKENS = st.integers(0, 3)
NAMES = st.lists(st.lists(TOKENS, min_size=1, max_size=7), min_size=1, max_size=30)
STEPS = (0.0, -0.25, -0.5, -1.0, -4.0)  # exact in binary: equal sums are equal


class ScriptedModel:
    """A model of random log-probabilities, a table over beginnings. What it reads in a batch is off
    by up to ROUNDING a token, as a real one is; alone it is exact."""

    def __init__(self, seed, before, after, spread=STEPS):
        self.seed, self.before, self.after, self.spread = seed, before, after, spread
        self.noise = random.Random(seed)
        self.read = 0

    def log_prob(self, beginning):
        return random.Random(repr((self.seed, beginning))).choice(self.spread)

    def total(self, name):
        row = (*name, *self.after)
        return -1.5 * self.before + sum(self.log_prob(row[: i + 1]) for i in range(len(row)))

    def score(self, name, variant):
        total = self.total(name)
        return total / (self.before + len(name) + len(self.after)) if variant else total

    def off(self, tokens):
        return self.noise.uniform(-ROUNDING, ROUNDING) * tokens

    def ask(self, trie, top, node):
        firsts = []
        for child in trie.children[node]:
            row = self.tokens(trie, child)
            start = len(trie.tokens(node))
            firsts.append(self.log_prob(row[: start + 1]) + self.off(1) if len(row) > start else 0)
        if node == ROOT:
            return -1.5 * self.before + self.off(self.before), np.array(firsts)
        row = self.tokens(trie, node)
        start = len(trie.tokens(trie.parents[top])) + 1
        assert len(row) >= start + bool(trie.is_leaf[node])  # there is something to read
        self.read += len(row) - start + 1
        spent = sum(self.log_prob(row[: i + 1]) + self.off(1) for i in range(start, len(row)))
        return spent, np.array(firsts)

    def tokens(self, trie, node):
        return (*trie.tokens(node), *(self.after if trie.is_leaf[node] else ()))


def searched(model, names, aim):
    """The trie, what was found, and each variant's ranking."""
    trie = Trie.build(names)
    reading = search(trie, model.before, len(model.after), aim)
    requests = next(reading)
    while True:
        try:
            requests = reading.send([model.ask(trie, top, node) for top, node in requests])
        except StopIteration as end:
            result = end.value
            break
    return result, [
        rank_names(trie, result, v, aim, lambda leaf, v=v: model.score(trie.tokens(leaf), v))
        for v in range(aim.variants)
    ]


def everything(model, names, variant):
    scores = [model.score(tuple(name), variant) for name in names]
    return sorted(range(len(names)), key=lambda i: (-scores[i], i)), scores


@given(NAMES)
def test_a_trie_holds_each_sequence_once(names):
    trie = Trie.build(names)
    rows = {row: leaf for leaf, of_leaf in enumerate(trie.rows) for row in of_leaf}
    assert [list(trie.tokens(rows[i])) for i in range(len(names))] == names
    assert len(set(rows.values())) == len({tuple(name) for name in names})
    for node in range(len(trie.edges)):
        below = trie.leaves(node)
        assert trie.max_depths[node] == max(len(trie.tokens(leaf)) for leaf in below)
        assert all(node in (ROOT, *trie.path(leaf)) for leaf in below)
        firsts = [trie.edges[child][:1] for child in trie.children[node]]
        assert len(set(firsts)) == len(firsts)


@given(
    names=NAMES,
    seed=st.integers(0, 2**16),
    k=st.integers(1, 8),
    around=st.tuples(st.integers(0, 3), st.lists(TOKENS, max_size=2)),
    with_answers=st.sets(st.integers(0, 29), max_size=3),
    variants=st.integers(1, 2),
)
def test_the_search_ranks_as_scoring_everything_does(
    names, seed, k, around, *, with_answers, variants
):
    before, after = around
    model = ScriptedModel(seed, before, tuple(after))
    trie = Trie.build(names)
    rows = {row: leaf for leaf, of_leaf in enumerate(trie.rows) for row in of_leaf}
    answers = tuple(sorted({rows[i] for i in with_answers if i < len(names)}))
    equal = {row for leaf in answers for row in trie.rows[leaf]}
    _, rankings = searched(model, names, SearchGoal(k, answers, variants=variants))
    assert len(rankings) == variants
    for variant, ranking in enumerate(rankings):
        expected, scores = everything(model, names, variant)
        listed = best_indices(np.array(scores), k, MAX_TIES)
        assert [row for row, _ in ranking.names] == listed.tolist()
        assert [score for _, score in ranking.names] == pytest.approx(
            [scores[i] for i in listed], abs=20 * ROUNDING
        )
        places = [rank for rank, i in enumerate(expected, start=1) if i in equal]
        assert ranking.rank == (places[0] if places else None)


def test_a_model_with_clear_likes_has_little_read():
    rng = random.Random(1)
    names = [[rng.randrange(40) for _ in range(rng.randint(1, 6))] for _ in range(2000)]
    model = ScriptedModel(3, 2, (1,), spread=(-0.1, -3.0, -6.0, -9.0, -12.0))
    _, rankings = searched(model, names, SearchGoal(10))
    for variant, ranking in enumerate(rankings):
        assert [row for row, _ in ranking.names][:10] == everything(model, names, variant)[0][:10]
    assert model.read < sum(map(len, names)) / 10


def test_a_model_without_likes_has_every_name_read_once():
    """Means are all equal: no bound helps, and the search turns to reading name by name."""
    rng = random.Random(1)
    names = [[rng.randrange(9) for _ in range(rng.randint(3, 9))] for _ in range(400)]
    model = ScriptedModel(3, 0, (), spread=(-1.0,))
    _, rankings = searched(model, names, SearchGoal(10))
    assert [row for row, _ in rankings[1].names] == list(range(10 + MAX_TIES))
    assert model.read < (1 + READ_ALL_SHARE) * sum(map(len, names))


def test_scores_nearer_than_rounding_are_read_alone():
    names = [[0], [1], [2]]
    near = {(0,): -1.0, (1,): -1.0 + ROUNDING / 10, (2,): -9.0}
    model = ScriptedModel(0, 1, ())
    model.log_prob = near.__getitem__
    read = []
    trie = Trie.build(names)
    reading = search(trie, 1, 0, SearchGoal(2))
    with pytest.raises(StopIteration) as end:
        next(reading)
        while True:  # what a batch says is the wrong way round
            reading.send([(-1.5, np.array([-1.0, -1.0 - ROUNDING / 10, -9.0]))])
    ranking = rank_names(
        trie,
        end.value.value,
        0,
        SearchGoal(2),
        lambda leaf: read.append(leaf) or model.score(trie.tokens(leaf), 0),
    )
    assert [row for row, _ in ranking.names] == [1, 0]
    assert [names[trie.rows[leaf][0]] for leaf in read] == [[0], [1]]
    assert all(a >= b for (_, a), (_, b) in pairwise(ranking.names))
