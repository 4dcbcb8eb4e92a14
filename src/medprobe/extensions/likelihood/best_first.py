"""The k likeliest of many names without scoring them all: best-first search over their trie.

A log-probability is at most zero, so that what is read of a name bounds the whole of it. Let s be
the sum so far of a filled prompt that is read up to a node, and n the tokens of the longest one
that goes through that node. Then the total log-likelihood of each is at most s, and its mean over
tokens at most s / n: a sum of at most s over at most n tokens, and s is not positive. The node with
the best bound is opened first. As soon as the k-th best score found is above the bounds of all that
is unopened, nothing unopened can be among the k best, and the search ends.

In floating point this holds up to rounding, and a score's last bits depend on which rows shared a
batch. So each comparison leaves a slack: with e the largest difference between two readings of one
token (ROUNDING), a score of n tokens is known up to n·e and a mean up to e, hence what is more than
twice that apart is in order. A node is dropped only where its bound is further than the slack below
the k-th score; names whose scores lie within the slack of one another are read once more, each
alone in a batch of one, from the prompt's first token (`rank_names`). Such a score depends on
nothing but the model and the text, and so do the ranks; equal scores go by name, as everywhere.
ROUNDING is of float32: in bfloat16 ranks can move with batches, as all scores do there.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np

from medprobe.engine import ranking
from medprobe.engine.slots import WritingPrompt
from medprobe.extensions.likelihood.trie import ROOT, Trie

VARIANTS: Final = ("", "per_token")  # the total of log-probabilities, and their mean


@dataclass(frozen=True)
class Ranking:
    """What is ranked, and how far.

    Attributes:
        names: The names to rank; equal scores go by their order.
        k: How many names are ranked.
        answers: For each prompt the indices of names whose best rank is needed too.
        variants: 1 ranks by the total alone, 2 by the mean per token too.
        ahead: Not the best names are needed, but as many that are ahead of the best of `answers`;
            or all that are, and this answer. A backend may rank the best all the same.
    """

    names: Sequence[str]
    k: int
    answers: Sequence[Sequence[int]] = ()
    variants: int = len(VARIANTS)
    ahead: bool = False


@dataclass(frozen=True)
class VariantRanking:
    """The ranking of one variant."""

    names: list[tuple[int, float]]  # the k best, and ties (`ranking.best_indices`): index and score
    rank: int | None = None  # of the best answer among all names, if answers were given


@runtime_checkable
class Ranker(Protocol):
    """What ranks names: a backend from outside, or `likeliest.TrieRanker`."""

    def tokenize(self, prompts: Sequence[str], where: Sequence[str]) -> list[WritingPrompt]:
        """Return the slots of prompts, with all of the text after them."""
        ...

    def find_likeliest(
        self, prompts: Sequence[WritingPrompt], where: Sequence[str], ranking: Ranking
    ) -> list[list[VariantRanking]]:
        """Return for each tokenised prompt the ranking of names by each variant."""
        ...


def rank_by_scores(
    scores: Sequence[float] | np.ndarray, k: int, answers: Sequence[int] = ()
) -> VariantRanking:
    """Rank names by a score for each; ties go by their order.

    >>> rank_by_scores([0.5, 2.0, 1.0], 2, answers=[0]).names
    [(1, 2.0), (2, 1.0)]
    """
    values = np.asarray(scores, float)
    order = [int(i) for i in ranking.best_indices(values, k, ranking.MAX_TIES)]
    rank = None
    if len(answers):
        places = np.flatnonzero(np.isin(ranking.best_indices(values, len(values)), answers))
        rank = int(places.min()) + 1
    return VariantRanking([(i, float(values[i])) for i in order], rank)


NodeScores = tuple[float, np.ndarray]  # see `search`
NodeRequest = tuple[int, int]
Outcome = TypeVar("Outcome")
SearchSteps = Generator[list[NodeRequest], list[NodeScores], Outcome]

# Nats a token. Sums of the same log-probabilities in another order differed by 2e-7 to 6e-6.
ROUNDING: Final = 2e-5
WIDTH: Final = 2  # nodes opened at once at first; later a share of those opened so far
SHARE: Final = 0.125
READ_ALL_SHARE: Final = (
    0.2  # of the tokens of all names: a search that has read more reads the rest by name
)


@dataclass(frozen=True)
class SearchGoal:
    """What a search looks for: the k best leaves of each variant, and the ranks of `answers`."""

    k: int
    answers: tuple[int, ...] = ()  # leaves
    variants: int = len(VARIANTS)  # 1: the total alone, which needs a tenth of the nodes or less


@dataclass(frozen=True)
class SearchResult:
    """The leaves that were scored; no other can be among the best."""

    leaves: np.ndarray
    scores: np.ndarray  # [variants, leaves]
    slack: np.ndarray  # [variants]: scores further apart are in order


def search(trie: Trie, before: int, after: int, aim: SearchGoal) -> SearchSteps[SearchResult]:
    """Search for the likeliest leaves: yield nodes to read, receive their scores.

    Each yielded item lists pairs of nodes `(top, node)`: `top` is `node` itself or a node above it,
    from whose first token on `node` is to be read. What is sent back has for each pair the
    log-probability of these tokens but the first, and of the first token of each child, [children].
    A leaf's tokens are those of its edge and `after` more. The root comes first; its tokens are the
    prompt's before the slot, without the token that a text begins with.

    Where the bounds leave too much to read, the search reads name by name: open nodes are replaced
    by the leaves below them, each with its own bound.

    Args:
        trie: The names.
        before: Tokens of the prompt before its slot that are scored.
        after: Tokens of the prompt after its slot.
        aim: What to look for.

    Returns:
        The leaves that were scored, as the generator's return value.
    """
    lengths = before + after + trie.max_depths
    slack = slack_of(float(lengths[ROOT]))[: aim.variants]
    answer_nodes = np.array(
        sorted({node for leaf in aim.answers for node in trie.path(leaf)}), dtype=int
    )
    [(start, firsts)] = yield [(ROOT, ROOT)]
    state = SearchState(trie, after, start + firsts)
    while True:
        state.close_complete()
        scores = np.stack([state.totals, state.totals / lengths[state.leaves]][: aim.variants])
        bounds = np.stack([state.sums, state.sums / lengths[state.nodes]][: aim.variants])
        can_improve = bounds >= (_threshold(trie, state.leaves, scores, aim) - slack)[:, None]
        needed = np.isin(state.nodes, answer_nodes)
        unpruned = can_improve.any(0) | needed
        state.keep(unpruned)
        bounds, can_improve = bounds[:, unpruned], can_improve[:, unpruned]
        needed = needed[unpruned]
        if not len(state.nodes):
            return SearchResult(state.leaves, scores, slack)
        if not state.by_name and state.tokens_read > READ_ALL_SHARE * state.all_tokens:
            state.split_into_leaves()
            continue
        opening = needed | _widest(bounds, can_improve, max(WIDTH, int(SHARE * state.opened)))
        state.open(opening, (yield state.requests(opening)))


def slack_of(length: float) -> np.ndarray:
    """Return for each variant how near scores of at most so many tokens are of unknown order."""
    return 2 * ROUNDING * np.array([length, 1.0])


class SearchState:
    """The scored leaves, and the open nodes, which can still be read.

    Attributes:
        nodes: The open nodes.
        tops: For each of them the node from whose first token on it is to be read.
        sums: For each of them the log-probability of what is read of it.
        leaves: The leaves that are read to their ends.
        totals: For each of them its log-probability.
        opened: How many nodes were read.
        tokens_read: How many tokens these have.
        by_name: Whether the open nodes are leaves only.
    """

    def __init__(self, trie: Trie, after: int, sums: np.ndarray) -> None:
        self.trie, self.after = trie, after
        self.costs = trie.edge_lengths + after * trie.is_leaf
        self.all_tokens = trie.size + after * trie.is_leaf.sum()
        self.nodes = self.tops = trie.children[ROOT]
        self.sums = sums
        self.leaves, self.totals = np.empty(0, dtype=int), np.empty(0)
        self.opened = self.tokens_read = 0
        self.by_name = False

    def close_complete(self) -> None:
        """Close the open leaves that have no token left to read: their sums are their scores."""
        depths = self.trie.max_depths[self.nodes] - self.trie.starts[self.tops]
        complete = self.trie.is_leaf[self.nodes] & (depths + self.after <= 1)
        self._score(self.nodes[complete], self.sums[complete])
        self.keep(~complete)

    def keep(self, mask: np.ndarray) -> None:
        """Drop the open nodes outside the mask."""
        self.nodes, self.tops, self.sums = self.nodes[mask], self.tops[mask], self.sums[mask]

    def split_into_leaves(self) -> None:
        """Replace each open node by the leaves below it."""
        leaves_below = [self.trie.leaves(node) for node in self.nodes]
        counts = [len(leaves) for leaves in leaves_below]
        self.nodes = np.concatenate(leaves_below)
        self.tops, self.sums = self.tops.repeat(counts), self.sums.repeat(counts)
        self.by_name = True

    def requests(self, opening: np.ndarray) -> list[NodeRequest]:
        """Return what to read for the open nodes of the mask `opening`."""
        return list(zip(self.tops[opening].tolist(), self.nodes[opening].tolist(), strict=True))

    def open(self, opening: np.ndarray, reads: list[NodeScores]) -> None:
        """Replace the open nodes of a mask, by what was read, by their children or their scores."""
        nodes = self.nodes[opening]
        sums = self.sums[opening] + [log_prob for log_prob, _ in reads]
        is_leaf = self.trie.is_leaf[nodes]
        self._score(nodes[is_leaf], sums[is_leaf])
        self.opened += len(reads)
        self.tokens_read += int(self.costs[nodes].sum())
        self.keep(~opening)
        inner = np.flatnonzero(~is_leaf)
        children = np.concatenate([nodes[:0], *(self.trie.children[nodes[i]] for i in inner)])
        self.nodes, self.tops = np.append(self.nodes, children), np.append(self.tops, children)
        self.sums = np.concatenate([self.sums, *(sums[i] + reads[i][1] for i in inner)])

    def _score(self, leaves: np.ndarray, totals: np.ndarray) -> None:
        self.leaves, self.totals = np.append(self.leaves, leaves), np.append(self.totals, totals)


def _threshold(trie: Trie, leaves: np.ndarray, scores: np.ndarray, aim: SearchGoal) -> np.ndarray:
    """Return for each variant the score below which no node needs to be read.

    It is the k-th best score so far, or that of the best answer where it is lower.
    """
    counts = trie.name_counts[leaves]
    if counts.sum() < aim.k:
        return np.full(len(scores), -np.inf)
    by_name = np.repeat(scores, counts, axis=1)
    threshold: np.ndarray = np.partition(by_name, -aim.k, axis=1)[:, -aim.k]
    if aim.answers:
        answers = np.isin(leaves, aim.answers)
        if answers.sum() < len(aim.answers):
            return np.full(len(scores), -np.inf)
        threshold = np.minimum(threshold, scores[:, answers].max(1))
    return threshold


def _widest(bounds: np.ndarray, can_improve: np.ndarray, width: int) -> np.ndarray:
    """Return a mask of the nodes to open: for each variant those with the `width` best bounds."""
    selected = np.zeros(bounds.shape[1], dtype=bool)
    for variant_bounds, candidates in zip(bounds, can_improve, strict=True):
        indices = np.flatnonzero(candidates)
        selected[indices[np.argsort(-variant_bounds[indices], kind="stable")[:width]]] = True
    return selected


def rank_names(
    trie: Trie,
    result: SearchResult,
    variant: int,
    aim: SearchGoal,
    score_alone: Callable[[int], float],
) -> VariantRanking:
    """Rank the names of the leaves that were scored; equal scores go by the names' order.

    Args:
        trie: The names.
        result: What the search found.
        variant: The index of the variant in `VARIANTS`.
        aim: What was searched for.
        score_alone: Returns a leaf's score in this variant, computed in a batch of one. It decides
            where scores are too near one another for their order to be certain.
    """
    scores, slack = result.scores[variant].copy(), result.slack[variant]
    score_order = np.argsort(-scores, kind="stable")
    run_ids = np.empty(len(scores), dtype=int)  # those of one run are too near, one to the next
    run_ids[score_order] = np.cumsum(np.diff(-scores[score_order], prepend=-np.inf) > slack)
    counts = np.cumsum(trie.name_counts[result.leaves][score_order])
    last_index = (
        score_order[min(int(np.searchsorted(counts, aim.k)), len(counts) - 1)] if len(counts) else 0
    )
    uncertain = run_ids <= run_ids[last_index] if len(counts) else run_ids > 0
    answers = np.isin(result.leaves, aim.answers)
    if answers.any():
        uncertain |= run_ids == run_ids[answers].min()
    in_run = np.bincount(run_ids)[run_ids] > 1 if len(run_ids) else uncertain
    for index in np.flatnonzero(uncertain & in_run):
        scores[index] = score_alone(int(result.leaves[index]))
    rows = [(row, place) for place, leaf in enumerate(result.leaves) for row in trie.rows[leaf]]
    rows.sort(key=lambda item: (-scores[item[1]], item[0]))
    ranked = np.array([scores[place] for _, place in rows])
    best = [
        (rows[i][0], float(ranked[i]))
        for i in ranking.best_indices(ranked, aim.k, ranking.MAX_TIES)
    ]
    rank = next((i for i, (_, place) in enumerate(rows, start=1) if answers[place]), None)
    return VariantRanking(best, rank)
