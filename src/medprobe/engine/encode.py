"""Vectors of texts: each distinct text is encoded once, in batches with little padding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from medprobe.core.errors import BadInput
from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.load import Model
from medprobe.engine.pooling import FIRST_TOKEN, Reading


def encode(
    model: Model,
    texts: Sequence[str],
    max_length: int,
    reading: Reading = FIRST_TOKEN,
    layer: int | Sequence[int] = -1,
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Encode texts as vectors.

    Texts with the same tokens are encoded once, so that their vectors are equal to the last bit.

    Returns:
        float32 [n, size]; for a list of layers [layers, n, size].
    """
    layers = [layer] if isinstance(layer, int) else list(layer)
    check_layers(model, layers)
    rows = tokenize(model, texts, max_length)
    index = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    distinct = list(index)

    def compute(batch: list[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        return _states(model, [distinct[i] for i in batch], reading, layers)

    states = compute_in_batches([len(row) for row in distinct], model.token_budget, compute)
    width = model.config.hidden_size
    vectors = np.stack(states) if states else np.empty((0, len(layers), width), np.float32)
    vectors = vectors[[index[row] for row in rows]].swapaxes(0, 1)
    return np.ascontiguousarray(vectors[0] if isinstance(layer, int) else vectors)


def tokenize(model: Model, texts: Sequence[str], max_length: int) -> list[tuple[int, ...]]:
    """Return token ids with special tokens, cut to `max_length` and to the model's window."""
    if not texts:
        return []
    length = min(max_length, model.max_length)
    ids = model.tokenizer(list(texts), truncation=True, max_length=length)["input_ids"]
    return [tuple(row) for row in ids]


def read_characters(model: Model, texts: Sequence[str], max_length: int) -> list[int | None]:
    """Return how many characters of each text `tokenize` keeps; None where it keeps it whole."""
    if not texts:
        return []
    tokenizer, length = model.tokenizer, min(max_length, model.max_length)
    whole = tokenizer(list(texts), verbose=False, return_attention_mask=False)["input_ids"]
    cut = [text for text, ids in zip(texts, whole, strict=True) if len(ids) > length]
    lengths: dict[str, int] = {}
    if cut:
        encoded = tokenizer(
            cut, truncation=True, max_length=length, return_offsets_mapping=True, verbose=False
        )
        spans_by_text = zip(cut, encoded["offset_mapping"], strict=True)
        lengths = {text: max(end for _, end in spans) for text, spans in spans_by_text}
    return [lengths.get(text) for text in texts]


def check_layers(model: Model, layers: Sequence[int]) -> None:
    """Check that the model has these layers."""
    count = model.config.num_hidden_layers
    for layer in layers:
        if not -1 <= layer <= count:
            raise BadInput(model.name, f"no layer {layer}", f"choose from 0 to {count}")


@torch.inference_mode()
def _states(
    model: Model, rows: Sequence[Sequence[int]], reading: Reading, layers: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the pooled states of one batch, [rows, layers, size]."""
    ids, mask = pad_rows(rows, model.tokenizer.pad_token_id, model.device)
    equal_lengths = len(rows[0]) == len(
        rows[-1]
    )  # all of one length (longest first): no mask is faster
    needs_hidden = any(layer != -1 for layer in layers)
    output = model.model(
        input_ids=ids,
        attention_mask=None if equal_lengths else mask,
        output_hidden_states=needs_hidden,
    )
    states = [output.hidden_states[i] if needs_hidden else output.last_hidden_state for i in layers]
    pooled = [reading(state, mask) for state in states]
    return np.asarray(torch.stack(pooled, dim=1).float().cpu().numpy())
