"""Rewiring of Contrastive-Probe (Meng et al., ACL 2022, section 3).

An encoder learns to bring a sentence without its tail near that tail, by InfoNCE over all texts of
a batch.
"""

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import psutil
import torch

from medprobe.core.errors import BadInput, is_out_of_memory
from medprobe.core.files import replacing
from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.encode import tokenize
from medprobe.engine.load import Model
from medprobe.engine.training_state import (
    Timer,
    random_states,
    read_state,
    restore_random_states,
    write_state,
)
from medprobe.papers.medlama.rewired import checkpoints
from medprobe.papers.medlama.settings.rewire import RewireSettings, checkpoint_steps

VERSION: Final = 1  # raise it when rewired weights change
STATE: Final = "training.pt"  # with the newest kept checkpoint: what the next step needs


def info_nce(vectors: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the mean InfoNCE loss of 2N vectors [2N, d].

    The i-th and the (N+i)-th are a pair. Each should be nearest, by cosine over `temperature`, to
    its partner among all 2N - 1 others.
    """
    unit = torch.nn.functional.normalize(vectors.float(), dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    similarity = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)
    partner = torch.arange(len(unit), device=unit.device).roll(len(unit) // 2)
    return torch.nn.functional.cross_entropy(similarity, partner)


def batch_order(pairs: int, batch: int, steps: int, seed: str) -> Iterator[list[int]]:
    """The pairs of each step: epochs in a new order each, their last batch as small as it comes."""
    epoch = 0
    while steps > 0:
        order = random.Random(f"{seed} epoch {epoch}").sample(range(pairs), pairs)
        for start in range(0, pairs, batch):
            if steps > 0:
                yield order[start : start + batch]
            steps -= 1
        epoch += 1


def steps_read(
    model: Model, pairs: Sequence[tuple[str, str]], settings: RewireSettings, seed: str
) -> list[list[tuple[int, ...]]]:
    """The tokens of the texts that each step reads: all queries, then their answers."""
    rows = tokenize(model, [text for pair in pairs for text in pair], settings.max_length)
    order = batch_order(len(pairs), settings.batch, settings.steps, seed)
    return [[rows[2 * pair + side] for side in (0, 1) for pair in chosen] for chosen in order]


class Rewiring:
    """The training of one model, from checkpoint to checkpoint.

    Every so many steps `folder/step-<n>` is written, and every few minutes a further one, which
    the next replaces. A training that was stopped, on this or another machine, continues from the
    newest checkpoint of `folder`, and gives what an uninterrupted one gives.
    """

    def __init__(
        self,
        model: Model,
        pairs: Sequence[tuple[str, str]],
        settings: RewireSettings,
        *,
        seed: str,
        folder: Path,
    ) -> None:
        self.model, self.settings, self.seed, self.folder = model, settings, seed, folder
        for part in model.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = settings.dropout
        self.adam = torch.optim.AdamW(
            model.model.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.steps = steps_read(model, pairs, settings, seed)
        self.losses: list[float] = []

    def train_until(
        self, last: int, on_step: Callable[[int, float], None] = lambda step, loss: None
    ) -> list[float]:
        """Train until step `last`."""
        if (newest := newest_step(self.folder)) > len(self.losses):
            self._resume(self.folder / f"step-{newest}")
        self.model.model.train()
        timer = Timer()
        for step in range(len(self.losses) + 1, last + 1):
            self.losses.append(self._step(step))
            if not self.losses[-1] < float("inf"):
                raise BadInput(
                    f"rewire {self.model.name}, step {step}",
                    "the loss is not a number",
                    "lower rewire.learning_rate",
                )
            if timer.is_due or step in checkpoint_steps(self.settings):
                self._keep(step)
                timer.restart()
            on_step(step, self.losses[-1])
        self.model.model.eval()
        return self.losses

    @cached_property
    def capacity(self) -> int:
        """For how many tokens memory holds what a step needs."""
        longest = max((row for rows in self.steps for row in rows), key=len)
        return token_capacity(self.model, longest)

    def _keep(self, step: int) -> None:
        """Write a checkpoint with the optimiser's state, and remove what it replaces."""
        with replacing(self.folder / f"step-{step}") as path:
            self.model.model.save_pretrained(path)
            self.model.tokenizer.save_pretrained(path)
            write_state({"adam": self.adam.state_dict(), "losses": self.losses}, path / STATE)
        for older, path in checkpoints(self.folder).items():
            if older != step and older in checkpoint_steps(self.settings):
                (path / STATE).unlink(missing_ok=True)
            elif older != step:
                shutil.rmtree(path)

    def _resume(self, path: Path) -> None:
        from safetensors.torch import load_file

        try:
            weights = load_file(path / "model.safetensors")
            state = read_state(path / STATE, self.model.device)
        except Exception as error:  # each format has its own
            if is_out_of_memory(error):
                raise
            raise BadInput(path, "cut or damaged", "delete this folder") from error
        self.model.model.load_state_dict(weights)
        self.adam.load_state_dict(state["adam"])
        self.losses = state["losses"]

    def _step(self, step: int) -> float:
        capacity = self.capacity  # which draws, when it is measured
        torch.manual_seed(random.Random(f"{self.seed} step {step}").getrandbits(63))
        self.adam.zero_grad()
        loss = partial(info_nce, temperature=self.settings.temperature)
        value = add_gradients(self.model, self.steps[step - 1], loss, capacity)
        self.adam.step()
        return value


def newest_step(folder: Path) -> int:
    """Return the step from which training in `folder` resumes; 0 where there is no checkpoint."""
    steps = (step for step, path in checkpoints(folder).items() if (path / STATE).is_file())
    return max(steps, default=0)


Loss = Callable[[torch.Tensor], torch.Tensor]  # of states [rows, d]
SHARE: Final = 0.5  # of free memory: the backward pass, the optimiser and others need some too


def token_capacity(model: Model, longest: Sequence[int]) -> int:
    """Return for how many tokens the free memory holds what a backward pass needs.

    It is measured by what the network keeps of one text in training.
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
