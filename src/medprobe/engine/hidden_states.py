"""Hidden states of single tokens in all layers: each distinct text is read once."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from medprobe.core.errors import BadInput
from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.load import Model, NotANumber


def choose_layers(model: Model, layers: Sequence[int]) -> list[int]:
    """Return the layers to read, all where none is named; 0 is the embeddings.

    Raises:
        BadInput: For the first layer that the model does not have.
    """
    count: int = model.config.num_hidden_layers
    for layer in layers:
        if not 0 <= layer <= count:
            raise BadInput(model.name, f"no layer {layer}", f"choose from 0 to {count}")
    return sorted({*layers}) or [*range(count + 1)]


@torch.inference_mode()
def hidden_states(
    model: Model,
    rows: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
    layers: Sequence[int],
) -> NDArray[np.float32]:
    """Return the states of some tokens of each text.

    Equal rows are read once, so that their states are equal to the last bit.

    Args:
        model: A masked or causal model; its head is not run.
        rows: Token ids of each text.
        positions: Those of the tokens in each row, equally many for all.
        layers: 0 is the embeddings, 1 the first layer.

    Returns:
        float32 [rows, positions, layers, hidden].

    Raises:
        NotANumber: A state is NaN or infinite.
    """
    keys = [(tuple(row), tuple(at)) for row, at in zip(rows, positions, strict=True)]
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    distinct = [*index]

    def compute(batch: list[int]) -> NDArray[np.float32]:
        return _states(model, [distinct[i] for i in batch], layers)

    states = compute_in_batches([len(row) for row, _ in distinct], model.token_budget, compute)
    return np.stack([states[index[key]] for key in keys])


def _states(
    model: Model,
    batch: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    layers: Sequence[int],
) -> NDArray[np.float32]:
    """The states of one batch, the longest row first: [rows, positions, layers, hidden]."""
    ids, mask = pad_rows([row for row, _ in batch], model.tokenizer.pad_token_id, model.device)
    equal_lengths = len(batch[0][0]) == len(batch[-1][0])
    output = model.model.base_model(
        input_ids=ids, attention_mask=None if equal_lengths else mask, output_hidden_states=True
    )
    at = torch.tensor([positions for _, positions in batch])
    row = torch.arange(len(batch))[:, None]
    states = [output.hidden_states[layer] for layer in layers]
    chosen = torch.stack([s[row.to(s.device), at.to(s.device)].float().cpu() for s in states], 2)
    if not chosen.isfinite().all():
        raise NotANumber(model.name, "the model's hidden states are NaN or infinite")
    return np.asarray(chosen.numpy())
