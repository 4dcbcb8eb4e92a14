"""Gradients of a loss over all texts of a batch at once, such as InfoNCE, in the memory there is.

Where memory holds what the network keeps of all texts, one pass does. Else gradients are cached
(Gao et al. 2021, section 3): states without what made them, the loss's gradient by state, and then,
a few texts at a time, the states anew, by the same draws of dropout, and from them the weights'
gradients. Both ways give the same numbers; the second costs another forward pass.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import psutil
import torch

from medprobe.engine.batching import in_batches, padded
from medprobe.engine.load import Model

Loss = Callable[[torch.Tensor], torch.Tensor]  # of states [rows, d]
SHARE: Final = 0.5  # of free memory: the backward pass, the optimiser and others need some too


def tokens_held(model: Model, longest: Sequence[int]) -> int:
    """Of how many tokens the memory that is free now holds all that a backward pass needs, by
    what the network keeps of one text in training."""
    kept: dict[int, int] = {weight.data_ptr(): 0 for weight in model.model.parameters()}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        states = _first_states(model, [longest])
    held = SHARE * free_bytes(model.device) * len(longest) / sum(kept.values())
    del states  # it holds what was kept
    return int(held)


def free_bytes(device: torch.device) -> int:
    """Memory that is free on a device: for a CPU the machine's, or what its control group grants
    where that is less."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _granted())


def _granted(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that the control group has left, many where it sets no limit."""
    try:
        limit, used = ((folder / f"memory.{name}").read_text() for name in ("max", "current"))
        return int(limit) - int(used)
    except (OSError, ValueError):
        return 2**63


def add_gradients(model: Model, rows: Sequence[Sequence[int]], loss: Loss, held: int) -> float:
    """Add the gradients of `loss`, over the last layer's first state of each row of tokens, to
    those of the weights; returns its value. Texts of similar length run together; `held` is what
    `tokens_held` says."""
    lengths = [len(row) for row in rows]
    if sum(lengths) <= held:
        states = partial(_states_of, model, rows)
        value = loss(torch.stack(in_batches(lengths, model.token_budget, states)))
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()
    done: list[tuple[list[int], list[torch.Tensor]]] = []

    def without_graph(batch: list[int]) -> torch.Tensor:
        draws = _generators(model.device)
        states = _states_of(model, rows, batch).detach()
        done.append((batch, draws))
        return states

    budget = min(model.token_budget, held)
    vectors = torch.stack(in_batches(lengths, budget, without_graph)).requires_grad_()
    value = loss(vectors)
    value.backward()  # type: ignore[no-untyped-call]
    assert vectors.grad is not None
    for batch, draws in reversed(done):  # in the order of one pass, to the last bit
        _set_generators(draws, model.device)
        _states_of(model, rows, batch).backward(vectors.grad[batch])  # type: ignore
    return value.item()


def _states_of(model: Model, rows: Sequence[Sequence[int]], batch: list[int]) -> torch.Tensor:
    return _first_states(model, [rows[i] for i in batch])


def _first_states(model: Model, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """The last layer's first states [rows, d], with their graph."""
    ids, mask = padded(rows, model.tokenizer.pad_token_id, model.device)
    states: torch.Tensor = model.model(input_ids=ids, attention_mask=mask).last_hidden_state
    return states[:, 0]


def _generators(device: torch.device) -> list[torch.Tensor]:
    """The states of the generators that dropout draws from."""
    on_device = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_device]


def _set_generators(states: list[torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state, device)
