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
alone in a batch of one, from the prompt's first token (`order`). Such a score depends on nothing
but the model and the text, and so do the ranks; equal scores go by name, as everywhere. ROUNDING is
of float32: in bfloat16 ranks can move with batches, as all scores do there.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

import numpy as np

from medprobe.engine import ranking
from medprobe.engine.trie import ROOT, Trie

Read = tuple[float, np.ndarray]  # see `search`
Ask = tuple[int, int]
Reading = Generator[list[Ask], list[Read], "Found"]

VARIANTS: Final = ("", "per_token")  # the total of log-probabilities, and their mean
ROUNDING: Final = 2e-5  # nats a token; docs/reference/performance.md has what was measured
WIDTH: Final = 2  # nodes opened at once at first; later a share of those opened so far
SHARE: Final = 0.125
ENOUGH: Final = 0.2  # of the tokens of all names: who has read so many searches no further


@dataclass(frozen=True)
class Aim:
    """What a search is for: the k best leaves of each variant, and the ranks of `answers`."""

    k: int
    answers: tuple[int, ...] = ()  # leaves
    most: int = 0  # nodes to open, those on the way to answers and to a first leaf aside; 0: all
    variants: int = len(VARIANTS)  # 1: the total alone, which needs a tenth of the nodes or less


@dataclass(frozen=True)
class Found:
    """The leaves that were scored, and what the others can reach."""

    leaves: np.ndarray
    scores: np.ndarray  # [variants, leaves]
    slack: np.ndarray  # [variants]: scores further apart are in order
    bounds: np.ndarray  # [variants]: of what a search that was cut short left out, else -inf
    opened: int  # nodes


def search(trie: Trie, before: int, after: int, aim: Aim) -> Reading:
    """Look for the likeliest leaves; ask for nodes to read, and return what was found.

    `before` and `after` are the tokens of the prompt around its slot that are scored. Each item
    that is yielded lists nodes, each with the node above it (or itself) from whose first token on
    it is to be read. What is sent back has for each the log-probability of these tokens but the
    first, and of the first token of each child, [children]. A leaf's tokens are those of its edge
    and `after` more. The root comes first; its tokens are the prompt's before the slot, all of them
    but the token that a text begins with.

    Where bounds leave too much to read, the rest is read name by name: what is open gives way to
    the leaves below it, each with its own bound.
    """
    lengths = before + after + trie.longest
    costs = trie.spans + after * trie.leaf
    slack = 2 * ROUNDING * np.array([float(lengths[ROOT]), 1.0])[: aim.variants]
    ways = np.array(sorted({node for leaf in aim.answers for node in trie.way(leaf)}), dtype=int)
    [(start, firsts)] = yield [(ROOT, ROOT)]
    nodes, sums = trie.children[ROOT], start + firsts
    tops = nodes
    leaves, totals = np.empty(0, dtype=int), np.empty(0)
    opened, read, by_name = 0, 0, False
    while True:
        here = trie.leaf[nodes] & (trie.longest[nodes] - trie.starts[tops] + after <= 1)  # known
        leaves, totals = np.append(leaves, nodes[here]), np.append(totals, sums[here])
        nodes, tops, sums = nodes[~here], tops[~here], sums[~here]
        scores = np.stack([totals, totals / lengths[leaves]][: aim.variants])
        bounds = np.stack([sums, sums / lengths[nodes]][: aim.variants])
        worth = bounds >= (_least(trie, leaves, scores, aim) - slack)[:, None]
        wanted = np.isin(nodes, ways)
        open_ = worth.any(0) | wanted
        nodes, tops, sums, wanted = nodes[open_], tops[open_], sums[open_], wanted[open_]
        bounds, worth = bounds[:, open_], worth[:, open_]
        enough = aim.most and opened >= aim.most and len(leaves) and not wanted.any()
        if enough or not len(nodes):
            break
        if not by_name and read > ENOUGH * (trie.size + after * trie.leaf.sum()):
            below = [trie.leaves(node) for node in nodes]
            counts = [len(of_node) for of_node in below]
            nodes, tops, sums = np.concatenate(below), tops.repeat(counts), sums.repeat(counts)
            by_name = True
            continue
        chosen = wanted | _best(bounds, worth, max(WIDTH, int(SHARE * opened)))
        reads = yield list(zip(tops[chosen].tolist(), nodes[chosen].tolist(), strict=True))
        opened, read = opened + len(reads), read + int(costs[nodes[chosen]].sum())
        ends = trie.leaf[nodes[chosen]]
        done = sums[chosen] + [spent for spent, _ in reads]
        leaves, totals = np.append(leaves, nodes[chosen][ends]), np.append(totals, done[ends])
        inner = np.flatnonzero(~ends)
        new = np.concatenate([nodes[:0], *(trie.children[n] for n in nodes[chosen][~ends])])
        nodes, tops = np.append(nodes[~chosen], new), np.append(tops[~chosen], new)
        sums = np.concatenate([sums[~chosen], *(done[i] + reads[i][1] for i in inner)])
    left = np.where(worth, bounds, -np.inf).max(1, initial=-np.inf)
    return Found(leaves, scores, slack, left, opened)


def _least(trie: Trie, leaves: np.ndarray, scores: np.ndarray, aim: Aim) -> np.ndarray:
    """The score of each variant below which nothing is asked for: the k-th best found, or that of
    the best answer where it is lower."""
    counts = trie.names[leaves]
    if counts.sum() < aim.k:
        return np.full(len(scores), -np.inf)
    named = np.repeat(scores, counts, axis=1)
    least: np.ndarray = np.partition(named, -aim.k, axis=1)[:, -aim.k]
    if aim.answers:
        answers = np.isin(leaves, aim.answers)
        if answers.sum() < len(aim.answers):
            return np.full(len(scores), -np.inf)
        least = np.minimum(least, scores[:, answers].max(1))
    return least


def _best(bounds: np.ndarray, worth: np.ndarray, width: int) -> np.ndarray:
    """Which nodes have one of the `width` best bounds of a variant that they are worth opening
    for."""
    chosen = np.zeros(bounds.shape[1], dtype=bool)
    for of_variant, able in zip(bounds, worth, strict=True):
        places = np.flatnonzero(able)
        chosen[places[np.argsort(-of_variant[places], kind="stable")[:width]]] = True
    return chosen


@dataclass(frozen=True)
class Ranked:
    """One variant's ranking."""

    names: list[tuple[int, float]]  # the k best, and ties (`ranking.best`): index and score
    certain: list[bool]  # is it certain that nothing unread comes before?
    rank: int | None = None  # of the best answer among all, where one was asked for
    rank_certain: bool = True


def order(
    trie: Trie, found: Found, variant: int, aim: Aim, alone: Callable[[int], float]
) -> Ranked:
    """The ranking of what was found; a name's index decides between equal scores.

    `alone` gives a leaf's score in this variant, read alone; it decides wherever scores are too
    near one another for their order to be sure.
    """
    scores, slack = found.scores[variant].copy(), found.slack[variant]
    by_score = np.argsort(-scores, kind="stable")
    runs = np.empty(len(scores), dtype=int)  # those of one run are too near, one to the next
    runs[by_score] = np.cumsum(np.diff(-scores[by_score], prepend=-np.inf) > slack)
    counts = np.cumsum(trie.names[found.leaves][by_score])
    last = by_score[min(int(np.searchsorted(counts, aim.k)), len(counts) - 1)] if len(counts) else 0
    doubtful = runs <= runs[last] if len(counts) else runs > 0
    answers = np.isin(found.leaves, aim.answers)
    if answers.any():
        doubtful |= runs == runs[answers].min()
    several = np.bincount(runs)[runs] > 1 if len(runs) else doubtful
    for unsure in np.flatnonzero(doubtful & several):
        scores[unsure] = alone(int(found.leaves[unsure]))
    rows = [(row, place) for place, leaf in enumerate(found.leaves) for row in trie.rows[leaf]]
    rows.sort(key=lambda item: (-scores[item[1]], item[0]))
    ranked = np.array([scores[place] for _, place in rows])
    best = [(rows[i][0], float(ranked[i])) for i in ranking.best(ranked, aim.k, ranking.TIES)]
    sure = float(found.bounds[variant]) + slack
    rank, place = next(
        ((i, place) for i, (_, place) in enumerate(rows, start=1) if answers[place]), (None, 0)
    )
    rank_certain = rank is None or bool(scores[place] > sure)
    return Ranked(best, [score > sure for _, score in best], rank, rank_certain)
