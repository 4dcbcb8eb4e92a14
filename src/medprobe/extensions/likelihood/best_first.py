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
a batch. With e the largest difference between two readings of one token (`likeliest.ROUNDING`), a
sum over n tokens is known up to n·e, and so every number here has an error. Two are in order where
they are further apart than both errors; a node is dropped only where that holds for its bound and
what it must reach; names whose order is not certain are read once more, in float32 and from the
prompt's first token, so that nothing but the model and the text decides (`unclear`). Equal scores
go by name, as everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from medprobe.extensions.likelihood.rankers import VariantRanking, rank_by_scores
from medprobe.extensions.likelihood.trie import NO_TOKEN, ROOT, Trie, ranges

UNREAD: Final = 6.0  # nats a token; decisions.md has what others cost
SHARE: Final = 0.1  # of the nodes opened so far: so many are opened at once
SPAN: Final = 1e5  # nats: twice as many as a name is short of certain, at most
READ_ALL_SHARE: Final = 0.2  # of the tokens of all names: a list that needs more has all read


@dataclass
class Contest:
    """What is asked about the names after one prompt, by one variant.

    Attributes:
        variant: The index of the variant in `VARIANTS`.
        k: How many names are ranked.
        answers: Leaves. The rank of the best is needed, too.
        ahead: Only whether it is among the k best, and if it is, the names up to it.
        leaves: Once decided: no other can be among the best, or as likely as the answer. None if k
            names are ahead.
        scores: Of these leaves.
        errors: How far each of them may be from the exact score.
    """

    variant: int
    k: int
    answers: tuple[int, ...] = ()
    ahead: bool = False
    leaves: np.ndarray = field(init=False)
    scores: np.ndarray = field(init=False)
    errors: np.ndarray = field(init=False)


class Work(NamedTuple):
    """Nodes to read, each after a prompt, from the first token of the node `top` on.

    `top` is the node itself or one above it, with single children in between. What is read of each
    are the log-probability of its tokens but the first, and that of each child's first token. A
    leaf's tokens are its own and those after the slot; the root's are those before it. `marks` is
    what the reader has said of the node above `top`, or 0.
    """

    prompts: np.ndarray
    tops: np.ndarray
    nodes: np.ndarray
    marks: np.ndarray


class Search:
    """All contests over one trie: their prompts are read together.

    Its state are arrays over the open nodes of all prompts, and over the leaves that were scored.
    """

    def __init__(
        self,
        trie: Trie,
        lengths: Sequence[tuple[int, int]],
        contests: Sequence[Sequence[Contest]],
        rounding: float,
    ) -> None:
        self.trie, self.contests = trie, [contest for part in contests for contest in part]
        self.before, self.after = np.array(lengths, dtype=int).reshape(-1, 2).T
        self.lengths = self.before + self.after
        self.rounding = rounding
        self.counts = np.array([len(part) for part in contests], dtype=int)
        self.starts = np.cumsum(self.counts) - self.counts
        self.prompt_of = np.repeat(np.arange(len(self.counts)), self.counts)
        self.is_mean = np.array([contest.variant == 1 for contest in self.contests], dtype=bool)
        self.is_ahead = np.array([contest.ahead for contest in self.contests], dtype=bool)
        self.k = np.array([contest.k for contest in self.contests], dtype=int)
        self.answers = np.array([len(contest.answers) for contest in self.contests], dtype=int)
        self.paths, self.prompt_paths = self._paths()
        self.undecided = np.zeros(len(self.contests), dtype=bool)
        self.all_tokens = trie.max_depths[trie.is_leaf].sum() + self.after * trie.is_leaf.sum()
        self.opened, self.tokens_read = np.zeros((2, len(self.counts)), dtype=int)
        self.open = self._rows([], [], [], [])  # read up to their parents, and their first token
        self.scored = self.open  # leaves that are read to their ends
        self.opening = np.zeros(0, dtype=bool)  # of the open nodes, those of `work`
        self.work = Work(*np.zeros((4, 0), dtype=int))

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

    def begin(self, prompts: Sequence[int]) -> None:
        """Open the root for some prompts."""
        self.undecided[ranges(self.starts[prompts], self.counts[prompts])] = True
        zeros = np.zeros(len(prompts), dtype=int)
        self.open = self.open.plus(self._rows(prompts, zeros + ROOT, zeros, zeros))

    def unfinished(self) -> set[int]:
        """Return the prompts that have begun and have undecided contests."""
        return {*self.prompt_of[self.undecided].tolist()}

    def _rows(self, prompts: Any, nodes: Any, sums: Any, marks: Any, after: Any = 0) -> "_Rows":
        """Nodes of which the first token is read, and so many tokens after it."""
        prompts, nodes, marks = (np.asarray(part, dtype=int) for part in (prompts, nodes, marks))
        sums, depths = np.asarray(sums, dtype=float), self.trie.depths(nodes)
        errors = self.rounding * (self.before[prompts] + depths + after)
        hopes = sums - UNREAD * (self.trie.min_depths[nodes] - depths + self.after[prompts])
        needed = _is_in(prompts * len(self.trie.parents) + nodes, self.prompt_paths)
        return _Rows(prompts, nodes, sums, errors, hopes, marks, needed)

    def next(self) -> Work:
        """Decide what can be decided, and return what is to be read for the rest."""
        trie = self.trie
        left = (trie.tokens[self.open.nodes] != NO_TOKEN) + self.after[self.open.prompts]
        complete = trie.is_leaf[self.open.nodes] & (left <= 1)
        self.scored = self.scored.plus(self.open.where(complete))
        self.open = self.open.where(~complete)
        leaf, of_leaf = self._pairs(self.scored)
        row, of_row = self._pairs(self.open)
        scores, errors = self._scores(self.scored, leaf, of_leaf)
        bounds = np.add(*self._scores(self.open, row, of_row))
        names = trie.name_counts[self.scored.nodes[leaf]]
        right = self._on_path(self.scored, leaf, of_leaf)
        floor = self._floors(scores - errors, names, of_leaf, right)
        on_path = self._on_path(self.open, row, of_row)
        can_reach = bounds >= floor[of_row]
        can_reach |= on_path & ~self.is_ahead[of_row]  # the answers' ranks are wanted
        possible = np.full(len(self.contests), -np.inf)  # the most that an answer can score
        is_first = can_reach & on_path
        np.maximum.at(possible, of_leaf[right], (scores + errors)[right])
        np.maximum.at(possible, of_row[is_first], bounds[is_first])
        is_ahead = self.is_ahead[of_leaf] & (scores - errors > possible[of_leaf])
        lost = self._count(of_leaf[is_ahead], names[is_ahead]) >= self.k
        decided = self.undecided & (lost | (self._count(of_row[can_reach]) == 0))
        kept = (decided & ~lost)[of_leaf] & (scores + errors >= floor[of_leaf])
        leaves = self.scored.nodes[leaf[kept]]
        self._finish(decided, leaves, scores[kept], errors[kept], of_leaf[kept])
        self._choose(row, of_row, can_reach & self.undecided[of_row], is_first)
        return self.work

    def _pairs(self, rows: "_Rows") -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of the place of a row and an undecided contest of its prompt."""
        counts = self.counts[rows.prompts]
        places = np.repeat(np.arange(len(counts)), counts)
        contests = ranges(self.starts[rows.prompts], counts)
        undecided = self.undecided[contests]
        return places[undecided], contests[undecided]

    def _scores(
        self, rows: "_Rows", places: np.ndarray, contests: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the most that each pair's score can be, of a scored leaf the score; and errors."""
        lengths = self.lengths[rows.prompts] + self.trie.max_depths[rows.nodes]
        tokens = np.where(self.is_mean[contests], lengths[places], 1)
        return rows.sums[places] / tokens, rows.errors[places] / tokens

    def _on_path(self, rows: "_Rows", places: np.ndarray, contests: np.ndarray) -> np.ndarray:
        """Return for each pair whether the node is on the way to an answer of the contest."""
        found = rows.needed[places]
        keys = contests[found] * len(self.trie.parents) + rows.nodes[places[found]]
        found[found] = _is_in(keys, self.paths)
        return found

    def _count(self, contests: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(contests, weights, minlength=len(self.contests))

    def _floors(
        self, scores: np.ndarray, names: np.ndarray, of_leaf: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """Return for each contest what a node must reach.

        That is the best answer's score so far, or the k-th best score, or the lower of both for a
        list with the rank of an answer.
        """
        best, kth = np.full((2, len(self.contests)), -np.inf)
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
        return np.where(self.is_ahead, best, np.where(self.answers > 0, ranked, kth))

    def _finish(self, decided: np.ndarray, *found: np.ndarray) -> None:
        """Give decided contests what is `found` of leaves, and forget what only they need."""
        order = np.argsort(found[-1], kind="stable")
        leaves, scores, errors, contests = (part[order] for part in found)
        numbers = np.flatnonzero(decided)
        ends = np.searchsorted(contests, [numbers, numbers + 1]).T
        for number, (low, high) in zip(numbers.tolist(), ends.tolist(), strict=True):
            contest = self.contests[number]
            contest.leaves, contest.scores = leaves[low:high], scores[low:high]
            contest.errors = errors[low:high]
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
        hopes = self.open.hopes[places] / np.where(self.is_mean[contests], nearest[places], 1)
        order = np.argsort(contests * SPAN - hopes.clip(-SPAN / 2))
        owners = contests[order]
        ranks = np.arange(len(order)) - np.searchsorted(owners, owners)
        width = np.maximum(1, SHARE * self.opened[prompts]).astype(int)
        self.opening, useful = np.zeros((2, len(nodes)), dtype=bool)
        self.opening[places[order[(ranks < width[owners]) | reads_all[owners]]]] = True
        useful[row[can_reach]] = True
        self.opening, self.open = self.opening[useful], self.open.where(useful)
        chosen = self.open.where(self.opening)
        whole = np.zeros(len(self.counts), dtype=bool)
        whole[prompts[reads_all & self.undecided]] = True
        whole = whole[chosen.prompts] & (chosen.nodes != ROOT)
        ends = np.where(whole, trie.forks[chosen.nodes], chosen.nodes)
        self.work = Work(chosen.prompts, chosen.nodes, ends, chosen.marks)

    def receive(self, spent: np.ndarray, firsts: np.ndarray, marks: np.ndarray) -> None:
        """Replace the nodes of `work`, by what was read of all, by their children or scores.

        `marks` says how the reader finds what it has read of each node.
        """
        trie, (prompts, tops, nodes, _) = self.trie, self.work
        sums, is_leaf = self.open.sums[self.opening] + spent, trie.is_leaf[nodes]
        read = trie.depths(nodes) - trie.depths(tops) + 1 + self.after[prompts] * is_leaf
        self.tokens_read += np.bincount(prompts, read, len(self.counts)).astype(int)
        self.opened += np.bincount(prompts, minlength=len(self.counts))
        ends = (part[is_leaf] for part in (prompts, nodes, sums, marks, self.after[prompts]))
        self.scored = self.scored.plus(self._rows(*ends))
        counts, children = trie.children_of(nodes)
        prompts, sums, marks = (np.repeat(part, counts) for part in (prompts, sums, marks))
        below = self._rows(prompts, children, sums + firsts, marks)
        self.open = self.open.where(~self.opening).plus(below)


class _Rows(NamedTuple):
    """Nodes of prompts, a child's first token included.

    `sums` are the log-probabilities of what is read, `hopes` the totals that are expected. A node
    on the way to an answer of any contest is needed.
    """

    prompts: np.ndarray
    nodes: np.ndarray
    sums: np.ndarray
    errors: np.ndarray
    hopes: np.ndarray
    marks: np.ndarray
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
    lows, highs = (contest.scores + sign * contest.errors for sign in (-1, 1))
    lowest = np.minimum.accumulate(lows[order])
    highest = np.maximum.accumulate(highs[order][::-1])[::-1]
    run_ids = np.empty(count, dtype=int)  # those of one run are too near, one to the next
    run_ids[order] = np.cumsum(np.append(True, lowest[:-1] > highest[1:]))
    counts = np.cumsum(trie.name_counts[contest.leaves][order])
    last = order[min(int(np.searchsorted(counts, contest.k)), count - 1)]
    uncertain = run_ids <= run_ids[last]
    answers = np.isin(contest.leaves, contest.answers)
    if answers.any():
        uncertain |= run_ids == run_ids[answers].min()
    return contest.leaves[uncertain & (np.bincount(run_ids)[run_ids] > 1)]


def rank_names(trie: Trie, contest: Contest, alone: Mapping[int, float]) -> VariantRanking:
    """Rank the names of a decided contest; equal scores go by the names' order."""
    leaves, pairs = contest.leaves, zip(contest.leaves, contest.scores, strict=True)
    scores = np.array([alone.get(leaf, score) for leaf, score in pairs])
    rows = np.array([row for leaf in leaves.tolist() for row in trie.rows_of(leaf)], dtype=int)
    of_row = np.repeat(np.arange(len(leaves)), trie.name_counts[leaves])[order := np.argsort(rows)]
    answers = np.flatnonzero(np.isin(leaves[of_row], contest.answers)).tolist()
    found = rank_by_scores(scores[of_row], contest.k, answers)
    names = [(int(rows[order[place]]), score) for place, score in found.names]
    found = VariantRanking(names, found.rank)
    return VariantRanking(found.up_to_answer, found.rank) if contest.ahead else found
