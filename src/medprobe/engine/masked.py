"""Masked language models: log-probabilities of tokens at chosen positions.

The head runs at the asked positions only (`heads`), whatever the architecture.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np
import torch

from medprobe.engine.batching import in_batches, padded
from medprobe.engine.heads import bounded, narrowed
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, answer_ids, check_window, masked_slots

Rows = Sequence[Sequence[int]]  # one a text: of token ids, or of positions in it
Kept = TypeVar("Kept")

ROWS_AT_ONCE: Final = 4096  # masked copies of texts that exist at a time


def log_probs(
    model: Model,
    rows: Rows,
    positions: Rows,
    budget: int,
    keep: Callable[[int, torch.Tensor], Kept],
    *,
    normalised: bool = True,
) -> list[Kept]:
    """Run each row of token ids and return what `keep` makes of the log-probabilities at its
    positions, in the order of the rows; not `normalised`, of the head's output as it is.

    `keep` gets the row's index and a float32 tensor of shape (positions of the row, vocabulary) on
    the model's device, a view into a batch: it should return what is needed of it, not the tensor.
    What a row gets depends neither on the rows beside it, nor on padding, nor on `budget` (tokens
    in a batch).
    """

    def compute(batch: list[int]) -> list[Kept]:
        results = []
        for part in bounded(batch, [len(row) for row in positions], model.config.vocab_size):
            logits = logits_at(model, [rows[i] for i in part], [positions[i] for i in part])
            counts = [len(positions[i]) for i in part]
            parts = (logits.log_softmax(-1) if normalised else logits).split(counts)
            results += [keep(i, log_prob) for i, log_prob in zip(part, parts, strict=True)]
        return results

    with torch.inference_mode():
        return in_batches([len(row) for row in rows], budget, compute)


def pseudo_log_likelihood(
    model: Model, rows: Rows, groups: Sequence[Rows], budget: int
) -> list[list[float]]:
    """The log-probabilities of masked tokens given all else (Salazar et al., ACL 2020).

    `groups` has for each row of token ids the positions to mask, those of one group together:
    groups of one position give the pseudo-log-likelihood, groups that are words its whole-word
    variant. Returns for each row one number a position, in the order of its groups; their sum is
    the row's score, and exp(-mean) its pseudo-perplexity. Rows that are the same tokens are read
    once, so that their numbers are equal to the last bit.
    """
    keys = [
        (tuple(row), tuple(map(tuple, of_row))) for row, of_row in zip(rows, groups, strict=True)
    ]
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    work = [(key, group) for key in index for group in key[1]]
    mask = model.tokenizer.mask_token_id
    by_row: list[list[float]] = [[] for _ in index]
    for start in range(0, len(work), ROWS_AT_ONCE):
        chunk = work[start : start + ROWS_AT_ONCE]
        masked = [
            [mask if p in group else t for p, t in enumerate(row)] for (row, _), group in chunk
        ]
        wanted = [[row[position] for position in group] for (row, _), group in chunk]

        def keep(item: int, log_prob: torch.Tensor, wanted: Rows = wanted) -> list[float]:
            tokens = torch.tensor(wanted[item], device=log_prob.device)
            scores: list[float] = log_prob.gather(1, tokens[:, None])[:, 0].tolist()
            return scores

        scores = log_probs(model, masked, [group for _, group in chunk], budget, keep)
        for (key, _), of_group in zip(chunk, scores, strict=True):
            by_row[index[key]] += of_group
    return [by_row[index[key]] for key in keys]


def mean_log_probs(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str]
) -> np.ndarray:
    """The score of each name in each prompt's slot, [prompts, names], float32: the mean
    log-probability of the name's n tokens at n masks (Kassner et al., EACL 2021). One row with n
    masks serves all names of n tokens.

    `where` names each prompt in errors. Raises BadInput for a prompt without exactly one slot, a
    name that tokenises to nothing, a name that does not fit into the model's window.
    """
    slots, lengths = _slots_and_lengths(model, prompts, where, names)
    for slot, query in zip(slots, where, strict=True):
        longest = max(lengths[slot.left])
        name = names[int(lengths[slot.left][longest][0][0])]
        check_window(slot, [[0] * longest], model.max_length, query, [name])
    work = [(i, n) for i, slot in enumerate(slots) for n in lengths[slot.left]]
    mask = model.tokenizer.mask_token_id
    rows = [slots[i].fill([mask] * n) for i, n in work]
    positions = [slots[i].positions(n) for i, n in work]
    means = np.empty((len(slots), len(names)), dtype=np.float32)

    def keep(item: int, log_prob: torch.Tensor) -> None:
        i, n = work[item]
        columns, tokens = lengths[slots[i].left][n]
        means[i, columns] = log_prob.gather(1, tokens).mean(0).cpu().numpy()

    log_probs(model, rows, positions, model.token_budget, keep)
    return means


def one_mask_scores(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str]
) -> np.ndarray:
    """The scores that MedLAMA's released script gives names, [prompts, names], float32: what the
    head says of a name's tokens at one mask, before the softmax, summed and divided by the number
    of tokens of the longest name, to which the script pads.

    Raises BadInput as `mean_log_probs` does, for one mask.
    """
    slots = masked_slots(model.tokenizer, prompts, where)
    tokens = answer_ids(model.tokenizer, names, "")
    for slot, query in zip(slots, where, strict=True):
        check_window(slot, [[0]], model.max_length, query, ["a mask"])
    ids, there = padded(tokens, 0, model.device)
    rows = [slot.fill([model.tokenizer.mask_token_id]) for slot in slots]

    def keep(item: int, logits: torch.Tensor) -> np.ndarray:
        return (logits[0][ids] * there).mean(1).cpu().numpy()

    positions = [slot.positions(1) for slot in slots]
    found = log_probs(model, rows, positions, model.token_budget, keep, normalised=False)
    return np.stack(found)


def lengths_read(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str]
) -> list[int]:
    """The tokens of each row that `mean_log_probs` reads."""
    slots, lengths = _slots_and_lengths(model, prompts, where, names)
    return [len(slot.before) + n + len(slot.after) for slot in slots for n in lengths[slot.left]]


def _slots_and_lengths(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str]
) -> tuple[list[Slot], dict[str, dict[int, tuple[np.ndarray, torch.Tensor]]]]:
    """Each prompt's slot, and the names by length behind the character that stands before it."""
    slots = masked_slots(model.tokenizer, prompts, where)
    return slots, {left: _by_length(model, names, left) for left in {slot.left for slot in slots}}


def _by_length(
    model: Model, names: Sequence[str], left: str
) -> dict[int, tuple[np.ndarray, torch.Tensor]]:
    """For each number of tokens n: which names have it, and their tokens, [n, names]."""
    columns = defaultdict(list)
    ids = answer_ids(model.tokenizer, names, left)
    for i, tokens in enumerate(ids):
        columns[len(tokens)].append(i)
    return {
        n: (np.array(of_n), torch.tensor([ids[i] for i in of_n]).T.to(model.device))
        for n, of_n in columns.items()
    }


def logits_at(model: Model, rows: Rows, positions: Rows) -> torch.Tensor:
    """The head's output at the positions of all rows, (positions, vocabulary), in one batch."""
    ids, attention = padded(rows, model.tokenizer.pad_token_id, model.device)
    length = ids.shape[1]
    flat = [i * length + position for i, row in enumerate(positions) for position in row]
    with narrowed(model.model.base_model, flat):
        logits: torch.Tensor = model.model(ids, attention_mask=attention).logits
    return logits[0].float()
