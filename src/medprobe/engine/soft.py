"""Soft prompts: trained vectors that stand in a sequence as tokens of their own.

Their ids follow those of the vocabulary, so that all else of the engine works on them unchanged.
Everything but the vectors is frozen.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from medprobe.engine.batching import padded
from medprobe.engine.heads import narrowed
from medprobe.engine.load import Model

Example = tuple[list[int], list[int], list[int]]  # token ids, masked positions, their tokens


class SoftEmbedding(torch.nn.Module):
    """An embedding whose ids from `first` on are `vectors`, [vectors, hidden]."""

    def __init__(self, hard: torch.nn.Module, first: int, vectors: torch.Tensor) -> None:
        super().__init__()
        self.hard = hard
        self.first = first
        self.vectors = vectors

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        soft = ids >= self.first
        words: torch.Tensor = self.hard(ids.masked_fill(soft, 0))
        return words.index_put((soft,), self.vectors[ids[soft] - self.first].to(words.dtype))


@contextmanager
def installed(model: Model, vectors: torch.Tensor) -> Iterator[None]:
    """Within the block the model reads the ids `soft_ids(model, …)` as these vectors."""
    hard = model.model.get_input_embeddings()
    model.model.set_input_embeddings(SoftEmbedding(hard, model.config.vocab_size, vectors))
    try:
        yield
    finally:
        model.model.set_input_embeddings(hard)


def soft_ids(model: Model, count: int) -> tuple[int, ...]:
    """The ids of the first `count` vectors."""
    first = model.config.vocab_size
    return tuple(range(first, first + count))


def from_tokens(model: Model, ids: Sequence[int], count: int) -> torch.Tensor:
    """`count` vectors, [count, hidden], copied from tokens taken evenly from `ids`."""
    chosen = torch.tensor([ids[i * len(ids) // count] for i in range(count)], device=model.device)
    weights: torch.Tensor = model.model.get_input_embeddings().weight[chosen]
    return weights.detach().float().clone()


def losses(model: Model, examples: Sequence[Example]) -> torch.Tensor:
    """The mean negative log-probability of all masked tokens of the examples, in one batch."""
    ids, attention = padded(
        [row for row, _, _ in examples], model.tokenizer.pad_token_id, model.device
    )
    length = ids.shape[1]
    positions = [i * length + p for i, (_, masks, _) in enumerate(examples) for p in masks]
    tokens = [token for _, _, targets in examples for token in targets]
    with narrowed(model.model.base_model, positions):
        logits = model.model(ids, attention_mask=attention).logits[0]
    return torch.nn.functional.cross_entropy(
        logits.float(), torch.tensor(tokens, device=logits.device)
    )
