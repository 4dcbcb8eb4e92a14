"""The likeliest names in a slot, exactly, under a model that writes from left to right.

`best_first` chooses the nodes of the names' trie to read, and `reader` reads those of many prompts
in a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from medprobe.backends.finder import Backend, Transformers
from medprobe.core.progress import report_progress
from medprobe.engine import causal, seq2seq
from medprobe.engine.inspection import Head
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, WritingPrompt, answer_ids, too_long_error
from medprobe.extensions.likelihood import ahead, best_first
from medprobe.extensions.likelihood.ahead import Contest
from medprobe.extensions.likelihood.best_first import (
    VARIANTS,
    NodeRequest,
    Outcome,
    Ranker,
    Ranking,
    SearchGoal,
    SearchSteps,
    VariantRanking,
)
from medprobe.extensions.likelihood.reader import Reader
from medprobe.extensions.likelihood.trie import ROOT, Tokens, Trie, TriePrompt

MAX_PROMPTS: Final = 64  # prompts whose nodes share batches


class NameTries:
    """The names to rank as tries of their tokens, made once for all prompts.

    A name's tokens depend on the character before the slot, so each such character has a trie.

    Args:
        tokenizer: The model's.
        names: Equal scores go by their order.
    """

    def __init__(self, tokenizer: Any, names: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.names = names
        self._tries: dict[str, Trie] = {}

    def after(self, preceding: str) -> Trie:
        """Return the trie of the names after this character.

        Raises:
            BadInput: A name tokenises to nothing.
        """
        if preceding not in self._tries:
            self._tries[preceding] = Trie.build(answer_ids(self.tokenizer, self.names, preceding))
        return self._tries[preceding]


@dataclass
class TrieRanker:
    """Ranks names under a model in this process, exactly, by a search over their trie."""

    model: Model
    head: Head
    tries: NameTries | None = None  # of the names that were ranked last

    def tokenize(self, prompts: Sequence[str], where: Sequence[str]) -> list[WritingPrompt]:
        """Slots, and what an encoder reads."""
        if self.head == "seq2seq":
            frames = seq2seq.frames(self.model, prompts, where)
            return [(frame.target, tuple(frame.source)) for frame in frames]
        return [(slot, ()) for slot in causal.prompt_slots(self.model, prompts, where)]

    def find_likeliest(
        self, prompts: Sequence[WritingPrompt], where: Sequence[str], ranking: Ranking
    ) -> list[list[VariantRanking]]:
        """Return for each prompt the ranking of names by each variant."""
        if self.tries is None or self.tries.names != ranking.names:
            self.tries = NameTries(self.model.tokenizer, ranking.names)
        find = find_ahead if ranking.ahead else find_likeliest
        return find(
            self.model,
            [slot for slot, _ in prompts],
            where,
            self.tries,
            ranking.k,
            sources=[source for _, source in prompts if source],
            answers=ranking.answers,
            variants=ranking.variants,
        )


def ranker_of(backend: Backend) -> Ranker:
    """Return what ranks names under a backend: one from outside has its own way."""
    if isinstance(backend, Transformers):
        return TrieRanker(backend.model, backend.head)
    assert isinstance(backend, Ranker), "`finder` checks that a backend that can echo has it"
    return backend


def find_likeliest(
    model: Model,
    slots: Sequence[Slot],
    where: Sequence[str],
    tries: NameTries,
    k: int,
    *,
    sources: Sequence[Tokens] = (),
    answers: Sequence[Sequence[int]] = (),
    variants: int = len(VARIANTS),
    on_reader: Callable[[Reader], object] = lambda reader: None,
) -> list[list[VariantRanking]]:
    """Find the k likeliest names of each slot.

    Args:
        model: A causal or an encoder-decoder model.
        slots: One for each prompt.
        where: Names each prompt in errors.
        tries: The names to rank.
        k: How many names are ranked.
        sources: What an encoder-decoder model reads for each slot.
        answers: For each slot the indices of names whose best rank is needed too.
        variants: 1 ranks by the total alone, which reads far fewer tokens; 2 by the mean too.
        on_reader: Gets the reader, which counts the tokens read.

    Returns:
        For each slot a ranking for each of the first `variants` of `best_first.VARIANTS`.

    Raises:
        BadInput: A name tokenises to nothing, or does not fit into the model's window.
    """
    prompts = _prompts(model, slots, where, tries, sources)
    aims = [
        SearchGoal(k, prompt.trie.leaves_of(rows), variants)
        for prompt, rows in zip(prompts, answers or [()] * len(slots), strict=True)
    ]
    on_reader(reader := Reader(model, prompts))
    searches = [
        best_first.search(prompt.trie, prompt.before, len(prompt.slot.after), aim)
        for prompt, aim in zip(prompts, aims, strict=True)
    ]
    return [
        [
            best_first.rank_names(prompt.trie, result, variant, aim, score_alone)
            for variant, score_alone in enumerate(_readings_alone(model, prompt)[:variants])
        ]
        for prompt, aim, result in zip(prompts, aims, _search(reader, searches), strict=True)
    ]


def find_ahead(
    model: Model,
    slots: Sequence[Slot],
    where: Sequence[str],
    tries: NameTries,
    k: int,
    *,
    answers: Sequence[Sequence[int]],
    sources: Sequence[Tokens] = (),
    variants: int = 1,
    on_reader: Callable[[Reader], object] = lambda reader: None,
) -> list[list[VariantRanking]]:
    """Find names ahead of the best answer in each slot, k at most.

    Equal slots whose sources are equal share a search.

    Args:
        model: A causal or an encoder-decoder model.
        slots: One for each query.
        where: Names each query in errors.
        tries: The names.
        k: How many names decide.
        answers: For each slot the indices of the names that are right.
        sources: What an encoder-decoder model reads for each slot.
        variants: As in `find_likeliest`.
        on_reader: Gets the reader, which counts the tokens read.

    Returns:
        For each slot and variant a ranking as `ahead.rank_contest` gives it.

    Raises:
        BadInput: A name tokenises to nothing, or does not fit into the model's window.
    """
    prompts = _prompts(model, slots, where, tries, sources)
    contests = [
        [Contest(variant, k, prompt.trie.leaves_of(rows)) for variant in range(variants)]
        for prompt, rows in zip(prompts, answers, strict=True)
    ]
    sharing: dict[tuple[Slot, Tokens], list[int]] = {}
    for i, prompt in enumerate(prompts):
        sharing.setdefault((prompt.slot, prompt.source), []).append(i)
    distinct = [prompts[same[0]] for same in sharing.values()]
    on_reader(reader := Reader(model, distinct))
    searches = [
        ahead.search(
            prompt.trie,
            prompt.before,
            len(prompt.slot.after),
            [c for i in same for c in contests[i]],
        )
        for prompt, same in zip(distinct, sharing.values(), strict=True)
    ]
    _search(reader, searches)
    rankings: list[list[VariantRanking]] = [[] for _ in prompts]
    for prompt, same in zip(distinct, sharing.values(), strict=True):
        alone = _readings_alone(model, prompt)
        for i in same:
            rankings[i] = [
                ahead.rank_contest(prompt.trie, contest, alone[contest.variant])
                for contest in contests[i]
            ]
    return rankings


def _prompts(
    model: Model,
    slots: Sequence[Slot],
    where: Sequence[str],
    tries: NameTries,
    sources: Sequence[Tokens],
) -> list[TriePrompt]:
    prompts = [
        TriePrompt(slot, tries.after(slot.preceding), tuple(source))
        for slot, source in zip(slots, sources or [()] * len(slots), strict=True)
    ]
    for prompt, query in zip(prompts, where, strict=True):
        _check_window(prompt, model.max_length, query, tries.names)
    return prompts


def _check_window(prompt: TriePrompt, window: int, where: str, names: Sequence[str]) -> None:
    """Raise BadInput, with a longest name, if it does not fit into the model's window."""
    slot, depths = prompt.slot, prompt.trie.max_depths
    length = len(slot.before) + int(depths[ROOT]) + len(slot.after)
    if length > window:
        [row, *_] = prompt.trie.rows[int((depths * prompt.trie.is_leaf).argmax())]
        raise too_long_error(where, names[row], length, window)


def _search(reader: Reader, searches: Sequence[SearchSteps[Outcome]]) -> list[Outcome]:
    """Run the searches of all prompts, as many at a time as there is room for.

    Nodes of many prompts share a batch; short prompts come first.

    Returns:
        What each search returns.
    """
    outcomes: dict[int, Outcome] = {}
    lengths = [len(prompt.slot.before) for prompt in reader.prompts]
    queue = sorted(range(len(searches)), key=lambda i: (lengths[i], i))[::-1]
    requests: dict[int, list[NodeRequest]] = {}
    while queue or requests:
        added: list[int] = []
        while queue and (
            not requests or (len(requests) < MAX_PROMPTS and reader.has_room([*added, queue[-1]]))
        ):
            i = queue.pop()
            added.append(i)
            requests[i] = next(searches[i])
        batch = [(i, *ask) for i, nodes in requests.items() for ask in nodes]
        reads = iter(reader.read(batch))
        for i, nodes in list(requests.items()):
            try:
                requests[i] = searches[i].send([next(reads) for _ in nodes])
            except StopIteration as end:
                outcomes[i] = end.value
                report_progress(1, "queries")
                reader.release(i)
                del requests[i]
    return [outcomes[i] for i in range(len(searches))]


def _readings_alone(model: Model, prompt: TriePrompt) -> list[Callable[[int], float]]:
    """Return for each variant the function that scores a leaf in a batch of one."""
    totals: dict[int, tuple[float, int]] = {}

    def score_alone(variant: int, leaf: int) -> float:
        if leaf not in totals:
            suffix = [*prompt.trie.tokens(leaf), *prompt.slot.after]
            log_probs = causal.continuations(model, prompt.slot.before, [suffix], 1, prompt.source)
            scores = [*log_probs[0][prompt.slot.forced - 1 :], *log_probs[1][0]]
            totals[leaf] = sum(scores), len(scores)
        total, count = totals[leaf]
        return total / count if variant else total

    return [partial(score_alone, variant) for variant in range(len(VARIANTS))]
