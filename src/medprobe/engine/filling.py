"""Fill several masks with a masked model: X-FACTR's decoding (Jiang et al., EMNLP 2020, section 4).

*Initial decoding* fills the masks: `independent` all at once, `order` the leftmost first,
`confidence` the most probable first. *Refinement* then masks one token at a time and predicts it
again: `none`, `order` from left to right repeatedly, `confidence` the least probable token.

All prompts, numbers of masks and beams of a step go through the model together.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

import torch

from medprobe.engine import heads, masked
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot

Initial = Literal["independent", "order", "confidence"]
Refinement = Literal["none", "order", "confidence"]
Cursor = Literal["own", "shared"]
Bias = Literal["kept", "subtracted"]


@dataclass(frozen=True)
class Decoding:
    """How masks are filled. `steps` bounds the model's calls for one prompt, the first included."""

    initial: Initial = "confidence"
    refinement: Refinement = "none"
    masks: int = 5
    beam: int = 5
    steps: int = 10
    normalised: bool = True  # compare lengths by the mean of the log-probabilities, not their sum
    cursor: Cursor = "own"  # of refinement `order`; shared: X-FACTR's code moves it with every beam
    bias: Bias = "kept"  # of the language-model head, while it decodes

    def score(self, beam: "Beam") -> float:
        """Return the score that beams compete by; with masks left, an upper bound of it."""
        return sum(beam.log_probs) / (len(beam.tokens) if self.normalised else 1)


class Beam(NamedTuple):
    """The tokens in a slot, masks among them, and their log-probabilities (0 for a mask)."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]


class Filling(NamedTuple):
    """One way to fill a slot."""

    tokens: tuple[int, ...]
    score: float


Guess = tuple[int, float]  # a token and its log-probability


@dataclass
class Search:
    """The beams of one prompt with one number of masks."""

    prompt: int
    beams: list[Beam]
    cursor: int = 0  # refinement `order`: the next token to mask
    modified: bool = False  # did anything change since the cursor was at the first token?
    is_finished: bool = False
    inputs: list[tuple[int, ...]] = field(default_factory=list)  # what the model reads, a beam each


def fill(
    model: Model, slots: Sequence[Slot], decoding: Decoding, budget: int, k: int
) -> list[list[Filling]]:
    """Fill slots with every number of masks.

    Special tokens are never filled in. The fillings of a slot do not depend on the other slots.

    Source:
        X-FACTR, Jiang et al., EMNLP 2020, section 4.
    """
    mask = model.tokenizer.mask_token_id
    text = cache(lambda tokens: text_of(model, tokens))
    searches = [
        Search(i, [Beam((mask,) * count, (0.0,) * count)])
        for i in range(len(slots))
        for count in range(1, decoding.masks + 1)
    ]
    for _ in range(decoding.steps):
        for search in searches:
            if not search.is_finished:
                _choose_inputs(search, decoding, mask)
        active = [search for search in searches if not search.is_finished]
        if not active:
            break
        with heads.without_bias(model.model) if decoding.bias == "subtracted" else nullcontext():
            guesses = _predict_masks(model, slots, active, decoding.beam, budget)
        for search, search_guesses in zip(active, guesses, strict=True):
            _advance(search, search_guesses, decoding, mask)
        if decoding.refinement == "none":
            _drop_losers(searches, decoding, mask, text, k)
    _drop_losers(searches, decoding, mask, text, k)
    fillings_by_slot: list[list[Filling]] = [[] for _ in slots]
    for search in searches:
        for beam in search.beams:
            fillings_by_slot[search.prompt].append(Filling(beam.tokens, decoding.score(beam)))
    return [sorted(fillings, key=lambda f: (-f.score, f.tokens)) for fillings in fillings_by_slot]


def text_of(model: Model, tokens: Sequence[int]) -> str:
    """Return the text of a filling."""
    return str(model.tokenizer.decode(tokens)).strip()


def _drop_losers(
    searches: Sequence[Search],
    decoding: Decoding,
    mask: int,
    text: Callable[[tuple[int, ...]], str],
    k: int,
) -> None:
    """Drop the beams that cannot be among the k best texts of their prompt.

    Without refinement this is exact while masks are left, too: filling a mask never raises a score,
    and the beams that take the place of a dropped one are no better.
    """
    best: dict[int, dict[str, float]] = defaultdict(dict)
    for search in searches:
        scores_by_text = best[search.prompt]
        for beam in search.beams:
            if mask not in beam.tokens:
                name, score = text(beam.tokens), decoding.score(beam)
                scores_by_text[name] = max(score, scores_by_text.get(name, score))
    for search in searches:
        if len(scores := best[search.prompt].values()) >= k:
            threshold = sorted(scores)[-k]
            search.beams = [beam for beam in search.beams if decoding.score(beam) >= threshold]
            search.is_finished = search.is_finished or not search.beams


def _choose_inputs(search: Search, decoding: Decoding, mask: int) -> None:
    """Set what the model reads next: the beams while they hold masks, then each with one mask."""
    if mask in search.beams[0].tokens:
        search.inputs = [beam.tokens for beam in search.beams]
        return
    count = len(search.beams[0].tokens)
    if decoding.refinement == "none":
        search.is_finished = True
        return
    if decoding.refinement == "confidence":
        indices = [min(range(count), key=beam.log_probs.__getitem__) for beam in search.beams]
    elif decoding.cursor == "shared":
        indices = [_take_next_position(search, count) for _ in search.beams]
    else:
        indices = [_take_next_position(search, count)] * len(search.beams)
    pairs = zip(search.beams, indices, strict=True)
    search.inputs = [_replace_token(beam.tokens, i, mask) for beam, i in pairs]


def _take_next_position(search: Search, count: int) -> int:
    """Return the position that refinement `order` fills next, of `count`, and move the cursor on.

    At the first position, a pass over all positions begins: nothing is modified in it yet.
    """
    index = search.cursor % count
    search.modified = search.modified and index > 0
    search.cursor = index + 1
    return index


def _predict_masks(
    model: Model, slots: Sequence[Slot], searches: list[Search], beam: int, budget: int
) -> list[list[list[list[Guess]]]]:
    """Return for each search, input and mask the `beam` best tokens.

    Inputs that several beams share are read once.
    """
    mask = model.tokenizer.mask_token_id
    special = torch.tensor(model.tokenizer.all_special_ids, device=model.device)
    words = model.config.vocab_size  # looked up once: transformers makes it slow
    inputs = list({(s.prompt, tokens): None for s in searches for tokens in s.inputs})

    def extract(item: int, log_prob: torch.Tensor) -> list[list[Guess]]:
        log_prob[:, special] = -torch.inf
        log_prob[:, words:] = -torch.inf  # soft prompts are no words
        scores, tokens = log_prob.topk(min(beam, log_prob.shape[1]), dim=1)
        return [
            sorted(zip(ids, values, strict=True), key=lambda guess: (-guess[1], guess[0]))
            for ids, values in zip(tokens.tolist(), scores.tolist(), strict=True)
        ]

    rows = [slots[prompt].fill(tokens) for prompt, tokens in inputs]
    positions = [
        [len(slots[prompt].before) + i for i, token in enumerate(tokens) if token == mask]
        for prompt, tokens in inputs
    ]
    best = dict(zip(inputs, masked.log_probs(model, rows, positions, budget, extract), strict=True))
    return [[best[s.prompt, tokens] for tokens in s.inputs] for s in searches]


def _advance(
    search: Search, guesses: list[list[list[Guess]]], decoding: Decoding, mask: int
) -> None:
    """Extend every beam by its guesses, keep the best different ones, and see whether to stop."""
    extend = _EXTENSIONS[decoding.initial]
    extended: dict[tuple[int, ...], Beam] = {}
    for beam, tokens, mask_guesses in zip(search.beams, search.inputs, guesses, strict=True):
        masks = [i for i, token in enumerate(tokens) if token == mask]
        for changes in extend(masks, mask_guesses, decoding.beam):
            extension = _apply_changes(beam, changes)
            extended.setdefault(extension.tokens, extension)
    best = sorted(extended.values(), key=lambda beam: -sum(beam.log_probs))[: decoding.beam]
    is_unchanged = [beam.tokens for beam in best] == [beam.tokens for beam in search.beams]
    search.beams = best
    if decoding.refinement == "order":
        search.modified = search.modified or not is_unchanged
        search.is_finished = not search.modified and search.cursor == len(best[0].tokens)
    else:
        search.is_finished = is_unchanged


Changes = list[tuple[int, Guess]]  # indices of tokens in the slot, and what comes there


def _independent(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """Every mask takes its b-th best token, for b up to the beam's width."""
    return [
        [(i, candidates[b]) for i, candidates in zip(masks, guesses, strict=True)]
        for b in range(len(guesses[0]))
    ]


def _order(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """The leftmost mask takes each of its best tokens."""
    return [[(masks[0], guess)] for guess in guesses[0]]


def _confidence(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """Any one mask takes a token: the surest choices over all masks."""
    choices = [
        (i, guess) for i, candidates in zip(masks, guesses, strict=True) for guess in candidates
    ]
    choices.sort(key=lambda choice: -choice[1][1])
    return [[choice] for choice in choices[:beam]]


_EXTENSIONS: dict[Initial, Callable[[list[int], list[list[Guess]], int], list[Changes]]] = {
    "independent": _independent,
    "order": _order,
    "confidence": _confidence,
}


def _apply_changes(beam: Beam, changes: Changes) -> Beam:
    """The beam with these tokens; one that stays what it was keeps its log-probability."""
    tokens, log_probs = list(beam.tokens), list(beam.log_probs)
    for i, (token, log_prob) in changes:
        if tokens[i] != token:
            tokens[i], log_probs[i] = token, log_prob
    return Beam(tuple(tokens), tuple(log_probs))


def _replace_token(tokens: tuple[int, ...], index: int, token: int) -> tuple[int, ...]:
    return (*tokens[:index], token, *tokens[index + 1 :])
