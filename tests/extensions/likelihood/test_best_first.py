"""Best-first search over tries against scoring everything, with made-up models."""

import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medprobe.engine.ranking import MAX_TIES, best_indices
from medprobe.extensions.likelihood.best_first import (
    READ_ALL_SHARE,
    Contest,
    Search,
    rank_names,
    unclear,
)
from medprobe.extensions.likelihood.likeliest import ROUNDING as ROUNDINGS
from medprobe.extensions.likelihood.trie import ROOT, Trie

ROUNDING = ROUNDINGS[torch.float32]
TOKENS = st.integers(0, 3)
NAMES = st.lists(st.lists(TOKENS, min_size=1, max_size=7), min_size=1, max_size=30)
STEPS = (0.0, -0.25, -0.5, -1.0, -4.0)  # exact in binary: equal sums are equal


def children_of(trie, node):
    return trie.children_of(np.array([node]))[1].tolist()


def path(trie, node):
    return [] if node == ROOT else [*path(trie, trie.parents[node]), node]


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
        for child in children_of(trie, node):
            row = self.tokens(trie, child)
            start = len(trie.spell(node))
            firsts.append(self.log_prob(row[: start + 1]) + self.off(1) if len(row) > start else 0)
        if node == ROOT:
            return -1.5 * self.before + self.off(self.before), firsts
        row = self.tokens(trie, node)
        start = len(trie.spell(int(trie.parents[top]))) + 1
        assert len(row) >= start + bool(trie.is_leaf[node])  # there is something to read
        self.read += len(row) - start + 1
        return sum(
            self.log_prob(row[: i + 1]) + self.off(1) for i in range(start, len(row))
        ), firsts

    def tokens(self, trie, node):
        return (*trie.spell(node), *(self.after if trie.is_leaf[node] else ()))


def ranked(models, names, contests):
    """For each model the rankings of its contests, by a search of all of them at once."""
    trie = Trie.build(names)
    lengths = [(model.before, len(model.after)) for model in models]
    search = Search(trie, lengths, contests, ROUNDING)
    mark_of = np.zeros((len(models), len(trie.parents)), dtype=int)
    search.begin(range(len(models)))
    while (work := search.next()).nodes.size:
        assert (work.marks == mark_of[work.prompts, trie.parents[work.tops]]).all()
        reads = [
            models[prompt].ask(trie, top, node)
            for prompt, top, node, _ in zip(*(part.tolist() for part in work), strict=True)
        ]
        spent, firsts = zip(*reads, strict=True)
        marks = mark_of[work.prompts, work.nodes] = np.arange(1, 1 + len(spent))
        search.receive(np.array(spent), np.array([x for part in firsts for x in part]), marks)
    assert not search.unfinished()
    rankings = []
    for model, of_prompt in zip(models, contests, strict=True):
        rankings.append([])
        for contest in of_prompt:
            unsure = unclear(trie, contest).tolist()
            alone = {leaf: model.score(trie.spell(leaf), contest.variant) for leaf in unsure}
            rankings[-1].append(rank_names(trie, contest, alone))
    return rankings


def everything(model, names, variant):
    scores = [model.score(tuple(name), variant) for name in names]
    return sorted(range(len(names)), key=lambda i: (-scores[i], i)), scores


@given(NAMES)
def test_a_trie_holds_each_sequence_once(names):
    trie = Trie.build(names)
    leaves = trie.leaf_by_row.tolist()
    assert [list(trie.spell(leaf)) for leaf in leaves] == names
    assert {*leaves} == {*np.flatnonzero(trie.is_leaf)}
    assert len({*leaves}) == len({tuple(name) for name in names})
    assert [i for leaf in sorted({*leaves}) for i in trie.rows_of(leaf)] == sorted(
        range(len(names)), key=lambda i: (leaves[i], i)
    )
    paths = {leaf: [ROOT, *path(trie, leaf)] for leaf in leaves}
    for node in range(len(trie.parents)):
        depths = [len(trie.spell(leaf)) for leaf in leaves if node in paths[leaf]]
        assert (trie.max_depths[node], trie.min_depths[node]) == (max(depths), min(depths))
        assert node == ROOT or trie.depths(np.array([node])) == len(path(trie, node))
        children = trie.tokens[children_of(trie, node)].tolist()
        assert children == sorted({*children})
        fork = trie.forks[node]
        assert len(children_of(trie, fork)) != 1
        assert {leaf for leaf in leaves if fork in paths[leaf]} == {
            leaf for leaf in leaves if node in paths[leaf]
        }


@given(
    names=NAMES,
    seeds=st.lists(st.integers(0, 2**16), min_size=1, max_size=3),
    k=st.integers(1, 8) | st.just(30),
    around=st.tuples(st.integers(0, 3), st.lists(TOKENS, max_size=2)),
    with_answers=st.sets(st.integers(0, 29), max_size=3),
    variants=st.integers(1, 2),
)
def test_the_search_ranks_as_scoring_everything_does(
    names, seeds, k, around, *, with_answers, variants
):
    before, after = around
    models = [ScriptedModel(seed, before + i, tuple(after)) for i, seed in enumerate(seeds)]
    trie = Trie.build(names)
    answers = trie.leaves_of([i for i in with_answers if i < len(names)])
    equal = {row for leaf in answers for row in trie.rows_of(leaf)}
    contests = [[Contest(variant, k, answers) for variant in range(variants)] for _ in models]
    for model, rankings in zip(models, ranked(models, names, contests), strict=True):
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
    [rankings] = ranked([model], names, [[Contest(0, 10), Contest(1, 10)]])
    for variant, ranking in enumerate(rankings):
        assert [row for row, _ in ranking.names][:10] == everything(model, names, variant)[0][:10]
    assert model.read < sum(map(len, names)) / 10


def test_a_model_without_likes_has_every_name_read_once():
    """Means are all equal: no bound helps, and the search reads all that is left."""
    rng = random.Random(1)
    names = [[rng.randrange(9) for _ in range(rng.randint(3, 9))] for _ in range(400)]
    model = ScriptedModel(3, 0, (), spread=(-1.0,))
    [[ranking]] = ranked([model], names, [[Contest(1, 10)]])
    assert [row for row, _ in ranking.names] == list(range(10 + MAX_TIES))
    assert model.read < (1 + READ_ALL_SHARE) * sum(map(len, names))


def test_scores_nearer_than_rounding_are_read_alone():
    names = [[0], [1], [2]]
    trie = Trie.build(names)
    contest = Contest(0, 2)
    search = Search(trie, [(1, 0)], [[contest]], ROUNDING)
    search.begin([0])
    search.next()
    # what a batch says is the wrong way round
    search.receive(np.array([-1.5]), np.array([-1.0, -1.0 - ROUNDING / 10, -9.0]), np.array([1]))
    assert not search.next().nodes.size
    read = unclear(trie, contest).tolist()
    assert [names[i] for leaf in read for i in trie.rows_of(leaf)] == [[0], [1]]
    ranking = rank_names(trie, contest, dict(zip(read, (-2.5, -2.5 + ROUNDING / 10), strict=True)))
    assert [row for row, _ in ranking.names] == [1, 0]
    assert all(a >= b for (_, a), (_, b) in pairwise(ranking.names))
