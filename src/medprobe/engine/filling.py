"""Fill several masks with a masked model: X-FACTR's decoding (Jiang et al., EMNLP 2020, section 4).

*Initial decoding* fills the masks: `independent` all at once, `order` the leftmost first,
`confidence` the surest first. *Refinement* then masks one token at a time and predicts it anew:
`none`, `order` from left to right again and again, `confidence` the least sure one.

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
    """How masks are filled. `steps` bounds the model's calls for one prompt, first fill counted."""

    initial: Initial = "confidence"
    refinement: Refinement = "none"
    masks: int = 5
    beam: int = 5
    steps: int = 10
    normalised: bool = True  # compare lengths by the mean of the log-probabilities, not their sum
    cursor: Cursor = "own"  # of refinement `order`; shared: X-FACTR's code moves it with every beam
    bias: Bias = "kept"  # of the language-model head, while it decodes

    def score(self, beam: "Beam") -> float:
        """What beams compete by; with masks left, the most that filling them can leave it at."""
        return sum(beam.log_probs) / (len(beam.tokens) if self.normalised else 1)


class Beam(NamedTuple):
    """Tokens in the slot, masks among them, and their log-probabilities, 0 for a mask."""

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
    done: bool = False
    inputs: list[tuple[int, ...]] = field(default_factory=list)  # what the model reads, a beam each


def fill(
    model: Model, slots: Sequence[Slot], decoding: Decoding, budget: int, k: int
) -> list[list[Filling]]:
    """The final beams of all numbers of masks for each slot, best first, as far as they are among
    the k best different texts.

    Equal scores go by the tokens' ids. Special tokens are never filled in. What a slot gets does
    not depend on the others.
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
            if not search.done:
                _mask_anew(search, decoding, mask)
        active = [search for search in searches if not search.done]
        if not active:
            break
        with heads.without_bias(model.model) if decoding.bias == "subtracted" else nullcontext():
            guesses = _guess(model, slots, active, decoding.beam, budget)
        for search, of_inputs in zip(active, guesses, strict=True):
            _advance(search, of_inputs, decoding, mask)
        if decoding.refinement == "none":
            _drop_losers(searches, decoding, mask, text, k)
    _drop_losers(searches, decoding, mask, text, k)
    of_slots: list[list[Filling]] = [[] for _ in slots]
    for search in searches:
        for beam in search.beams:
            of_slots[search.prompt].append(Filling(beam.tokens, decoding.score(beam)))
    return [sorted(fillings, key=lambda f: (-f.score, f.tokens)) for fillings in of_slots]


def text_of(model: Model, tokens: Sequence[int]) -> str:
    """What a filling reads as."""
    return str(model.tokenizer.decode(tokens)).strip()


def _drop_losers(
    searches: Sequence[Search],
    decoding: Decoding,
    mask: int,
    text: Callable[[tuple[int, ...]], str],
    k: int,
) -> None:
    """Drop the beams that will not be among the k best texts of their prompt.

    Where nothing is refined this is exact while masks are left, too: filling a mask never raises a
    score, and beams that come up instead of what a dropped one would have led to are no better.
    """
    best: dict[int, dict[str, float]] = defaultdict(dict)
    for search in searches:
        of_prompt = best[search.prompt]
        for beam in search.beams:
            if mask not in beam.tokens:
                name, score = text(beam.tokens), decoding.score(beam)
                of_prompt[name] = max(score, of_prompt.get(name, score))
    for search in searches:
        if len(scores := best[search.prompt].values()) >= k:
            least = sorted(scores)[-k]
            search.beams = [beam for beam in search.beams if decoding.score(beam) >= least]
            search.done = search.done or not search.beams


def _mask_anew(search: Search, decoding: Decoding, mask: int) -> None:
    """Set what the model reads next: the beams as they are while they hold masks, afterwards with
    the one token masked that refinement is to predict anew."""
    if mask in search.beams[0].tokens:
        search.inputs = [beam.tokens for beam in search.beams]
        return
    count = len(search.beams[0].tokens)
    if decoding.refinement == "none":
        search.done = True
        return
    if decoding.refinement == "confidence":
        places = [min(range(count), key=beam.log_probs.__getitem__) for beam in search.beams]
    elif decoding.cursor == "shared":
        places = [_turn(search, count) for _ in search.beams]
    else:
        places = [_turn(search, count)] * len(search.beams)
    pairs = zip(search.beams, places, strict=True)
    search.inputs = [_with(beam.tokens, i, mask) for beam, i in pairs]


def _turn(search: Search, count: int) -> int:
    """The token that the cursor of refinement `order` stands at; it moves on."""
    place = search.cursor % count
    search.modified = search.modified and place > 0
    search.cursor = place + 1
    return place


def _guess(
    model: Model, slots: Sequence[Slot], searches: list[Search], beam: int, budget: int
) -> list[list[list[list[Guess]]]]:
    """For each search, each of its inputs and each mask in it: the `beam` best tokens.

    Beams that read the same are read once.
    """
    mask = model.tokenizer.mask_token_id
    special = torch.tensor(model.tokenizer.all_special_ids, device=model.device)
    work = list({(s.prompt, tokens): None for s in searches for tokens in s.inputs})

    def keep(item: int, log_prob: torch.Tensor) -> list[list[Guess]]:
        log_prob[:, special] = -torch.inf
        log_prob[:, model.config.vocab_size :] = -torch.inf  # soft prompts are no words
        scores, tokens = log_prob.topk(min(beam, log_prob.shape[1]), dim=1)
        return [
            sorted(zip(ids, values, strict=True), key=lambda guess: (-guess[1], guess[0]))
            for ids, values in zip(tokens.tolist(), scores.tolist(), strict=True)
        ]

    rows = [slots[prompt].fill(tokens) for prompt, tokens in work]
    positions = [
        [len(slots[prompt].before) + i for i, token in enumerate(tokens) if token == mask]
        for prompt, tokens in work
    ]
    best = dict(zip(work, masked.log_probs(model, rows, positions, budget, keep), strict=True))
    return [[best[s.prompt, tokens] for tokens in s.inputs] for s in searches]


def _advance(
    search: Search, guesses: list[list[list[Guess]]], decoding: Decoding, mask: int
) -> None:
    """Extend every beam by its guesses, keep the best different ones, and see whether to stop."""
    extend = _EXTENSIONS[decoding.initial]
    extended: dict[tuple[int, ...], Beam] = {}
    for beam, tokens, of_masks in zip(search.beams, search.inputs, guesses, strict=True):
        masks = [i for i, token in enumerate(tokens) if token == mask]
        for changes in extend(masks, of_masks, decoding.beam):
            made = _changed(beam, changes)
            extended.setdefault(made.tokens, made)
    best = sorted(extended.values(), key=lambda beam: -sum(beam.log_probs))[: decoding.beam]
    same = [beam.tokens for beam in best] == [beam.tokens for beam in search.beams]
    search.beams = best
    if decoding.refinement == "order":
        search.modified = search.modified or not same
        search.done = not search.modified and search.cursor == len(best[0].tokens)
    else:
        search.done = same


Changes = list[tuple[int, Guess]]  # indices of tokens in the slot, and what comes there


def _independent(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """Every mask takes its b-th best token, for b up to the beam's width."""
    return [
        [(i, of_mask[b]) for i, of_mask in zip(masks, guesses, strict=True)]
        for b in range(len(guesses[0]))
    ]


def _order(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """The leftmost mask takes each of its best tokens."""
    return [[(masks[0], guess)] for guess in guesses[0]]


def _confidence(masks: list[int], guesses: list[list[Guess]], beam: int) -> list[Changes]:
    """Any one mask takes a token: the surest choices over all masks."""
    choices = [(i, guess) for i, of_mask in zip(masks, guesses, strict=True) for guess in of_mask]
    choices.sort(key=lambda choice: -choice[1][1])
    return [[choice] for choice in choices[:beam]]


_EXTENSIONS: dict[Initial, Callable[[list[int], list[list[Guess]], int], list[Changes]]] = {
    "independent": _independent,
    "order": _order,
    "confidence": _confidence,
}


def _changed(beam: Beam, changes: Changes) -> Beam:
    """The beam with these tokens; one that stays what it was keeps its log-probability."""
    tokens, log_probs = list(beam.tokens), list(beam.log_probs)
    for i, (token, log_prob) in changes:
        if tokens[i] != token:
            tokens[i], log_probs[i] = token, log_prob
    return Beam(tuple(tokens), tuple(log_probs))


def _with(tokens: tuple[int, ...], index: int, token: int) -> tuple[int, ...]:
    return (*tokens[:index], token, *tokens[index + 1 :])
