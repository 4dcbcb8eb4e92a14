"""Masked language models: log-probabilities of tokens at chosen positions.

The head runs at these positions only (`heads`), whatever the architecture.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

import numpy as np
import torch

from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.heads import narrow_head, split_by_logits
from medprobe.engine.load import Model
from medprobe.engine.slots import answer_ids, check_window, masked_slots

Rows = Sequence[Sequence[int]]  # one a text: of token ids, or of positions in it
Word = tuple[int, ...]  # the positions of what the tokenizer splits into tokens as a whole
ByLength = dict[int, tuple[np.ndarray, torch.Tensor]]  # n -> its names, their tokens [n, names]
Masking = Literal["token", "whole_word", "within_word_l2r"]
Result = TypeVar("Result")

CHUNK: Final = 4096  # masked copies of texts that exist at a time


def log_probs(
    model: Model,
    rows: Rows,
    positions: Rows,
    budget: int,
    extract: Callable[[int, torch.Tensor], Result],
    *,
    normalised: bool = True,
) -> list[Result]:
    """Run rows of token ids and return what `extract` makes of the log-probabilities at positions.

    The result of a row depends neither on the other rows, nor on padding, nor on `budget`.

    Args:
        model: A masked model.
        rows: Token ids of each text.
        positions: The positions of each row.
        budget: Tokens in a batch.
        extract: Gets the row's index and a float32 tensor [positions of the row, vocabulary] on the
            model's device. The tensor is a view into a batch: return what is needed, not the
            tensor.
        normalised: False gives the head's output before the softmax.
    """

    def compute(batch: list[int]) -> list[Result]:
        results = []
        for part in split_by_logits(
            batch, [len(row) for row in positions], model.config.vocab_size
        ):
            logits = logits_at(model, [rows[i] for i in part], [positions[i] for i in part])
            counts = [len(positions[i]) for i in part]
            parts = (logits.log_softmax(-1) if normalised else logits).split(counts)
            results += [extract(i, log_prob) for i, log_prob in zip(part, parts, strict=True)]
        return results

    with torch.inference_mode():
        return compute_in_batches([len(row) for row in rows], budget, compute)


def pseudo_log_likelihood(
    model: Model, rows: Rows, groups: Sequence[Rows], budget: int
) -> list[list[float]]:
    """Return the log-probabilities of masked tokens given all other tokens.

    Rows with the same tokens are read once, so that their numbers are equal to the last bit.

    Source:
        Salazar et al., ACL 2020.
    """
    keys = [
        (tuple(row), tuple(map(tuple, row_groups)))
        for row, row_groups in zip(rows, groups, strict=True)
    ]
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    masked_groups = [(key, group) for key in index for group in key[1]]
    mask = model.tokenizer.mask_token_id
    scores_by_row: list[list[float]] = [[] for _ in index]
    for start in range(0, len(masked_groups), CHUNK):
        chunk = masked_groups[start : start + CHUNK]
        masked = [
            [mask if p in group else t for p, t in enumerate(row)] for (row, _), group in chunk
        ]
        targets = [[row[position] for position in group] for (row, _), group in chunk]

        def extract(item: int, log_prob: torch.Tensor, targets: Rows = targets) -> list[float]:
            tokens = torch.tensor(targets[item], device=log_prob.device)
            scores: list[float] = log_prob.gather(1, tokens[:, None])[:, 0].tolist()
            return scores

        scores = log_probs(model, masked, [group for _, group in chunk], budget, extract)
        for (key, _), group_scores in zip(chunk, scores, strict=True):
            scores_by_row[index[key]] += group_scores
    return [scores_by_row[index[key]] for key in keys]


def group_by_word(positions: Iterable[tuple[int, int]]) -> list[Word]:
    """Return the words of a text.

    Example:
        >>> group_by_word([(1, 0), (2, 1), (3, 1)])
        [(1,), (2, 3)]
    """
    words: dict[int, list[int]] = {}
    for position, word in positions:
        words.setdefault(word, []).append(position)
    return [tuple(word_positions) for word_positions in words.values()]


def masked_groups(word: Word, masking: Masking) -> list[tuple[int, ...]]:
    """Return for each token of a word the positions that are masked while it is scored.

    Example:
        >>> masked_groups((2, 3, 4), "within_word_l2r")
        [(2, 3, 4), (3, 4), (4,)]

    Source:
        `token`: Salazar et al., ACL 2020. `within_word_l2r`: Kauf and Ivanova, ACL 2023.
    """
    match masking:
        case "token":
            return [(position,) for position in word]
        case "whole_word":
            return [word] * len(word)
        case "within_word_l2r":
            return [word[i:] for i in range(len(word))]


def distinct_groups(words: Sequence[Word], maskings: Sequence[Masking]) -> list[tuple[int, ...]]:
    """Return the groups of positions to mask in a text. The model reads the text once per group."""
    groups: dict[tuple[int, ...], None] = {}
    for masking in maskings:
        for word in words:
            groups |= dict.fromkeys(masked_groups(word, masking))
    return [*groups]


def token_log_probs(
    model: Model, rows: Rows, words: Sequence[Sequence[Word]], maskings: Sequence[Masking]
) -> dict[Masking, list[list[float]]]:
    """Return the log-probabilities of masked tokens by each masking.

    Maskings share the passes in which they mask the same tokens.
    """
    groups = [distinct_groups(row_words, maskings) for row_words in words]
    group_scores = pseudo_log_likelihood(model, rows, groups, model.token_budget)
    log_probs: dict[Masking, list[list[float]]] = {masking: [] for masking in maskings}
    for row_words, row_groups, scores in zip(words, groups, group_scores, strict=True):
        masks = [(group, position) for group in row_groups for position in group]
        score_by_mask = dict(zip(masks, scores, strict=True))
        for masking in maskings:
            row_log_probs = [
                score_by_mask[group, position]
                for word in row_words
                for position, group in zip(word, masked_groups(word, masking), strict=True)
            ]
            log_probs[masking].append(row_log_probs)
    return log_probs


def mean_log_probs(
    model: Model,
    prompts: Sequence[str],
    where: Sequence[str],
    names: Sequence[str],
    known: dict[str, ByLength] | None = None,
) -> np.ndarray:
    """Return the score of each name in each prompt's slot, [prompts, names], float32.

    The score is the mean log-probability of the name's n tokens at n masks. One row with n masks
    serves all names of n tokens.

    Source:
        Kassner et al., EACL 2021.
    """
    slots = masked_slots(model.tokenizer, prompts, where)
    names_by_length = {} if known is None else known
    for preceding in {slot.preceding for slot in slots} - names_by_length.keys():
        names_by_length[preceding] = _by_length(model, names, preceding)
    for slot, query in zip(slots, where, strict=True):
        length = max(names_by_length[slot.preceding])
        name = names[int(names_by_length[slot.preceding][length][0][0])]
        check_window(slot, [[0] * length], model.max_length, query, [name])
    passes = [(i, n) for i, slot in enumerate(slots) for n in names_by_length[slot.preceding]]
    mask = model.tokenizer.mask_token_id
    rows = [slots[i].fill([mask] * n) for i, n in passes]
    positions = [slots[i].positions(n) for i, n in passes]
    means = np.empty((len(slots), len(names)), dtype=np.float32)

    def extract(item: int, log_prob: torch.Tensor) -> None:
        i, n = passes[item]
        columns, tokens = names_by_length[slots[i].preceding][n]
        means[i, columns] = log_prob.gather(1, tokens).mean(0).cpu().numpy()

    log_probs(model, rows, positions, model.token_budget, extract)
    return means


def one_mask_scores(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str]
) -> np.ndarray:
    """Return the scores of MedLAMA's released script, [prompts, names], float32.

    A score is the head's output for a name's tokens at one mask, before the softmax, summed and
    divided by the number of tokens of the longest name, to which the script pads.
    """
    slots = masked_slots(model.tokenizer, prompts, where)
    tokens = answer_ids(model.tokenizer, names, "")
    for slot, query in zip(slots, where, strict=True):
        check_window(slot, [[0]], model.max_length, query, ["a mask"])
    ids, mask = pad_rows(tokens, 0, model.device)
    rows = [slot.fill([model.tokenizer.mask_token_id]) for slot in slots]

    def extract(item: int, logits: torch.Tensor) -> np.ndarray:
        return (logits[0][ids] * mask).mean(1).cpu().numpy()

    positions = [slot.positions(1) for slot in slots]
    scores = log_probs(model, rows, positions, model.token_budget, extract, normalised=False)
    return np.stack(scores)


def _by_length(model: Model, names: Sequence[str], preceding: str) -> ByLength:
    columns = defaultdict(list)
    ids = answer_ids(model.tokenizer, names, preceding)
    for i, tokens in enumerate(ids):
        columns[len(tokens)].append(i)
    return {
        n: (np.array(indices), torch.tensor([ids[i] for i in indices]).T.to(model.device))
        for n, indices in columns.items()
    }


def logits_at(model: Model, rows: Rows, positions: Rows) -> torch.Tensor:
    """Return the output of the head at positions of one batch, [positions, vocabulary]."""
    ids, attention = pad_rows(rows, model.tokenizer.pad_token_id, model.device)
    length = ids.shape[1]
    flat = [i * length + position for i, row in enumerate(positions) for position in row]
    with narrow_head(model.model.base_model, flat):
        logits: torch.Tensor = model.model(ids, attention_mask=attention).logits
    return logits[0].float()
