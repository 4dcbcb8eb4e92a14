"""Is a right answer among the k likeliest names? Names that are ahead of the best one decide.

A *contest* is of some answers against all names: it is decided as soon as k names are certainly
likelier than the likeliest answer can be, or as no unread name can be as likely as that. What is
read of a name bounds it, as in `best_first`. A node that cannot reach the best answer is dropped.

Any node that can may be opened next; the order decides the cost. The answers come first, since
their scores drop nodes. Then the node is opened below which the likeliest name is expected: each
unread token of the nearest name below is reckoned at UNREAD nats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from medprobe.extensions.likelihood import best_first
from medprobe.extensions.likelihood.best_first import (
    SearchGoal,
    SearchResult,
    SearchState,
    SearchSteps,
    VariantRanking,
    slack_of,
)
from medprobe.extensions.likelihood.trie import ROOT, Trie

UNREAD: Final = 6.0  # nats a token; decisions.md has what others cost
SHARE: Final = 0.1  # of the nodes opened so far: so many are opened at once


@dataclass
class Contest:
    """Answers against all names, by one variant.

    Attributes:
        variant: The index of the variant in `VARIANTS`.
        k: So many names ahead decide.
        answers: Leaves.
        outcome: Once decided, k names ahead; or all names that are as likely as the best answer.
    """

    variant: int
    k: int
    answers: tuple[int, ...]
    outcome: SearchResult | None = field(default=None, init=False)


def search(trie: Trie, before: int, after: int, contests: Sequence[Contest]) -> SearchSteps[None]:
    """Decide contests: yield nodes to read, receive their scores, as `best_first.search` does.

    Args:
        trie: The names.
        before: Tokens of the prompt before its slot that are scored.
        after: Tokens of the prompt after its slot.
        contests: They get their outcomes.
    """
    lengths = before + after + trie.max_depths
    nearest = before + after + trie.min_depths
    slack = slack_of(float(lengths[ROOT]))
    paths = [trie.paths(contest.answers) for contest in contests]
    [(start, firsts)] = yield [(ROOT, ROOT)]
    state = SearchState(trie, after, start + firsts)
    undecided = list(zip(contests, paths, strict=True))
    while True:
        state.close_complete()
        scores = np.stack([state.totals, state.totals / lengths[state.leaves]])
        bounds = np.stack([state.sums, state.sums / lengths[state.nodes]])
        counts = trie.name_counts[state.leaves]
        nearest_length = nearest[state.nodes]
        unread = nearest_length - before - trie.starts[state.nodes] - 1
        hopes = state.sums - UNREAD * unread
        hopes = np.stack([hopes, hopes / nearest_length])
        width = max(1, int(SHARE * state.opened))
        opening, useful = np.zeros((2, len(state.nodes)), dtype=bool)
        waiting = []
        for contest, path in undecided:
            v = contest.variant
            best = scores[v][np.isin(state.leaves, contest.answers)].max(initial=-np.inf)
            can_reach = bounds[v] >= best - slack[v]
            is_answer = can_reach & np.isin(state.nodes, path)
            possible = bounds[v][is_answer].max(initial=best)
            ahead = scores[v] > possible + slack[v]
            is_won = counts[ahead].sum() >= contest.k
            if is_won or not can_reach.any():
                kept = ahead if is_won else scores[v] >= best - slack[v]
                contest.outcome = SearchResult(state.leaves[kept], scores[:, kept], slack)
                continue
            candidates = np.flatnonzero(is_answer if is_answer.any() else can_reach)
            order = np.argsort(-hopes[v][candidates], kind="stable")
            opening[candidates[order[:width]]] = True
            useful |= can_reach
            waiting.append((contest, path))
        undecided = waiting
        if not undecided:
            return
        opening = opening[useful]
        state.keep(useful)
        state.open(opening, (yield state.requests(opening)))


def rank_contest(
    trie: Trie, contest: Contest, score_alone: Callable[[int], float]
) -> VariantRanking:
    """Rank the names of a decided contest, as `best_first.rank_names` does.

    Returns:
        k names ahead of the best answer; or, if it is among the k best, these names up to it and to
        what equals it, and its rank.
    """
    assert contest.outcome is not None
    goal = SearchGoal(contest.k, contest.answers)
    ranked = best_first.rank_names(trie, contest.outcome, contest.variant, goal, score_alone)
    return cut_behind(ranked)


def cut_behind(ranked: VariantRanking) -> VariantRanking:
    """Remove the names behind the best answer.

    >>> cut_behind(VariantRanking([(7, -1.0), (3, -2.0), (4, -2.0), (1, -9.0)], rank=2)).names
    [(7, -1.0), (3, -2.0), (4, -2.0)]
    """
    names, rank = ranked.names, ranked.rank
    if rank is None or rank > len(names):
        return ranked
    return VariantRanking([item for item in names if item[1] >= names[rank - 1][1]], rank)
