"""Soft prompts: trained vectors that take the place of tokens in a sequence.

Their ids follow those of the vocabulary, so that all else of the engine works on them unchanged.
Everything but the vectors is frozen. How they are laid out, started and trained is a recipe:
`Spread` here, or with the same methods `soft_released.Released`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import torch

from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT
from medprobe.engine.batching import pad_rows
from medprobe.engine.heads import narrow_head
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, answer_ids, masked_slots

Example = tuple[list[int], list[int], list[int]]  # token ids, masked positions, their tokens
SUBJECT: Final = "[X]"


@dataclass(frozen=True)
class SoftPrompt:
    """A relation's template, with one [X] and one [Y], and a subject to put for [X], or nothing."""

    template: str
    subject: str


class Spread:
    """A recipe with `count` vectors between subject and slot.

    They start from tokens taken evenly from the words of the template. Adam trains them, in a new
    order each epoch.
    """

    def __init__(self, model: Model, count: int) -> None:
        self.model = model
        self.count = count

    def slots(self, prompts: Sequence[SoftPrompt], where: Sequence[str]) -> list[Slot]:
        """Lay out prompts as subject, vectors, slot and a full stop.

        If the template has the slot first, the order is slot, vectors and subject. `where` names
        each prompt in errors.
        """
        slot_first = [p.template.index(SLOT) < p.template.index(SUBJECT) for p in prompts]
        words = [
            (SLOT, prompt.subject, ".") if first else (prompt.subject, SLOT, ".")
            for prompt, first in zip(prompts, slot_first, strict=True)
        ]
        texts = [" ".join(filter(None, row)) for row in words]
        ids = soft_ids(self.model, self.count)
        plain = masked_slots(self.model.tokenizer, texts, where)
        return [
            replace(slot, after=(*ids, *slot.after))
            if first
            else replace(slot, before=(*slot.before, *ids))
            for slot, first in zip(plain, slot_first, strict=True)
        ]

    def answer_ids(self, names: Sequence[str], slot: Slot) -> list[list[int]]:
        """The tokens of each answer in this slot: those inside a sentence."""
        return answer_ids(self.model.tokenizer, names, slot.preceding)

    def start(self, template: str) -> torch.Tensor:
        """Return the vectors before training, [vectors, hidden].

        They are copies of tokens of the template's words, without its full stop.
        """
        words = template.replace(SUBJECT, " ").replace(SLOT, " ").split()
        text = " ".join(words[:-1] if words[-1:] == ["."] else words) or "."
        ids = self.model.tokenizer(f" {text}", add_special_tokens=False)["input_ids"]
        return token_embeddings(
            self.model, [ids[i * len(ids) // self.count] for i in range(self.count)]
        )

    def install_vectors(self, vectors: torch.Tensor) -> AbstractContextManager[None]:
        """Let the model read these vectors as embeddings, within the block.

        The head has no rows for them.
        """
        return install_vectors(self.model, vectors)

    def order(self, examples: int, previous: list[int]) -> list[int]:
        """The order of the examples in an epoch: a new one, from torch's generator."""
        order: list[int] = torch.randperm(examples).tolist()
        return order

    def optimizer(self, vectors: torch.Tensor, rate: float) -> torch.optim.Optimizer:
        """What moves the vectors: Adam."""
        return torch.optim.Adam([vectors], lr=rate)

    def schedule(self, warmup: int, steps: int) -> Callable[[int], float]:
        """Return the share of the rate at each step, from 0, of all `steps`.

        It rises to 1 at the last of the `warmup` first steps, of at least one, then falls to 0.
        """
        warmup = max(1, warmup)
        return lambda step: min((step + 1) / warmup, (steps - step) / max(1, steps - warmup))

    def losses(self, examples: Sequence[Example]) -> torch.Tensor:
        """Return the mean negative log-probability of the answers' tokens.

        The examples are one batch; its padding is hidden.
        """
        return losses(self.model, examples)


class SoftEmbedding(torch.nn.Module):
    """An embedding whose ids from `first` on are `vectors`, [vectors, hidden]."""

    def __init__(self, hard: torch.nn.Module, first_id: int, vectors: torch.Tensor) -> None:
        super().__init__()
        self.hard = hard
        self.first_id = first_id
        self.vectors = vectors

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of `ids` [rows, length], as [rows, length, hidden]."""
        soft = ids >= self.first_id
        words: torch.Tensor = self.hard(ids.masked_fill(soft, 0))
        return words.index_put((soft,), self.vectors[ids[soft] - self.first_id].to(words.dtype))


@contextmanager
def install_vectors(model: Model, vectors: torch.Tensor) -> Iterator[None]:
    """Within the block the model reads the ids `soft_ids(model, …)` as these vectors."""
    hard = model.model.get_input_embeddings()
    if not isinstance(hard, torch.nn.Embedding):  # I-BERT's come with a scale
        raise BadInput(model.name, "no vectors can stand beside its embeddings of words")
    model.model.set_input_embeddings(SoftEmbedding(hard, model.config.vocab_size, vectors))
    try:
        yield
    finally:
        model.model.set_input_embeddings(hard)


def soft_ids(model: Model, count: int) -> tuple[int, ...]:
    """The ids of the first `count` vectors."""
    first = model.config.vocab_size
    return tuple(range(first, first + count))


def token_embeddings(model: Model, ids: Sequence[int]) -> torch.Tensor:
    """Copies of these tokens' embeddings, [tokens, hidden], float32."""
    indices = torch.tensor(ids, device=model.device)
    weights: torch.Tensor = model.model.get_input_embeddings().weight[indices]
    return weights.detach().float().clone()


def losses(model: Model, examples: Sequence[Example]) -> torch.Tensor:
    """The mean negative log-probability of all masked tokens of the examples, in one batch."""
    ids, attention = pad_rows(
        [row for row, _, _ in examples], model.tokenizer.pad_token_id, model.device
    )
    length = ids.shape[1]
    positions = [i * length + p for i, (_, masks, _) in enumerate(examples) for p in masks]
    tokens = [token for _, _, targets in examples for token in targets]
    return loss_at(model, ids, attention, positions, tokens)


def loss_at(
    model: Model,
    ids: torch.Tensor,
    attention: torch.Tensor,
    positions: Sequence[int],
    tokens: Sequence[int],
) -> torch.Tensor:
    """Return the mean negative log-probability of `tokens` at `positions`.

    Positions count through the batch of `ids` [rows, length]; `attention` [rows, length] is its
    mask.
    """
    with narrow_head(model.model.base_model, positions):
        logits = model.model(ids, attention_mask=attention).logits[0]
    return torch.nn.functional.cross_entropy(
        logits.float(), torch.tensor(tokens, device=logits.device)
    )
