"""Gradients of a loss over all texts of a batch at once, such as InfoNCE, in limited memory.

Where memory holds what the network keeps of all texts, one pass is enough. Otherwise gradients are
cached (Gao et al. 2021, section 3): first the states without their graph, then the loss's gradient
by state, and then, a few texts at a time, the states again, with the same dropout, and from them
the gradients of the weights. Both ways give the same numbers; the second costs another forward
pass.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psutil
import torch

from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.load import Model
from medprobe.engine.training_state import random_states, restore_random_states

Loss = Callable[[torch.Tensor], torch.Tensor]  # of states [rows, d]
SHARE: Final = 0.5  # of free memory: the backward pass, the optimiser and others need some too


def token_capacity(model: Model, longest: Sequence[int]) -> int:
    """Return for how many tokens the free memory holds what a backward pass needs.

    It is measured by what the network keeps of one text in training.

    Args:
        model: An encoder.
        longest: Token ids of the longest text.
    """
    storages: dict[int, int] = {weight.data_ptr(): 0 for weight in model.model.parameters()}

    def record(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
        states = _first_states(model, [longest])
    capacity = SHARE * free_bytes(model.device) * len(longest) / sum(storages.values())
    del states  # it holds what was kept
    return int(capacity)


def free_bytes(device: torch.device) -> int:
    """Return the free memory of a device in bytes.

    For a CPU it is the machine's, or what the control group grants where that is less.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _group_memory())


def _group_memory(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that the control group has left, 2**63 where it sets no limit."""
    try:
        limit, used = ((folder / f"memory.{name}").read_text() for name in ("max", "current"))
        return int(limit) - int(used)
    except (OSError, ValueError):
        return 2**63


def add_gradients(model: Model, rows: Sequence[Sequence[int]], loss: Loss, capacity: int) -> float:
    """Add the gradients of a loss to those of the weights.

    Texts that exceed `capacity` are read twice, as the module says.

    Args:
        model: An encoder.
        rows: Token ids of each text; texts of similar length run together.
        loss: A function of the last layer's first state of each row, [rows, hidden].
        capacity: See `token_capacity`.

    Returns:
        The loss.
    """

    def states_of(batch: list[int]) -> torch.Tensor:
        return _first_states(model, [rows[i] for i in batch])

    lengths = [len(row) for row in rows]
    if sum(lengths) <= capacity:
        value = loss(torch.stack(compute_in_batches(lengths, model.token_budget, states_of)))
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()
    batches: list[tuple[list[int], list[torch.Tensor]]] = []

    def without_graph(batch: list[int]) -> torch.Tensor:
        batches.append((batch, random_states(model.device)))
        return states_of(batch).detach()

    budget = min(model.token_budget, capacity)
    vectors = torch.stack(compute_in_batches(lengths, budget, without_graph)).requires_grad_()
    value = loss(vectors)
    value.backward()  # type: ignore[no-untyped-call]
    assert vectors.grad is not None
    for batch, draws in reversed(batches):  # in the order of one pass, to the last bit
        restore_random_states(draws, model.device)
        states_of(batch).backward(vectors.grad[batch])  # type: ignore[no-untyped-call]
    return value.item()


def _first_states(model: Model, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the last layer's first states, [rows, hidden], with their graph."""
    ids, mask = pad_rows(rows, model.tokenizer.pad_token_id, model.device)
    states: torch.Tensor = model.model(input_ids=ids, attention_mask=mask).last_hidden_state
    return states[:, 0]
