"""The names that a model which writes from left to right finds likeliest in a slot, exactly.

`best_first` says which nodes of the names' trie to read, `reader` reads them, those of many prompts
in a batch.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from medprobe.engine import best_first, causal
from medprobe.engine.best_first import VARIANTS, Aim, Ask, Found, Ranked, Reading
from medprobe.engine.load import Model
from medprobe.engine.reader import Reader
from medprobe.engine.slots import Slot, answer_ids, check_window
from medprobe.engine.trie import Prompt, Tokens, Trie

AT_ONCE: Final = 64  # prompts whose nodes share batches


def likeliest(
    model: Model,
    slots: Sequence[Slot],
    where: Sequence[str],
    names: Sequence[str],
    k: int,
    *,
    sources: Sequence[Tokens] = (),
    answers: Sequence[Sequence[int]] = (),
    most: int = 0,
    variants: int = len(VARIANTS),
    watch: Callable[[Reader], object] = lambda reader: None,
) -> list[list[Ranked]]:
    """Find the k likeliest names of each slot.

    Args:
        model: A causal or an encoder-decoder model.
        slots: One for each prompt.
        where: What names each prompt in errors.
        names: The names to rank; equal scores go by their order.
        k: How many names are ranked.
        sources: What an encoder-decoder model reads for each slot.
        answers: For each slot the indices of names whose best rank is wanted too.
        most: The nodes opened for a slot; 0: as many as it takes.
        variants: 1 ranks by the total alone, which reads far fewer tokens; 2 by the mean too.
        watch: Gets the reader, which counts the tokens read.

    Returns:
        For each slot a ranking for each of `best_first.VARIANTS`, as many as are asked for.

    Raises:
        BadInput: A name tokenises to nothing, or does not fit into the model's window.
    """
    ids = {left: answer_ids(model.tokenizer, names, left) for left in {s.left for s in slots}}
    for slot, query in zip(slots, where, strict=True):
        check_window(slot, ids[slot.left], model.max_length, query, names)
    tries = {left: Trie.of(of_left) for left, of_left in ids.items()}
    leaf_of = {
        left: {row: node for node, rows in enumerate(trie.rows) for row in rows}
        for left, trie in tries.items()
    }
    asked = [
        Prompt(slot, tries[slot.left], tuple(source))
        for slot, source in zip(slots, sources or [()] * len(slots), strict=True)
    ]
    aims = [
        Aim(k, tuple(sorted({leaf_of[slot.left][row] for row in rows})), most, variants)
        for slot, rows in zip(slots, answers or [()] * len(slots), strict=True)
    ]
    watch(reader := Reader(model, asked))
    return [
        _ranked(model, prompt, found, aim)
        for prompt, aim, found in zip(asked, aims, _search(reader, aims), strict=True)
    ]


def _search(reader: Reader, aims: Sequence[Aim]) -> list[Found]:
    """Search for all prompts, as many at a time as there is room for."""
    found: list[Found | None] = [None] * len(aims)
    waiting = list(range(len(aims)))[::-1]
    asking: dict[int, list[Ask]] = {}
    searches: dict[int, Reading] = {}
    while waiting or asking:
        new: list[int] = []
        while waiting and (
            not asking or (len(asking) < AT_ONCE and reader.room([*new, waiting[-1]]))
        ):
            i = waiting.pop()
            new.append(i)
            prompt = reader.prompts[i]
            after = len(prompt.slot.after)
            searches[i] = best_first.search(prompt.trie, prompt.before, after, aims[i])
            asking[i] = next(searches[i])
        work = [(i, *ask) for i, asks in asking.items() for ask in asks]
        reads = iter(reader.read(work))
        for i, asks in list(asking.items()):
            try:
                asking[i] = searches[i].send([next(reads) for _ in asks])
            except StopIteration as end:
                found[i] = end.value
                reader.forget(i)
                del asking[i], searches[i]
    return [of_prompt for of_prompt in found if of_prompt is not None]


def _ranked(model: Model, prompt: Prompt, found: Found, aim: Aim) -> list[Ranked]:
    totals: dict[int, tuple[float, int]] = {}

    def alone(variant: int, leaf: int) -> float:
        if leaf not in totals:
            rest = [*prompt.trie.tokens(leaf), *prompt.slot.after]
            read = causal.continuations(model, prompt.slot.before, [rest], 1, prompt.source)
            scores = [*read[0], *read[1][0]]
            totals[leaf] = sum(scores), len(scores)
        total, count = totals[leaf]
        return total / count if variant else total

    return [
        best_first.order(prompt.trie, found, variant, aim, partial(alone, variant))
        for variant in range(aim.variants)
    ]
