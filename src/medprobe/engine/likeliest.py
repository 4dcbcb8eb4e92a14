"""The likeliest names in a slot, exactly, under a model that writes from left to right.

`best_first` chooses the nodes of the names' trie to read, and `reader` reads those of many prompts
in a batch.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from medprobe.engine import best_first, causal
from medprobe.engine.best_first import (
    VARIANTS,
    NodeRequest,
    SearchGoal,
    SearchResult,
    SearchSteps,
    VariantRanking,
)
from medprobe.engine.load import Model
from medprobe.engine.reader import Reader
from medprobe.engine.slots import Slot, answer_ids, too_long_error
from medprobe.engine.trie import ROOT, Tokens, Trie, TriePrompt

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
    prompts = [
        TriePrompt(slot, tries.after(slot.preceding), tuple(source))
        for slot, source in zip(slots, sources or [()] * len(slots), strict=True)
    ]
    for prompt, query in zip(prompts, where, strict=True):
        _check_window(prompt, model.max_length, query, tries.names)
    aims = [
        SearchGoal(k, prompt.trie.leaves_of(rows), variants)
        for prompt, rows in zip(prompts, answers or [()] * len(slots), strict=True)
    ]
    on_reader(reader := Reader(model, prompts))
    return [
        _rank(model, prompt, result, aim)
        for prompt, aim, result in zip(prompts, aims, _search(reader, aims), strict=True)
    ]


def _check_window(prompt: TriePrompt, window: int, where: str, names: Sequence[str]) -> None:
    """Raise BadInput, with a longest name, if it does not fit into the model's window."""
    slot, depths = prompt.slot, prompt.trie.max_depths
    length = len(slot.before) + int(depths[ROOT]) + len(slot.after)
    if length > window:
        [row, *_] = prompt.trie.rows[int((depths * prompt.trie.is_leaf).argmax())]
        raise too_long_error(where, names[row], length, window)


def _search(reader: Reader, aims: Sequence[SearchGoal]) -> list[SearchResult]:
    """Run the searches of all prompts, as many at a time as there is room for.

    Nodes share a batch where what was read before them has one length, so prompts of similar length
    are searched together.
    """
    results: list[SearchResult | None] = [None] * len(aims)
    lengths = [len(prompt.slot.before) for prompt in reader.prompts]
    queue = sorted(range(len(aims)), key=lambda i: (lengths[i], i))[::-1]
    requests: dict[int, list[NodeRequest]] = {}
    searches: dict[int, SearchSteps] = {}
    while queue or requests:
        added: list[int] = []
        while queue and (
            not requests or (len(requests) < MAX_PROMPTS and reader.has_room([*added, queue[-1]]))
        ):
            i = queue.pop()
            added.append(i)
            prompt = reader.prompts[i]
            after = len(prompt.slot.after)
            searches[i] = best_first.search(prompt.trie, prompt.before, after, aims[i])
            requests[i] = next(searches[i])
        batch = [(i, *ask) for i, nodes in requests.items() for ask in nodes]
        reads = iter(reader.read(batch))
        for i, nodes in list(requests.items()):
            try:
                requests[i] = searches[i].send([next(reads) for _ in nodes])
            except StopIteration as end:
                results[i] = end.value
                reader.release(i)
                del requests[i], searches[i]
    return [result for result in results if result is not None]


def _rank(
    model: Model, prompt: TriePrompt, result: SearchResult, aim: SearchGoal
) -> list[VariantRanking]:
    totals: dict[int, tuple[float, int]] = {}

    def score_alone(variant: int, leaf: int) -> float:
        if leaf not in totals:
            suffix = [*prompt.trie.tokens(leaf), *prompt.slot.after]
            log_probs = causal.continuations(model, prompt.slot.before, [suffix], 1, prompt.source)
            scores = [*log_probs[0][prompt.slot.forced - 1 :], *log_probs[1][0]]
            totals[leaf] = sum(scores), len(scores)
        total, count = totals[leaf]
        return total / count if variant else total

    return [
        best_first.rank_names(prompt.trie, result, variant, aim, partial(score_alone, variant))
        for variant in range(aim.variants)
    ]
