"""The likeliest of many names without scoring them all: best-first search over their trie.

A log-probability is at most zero, so that what is read of a name bounds the whole of it. Let s be
the sum so far of a filled prompt that is read up to a node, and n the tokens of the longest one
that goes through that node. Then the total log-likelihood of each is at most s, and its mean over
tokens at most s / n: a sum of at most s over at most n tokens, and s is not positive.

A *contest* asks about the names after one prompt. Either for the k best: nothing below a node whose
bound is below the k-th best score can be among them, and what is left is opened. Or whether an
answer is among the k best: it is decided as soon as k names are certainly likelier than the
likeliest answer can be, or as no unread name can be as likely as that. Answers are opened first,
since their scores drop nodes, then the nodes below which the likeliest names are expected: each
unread token of the nearest name below is reckoned at UNREAD nats. Order decides the cost alone.

In floating point all this holds up to rounding, and a score's last bits depend on which rows shared
a batch. So each comparison leaves a slack: with e the largest difference between two readings of
one token (`likeliest.ROUNDING`), a score of n tokens is known up to n·e and a mean up to e, hence
what is more than twice that apart is in order. A node is dropped only where its bound is further
than the slack below what it must reach; names whose scores lie within the slack of one another are
read once more, in float32 and from the prompt's first token, so that nothing but the model and the
text decides (`unclear`). Equal scores go by name, as everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from medprobe.engine import ranking
from medprobe.extensions.likelihood.rankers import VariantRanking
from medprobe.extensions.likelihood.trie import NO_TOKEN, ROOT, Trie, ranges

UNREAD: Final = 6.0  # nats a token; decisions.md has what others cost
SHARE: Final = 0.1  # of the nodes opened so far: so many are opened at once
READ_ALL_SHARE: Final = 0.2  # of the tokens of all names: a list that needs more has all read


@dataclass
class Contest:
    """What is asked about the names after one prompt, by one variant.

    Attributes:
        variant: The index of the variant in `VARIANTS`.
        k: How many names are ranked.
        answers: Leaves. The rank of the best is needed, too.
        ahead: Only whether it is among the k best, and if it is, the names up to it.
        lost: Once decided: k names are ahead.
        leaves: Those that were scored. No other can be among the best, or as likely as the answer.
        scores: Of these leaves.
        slack: Scores further apart are in order.
    """

    variant: int
    k: int
    answers: tuple[int, ...] = ()
    ahead: bool = False
    lost: bool = field(default=False, init=False)
    leaves: np.ndarray = field(init=False)
    scores: np.ndarray = field(init=False)
    slack: float = field(init=False)


class Work(NamedTuple):
    """Nodes to read, each after a prompt, from the first token of the node `top` on.

    `top` is the node itself or one above it, with single children in between. What is read of each
    are the log-probability of its tokens but the first, and that of each child's first token. A
    leaf's tokens are its own and those after the slot; the root's are those before it.
    """

    prompts: np.ndarray
    tops: np.ndarray
    nodes: np.ndarray


class Search:
    """All contests over one trie: their prompts are read together.

    Its state are arrays over the open nodes of all prompts, and over the leaves that were scored.

    Args:
        trie: The names.
        lengths: For each prompt the tokens before its slot that are scored, and those after it.
        contests: For each prompt what is asked; none if it is not of this trie.
        rounding: The largest difference between two readings of a token.
    """

    def __init__(
        self,
        trie: Trie,
        lengths: Sequence[tuple[int, int]],
        contests: Sequence[Sequence[Contest]],
        rounding: float,
    ) -> None:
        self.trie, self.contests = trie, [contest for part in contests for contest in part]
        before, after = np.array(lengths, dtype=int).reshape(-1, 2).T
        self.after, self.lengths = after, before + after
        self.counts = np.array([len(part) for part in contests], dtype=int)
        self.starts = np.cumsum(self.counts) - self.counts
        self.prompt_of = np.repeat(np.arange(len(self.counts)), self.counts)
        self.is_mean = np.array([contest.variant == 1 for contest in self.contests], dtype=bool)
        self.is_ahead = np.array([contest.ahead for contest in self.contests], dtype=bool)
        self.k = np.array([contest.k for contest in self.contests], dtype=int)
        self.answers = np.array([len(contest.answers) for contest in self.contests], dtype=int)
        longest = self.lengths[self.prompt_of] + trie.max_depths[ROOT]
        self.slack = 2 * rounding * np.where(self.is_mean, 1, longest)
        self.paths, self.prompt_paths = self._paths()
        self.undecided = np.zeros(len(self.contests), dtype=bool)
        self.all_tokens = trie.max_depths[trie.is_leaf].sum() + after * trie.is_leaf.sum()
        self.opened, self.tokens_read = np.zeros((2, len(self.counts)), dtype=int)
        self.open = self._rows([], [], [])  # read up to their parents, and their first token
        self.scored = self.open  # leaves that are read to their ends
        self.opening = np.zeros(0, dtype=bool)  # of the open nodes, those of `work`
        self.work = Work(*np.zeros((3, 0), dtype=int))

    def _paths(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes down to answers, as keys of contests, and of prompts, in order."""
        size = len(self.trie.parents)
        owners = np.repeat(np.arange(len(self.contests)), self.answers)
        nodes = np.array([leaf for contest in self.contests for leaf in contest.answers], dtype=int)
        parts = []
        while len(nodes):
            parts.append(owners * size + nodes)
            nodes = self.trie.parents[nodes].astype(int)
            owners, nodes = owners[nodes != ROOT], nodes[nodes != ROOT]
        keys = np.unique(np.concatenate([np.zeros(0, dtype=int), *parts]))
        return keys, np.unique(self.prompt_of[keys // size] * size + keys % size)

    def begin(self, prompt: int) -> None:
        """Open the root for a prompt."""
        start = self.starts[prompt]
        self.undecided[start : start + self.counts[prompt]] = True
        self.open = self.open.plus(self._rows([prompt], [ROOT], [0.0]))

    def unfinished(self) -> set[int]:
        """Return the prompts that have begun and have undecided contests."""
        return {*self.prompt_of[self.undecided].tolist()}

    def _rows(self, prompts: Any, nodes: Any, sums: Any) -> "_Rows":
        prompts, nodes = np.asarray(prompts, dtype=int), np.asarray(nodes, dtype=int)
        keys = prompts * len(self.trie.parents) + nodes
        return _Rows(prompts, nodes, np.asarray(sums, dtype=float), _is_in(keys, self.prompt_paths))

    def next(self) -> Work:
        """Decide what can be decided, and return what is to be read for the rest."""
        trie = self.trie
        left = (trie.tokens[self.open.nodes] != NO_TOKEN) + self.after[self.open.prompts]
        complete = trie.is_leaf[self.open.nodes] & (left <= 1)
        self.scored = self.scored.plus(self.open.where(complete))
        self.open = self.open.where(~complete)
        leaf, of_leaf = self._pairs(self.scored)
        row, of_row = self._pairs(self.open)
        scores, bounds = (
            self._bounds(self.scored, leaf, of_leaf),
            self._bounds(self.open, row, of_row),
        )
        names = trie.name_counts[self.scored.nodes[leaf]]
        best, floor = self._floors(scores, names, leaf, of_leaf)
        on_path = self._on_path(self.open, row, of_row)
        can_reach = bounds >= (floor - self.slack)[of_row]
        can_reach |= on_path & ~self.is_ahead[of_row]  # the answers' ranks are wanted
        possible = best.copy()
        is_first = can_reach & on_path
        np.maximum.at(possible, of_row[is_first], bounds[is_first])
        is_ahead = self.is_ahead[of_leaf] & (scores > (possible + self.slack)[of_leaf])
        lost = self._count(of_leaf[is_ahead], names[is_ahead]) >= np.where(
            self.is_ahead, self.k, np.inf
        )
        decided = self.undecided & (lost | (self._count(of_row[can_reach]) == 0))
        kept = (decided & ~lost)[of_leaf] & (scores >= (floor - self.slack)[of_leaf])
        self._finish(decided, lost, self.scored.nodes[leaf[kept]], scores[kept], of_leaf[kept])
        self._choose(row, of_row, can_reach & self.undecided[of_row], is_first)
        return self.work

    def _pairs(self, rows: "_Rows") -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of the place of a row and an undecided contest of its prompt."""
        counts = self.counts[rows.prompts]
        places = np.repeat(np.arange(len(counts)), counts)
        contests = ranges(self.starts[rows.prompts], counts)
        undecided = self.undecided[contests]
        return places[undecided], contests[undecided]

    def _bounds(self, rows: "_Rows", places: np.ndarray, contests: np.ndarray) -> np.ndarray:
        """Return the most that each pair's score can be: of a scored leaf it is the score."""
        lengths = self.lengths[rows.prompts] + self.trie.max_depths[rows.nodes]
        return rows.sums[places] / np.where(self.is_mean[contests], lengths[places], 1)

    def _on_path(self, rows: "_Rows", places: np.ndarray, contests: np.ndarray) -> np.ndarray:
        """Return for each pair whether the node is on the way to an answer of the contest."""
        found = rows.needed[places]
        keys = contests[found] * len(self.trie.parents) + rows.nodes[places[found]]
        found[found] = _is_in(keys, self.paths)
        return found

    def _count(self, contests: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(contests, weights, minlength=len(self.contests))

    def _floors(
        self, scores: np.ndarray, names: np.ndarray, leaf: np.ndarray, of_leaf: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for each contest the best answer's score so far, and what a node must reach.

        That is the best answer's score, or the k-th best score, or the lower of both for a list
        with the rank of an answer.
        """
        best, kth = np.full((2, len(self.contests)), -np.inf)
        right = self._on_path(self.scored, leaf, of_leaf)
        np.maximum.at(best, of_leaf[right], scores[right])
        order = np.lexsort((-scores, of_leaf))
        owners, counts = of_leaf[order], names[order]
        totals = np.cumsum(counts)
        before = totals - counts
        before -= before[np.searchsorted(owners, owners)]
        is_kth = (before < self.k[owners]) & (before + counts >= self.k[owners])
        kth[owners[is_kth]] = scores[order][is_kth]
        all_scored = self._count(of_leaf[right]) == self.answers
        ranked = np.where(all_scored, np.minimum(kth, best), -np.inf)
        return best, np.where(self.is_ahead, best, np.where(self.answers > 0, ranked, kth))

    def _finish(self, decided: np.ndarray, lost: np.ndarray, *found: np.ndarray) -> None:
        """Give decided contests their leaves, scores of `found`, and forget what only they need."""
        leaves, scores, contests = found
        order = np.argsort(contests, kind="stable")
        numbers = np.flatnonzero(decided)
        ends = np.searchsorted(contests[order], [numbers, numbers + 1]).T
        for number, (low, high) in zip(numbers.tolist(), ends.tolist(), strict=True):
            contest, mine = self.contests[number], order[low:high]
            contest.lost, contest.slack = bool(lost[number]), float(self.slack[number])
            contest.leaves, contest.scores = leaves[mine], scores[mine]
        self.undecided &= ~decided
        if len(numbers):
            waits = np.zeros(len(self.counts), dtype=bool)
            waits[self.prompt_of[self.undecided]] = True
            self.scored = self.scored.where(waits[self.scored.prompts])

    def _choose(
        self, row: np.ndarray, of_row: np.ndarray, can_reach: np.ndarray, is_first: np.ndarray
    ) -> None:
        """Drop the nodes that no contest needs, and choose what is read next."""
        trie, nodes, prompts = self.trie, self.open.nodes, self.prompt_of
        spent = self.tokens_read > READ_ALL_SHARE * self.all_tokens
        reads_all = ~self.is_ahead & (spent[prompts] | (self.k >= len(trie.leaf_by_row)))
        waits = self._count(of_row[is_first]) > 0
        candidates = np.flatnonzero(can_reach & (is_first | (reads_all | ~waits)[of_row]))
        places, contests = row[candidates], of_row[candidates]
        nearest = self.lengths[self.open.prompts] + trie.min_depths[nodes]
        unread = trie.min_depths[nodes] - trie.depths(nodes) + self.after[self.open.prompts]
        hopes = (self.open.sums - UNREAD * unread)[places]
        hopes /= np.where(self.is_mean[contests], nearest[places], 1)
        order = np.lexsort((-hopes, contests))
        owners = contests[order]
        ranks = np.arange(len(order)) - np.searchsorted(owners, owners)
        width = np.where(reads_all, len(nodes), np.maximum(1, SHARE * self.opened[prompts]))
        self.opening, useful = np.zeros((2, len(nodes)), dtype=bool)
        self.opening[places[order[ranks < width.astype(int)[owners]]]] = True
        useful[row[can_reach]] = True
        self.opening, self.open = self.opening[useful], self.open.where(useful)
        chosen = self.open.where(self.opening)
        whole = np.zeros(len(self.counts), dtype=bool)
        whole[prompts[reads_all & self.undecided]] = True
        whole = whole[chosen.prompts] & (chosen.nodes != ROOT)
        ends = np.where(whole, trie.forks[chosen.nodes], chosen.nodes)
        self.work = Work(chosen.prompts, chosen.nodes, ends)

    def receive(self, spent: np.ndarray, firsts: np.ndarray) -> None:
        """Replace the nodes of `work`, by what was read of all, by their children or scores."""
        trie, (prompts, tops, nodes) = self.trie, self.work
        sums, is_leaf = self.open.sums[self.opening] + spent, trie.is_leaf[nodes]
        read = trie.depths(nodes) - trie.depths(tops) + 1 + self.after[prompts] * is_leaf
        self.tokens_read += np.bincount(prompts, read, len(self.counts)).astype(int)
        self.opened += np.bincount(prompts, minlength=len(self.counts))
        self.scored = self.scored.plus(self._rows(prompts[is_leaf], nodes[is_leaf], sums[is_leaf]))
        counts, children = trie.children_of(nodes)
        below = self._rows(np.repeat(prompts, counts), children, np.repeat(sums, counts) + firsts)
        self.open = self.open.where(~self.opening).plus(below)


class _Rows(NamedTuple):
    """Nodes of prompts: the log-probability of what is read of each, and whether it is needed.

    A node on the way to an answer of any contest is needed.
    """

    prompts: np.ndarray
    nodes: np.ndarray
    sums: np.ndarray
    needed: np.ndarray

    def where(self, mask: np.ndarray) -> "_Rows":
        return _Rows(*(part[mask] for part in self))

    def plus(self, rows: "_Rows") -> "_Rows":
        return _Rows(*map(np.append, self, rows))


def _is_in(keys: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return which keys are among others, which are sorted."""
    places = np.searchsorted(among, keys)
    places[places == len(among)] = 0
    return among[places] == keys if len(among) else np.zeros(len(keys), dtype=bool)


def unclear(trie: Trie, contest: Contest) -> np.ndarray:
    """Return the leaves of a decided contest whose scores are too near others to be in order."""
    count = len(contest.leaves)
    if not count:
        return contest.leaves
    order = np.argsort(-contest.scores, kind="stable")
    run_ids = np.empty(count, dtype=int)  # those of one run are too near, one to the next
    run_ids[order] = np.cumsum(np.diff(-contest.scores[order], prepend=-np.inf) > contest.slack)
    counts = np.cumsum(trie.name_counts[contest.leaves][order])
    last = order[min(int(np.searchsorted(counts, contest.k)), count - 1)]
    uncertain = run_ids <= run_ids[last]
    answers = np.isin(contest.leaves, contest.answers)
    if answers.any():
        uncertain |= run_ids == run_ids[answers].min()
    return contest.leaves[uncertain & (np.bincount(run_ids)[run_ids] > 1)]


def rank_names(trie: Trie, contest: Contest, alone: Mapping[int, float]) -> VariantRanking:
    """Rank the names of a decided contest; equal scores go by the names' order.

    Args:
        trie: The names.
        contest: Decided. Of one about an answer, the names are those up to it.
        alone: The scores of the leaves that are `unclear`, whatever else was read with them.
    """
    scores = [
        alone.get(leaf, score)
        for leaf, score in zip(contest.leaves.tolist(), contest.scores.tolist(), strict=True)
    ]
    rows = [
        (-score, row, leaf)
        for leaf, score in zip(contest.leaves.tolist(), scores, strict=True)
        for row in trie.rows_of(leaf)
    ]
    rows.sort()
    ranked = -np.array([score for score, *_ in rows])
    best = ranking.best_indices(ranked, contest.k, ranking.MAX_TIES)
    names = [(rows[i][1], float(ranked[i])) for i in best]
    rank = next((i for i, row in enumerate(rows, start=1) if row[2] in contest.answers), None)
    found = VariantRanking(names, rank)
    return VariantRanking(found.up_to_answer, rank) if contest.ahead else found
