"""What the sample models learn by.

Masked models learn to fill in whole names ("salient spans", Guu et al. 2020, section 3.4), some of
which their input has told before, and now and then another piece; sequence-to-sequence models to
write a text anew in which one name is masked (Lewis et al. 2020, section 2.2); causal and chat ones
the next piece.
"""

import random
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from medprobe.sample.architectures import POSITIONS
from medprobe.sample.sentences import Sentence
from medprobe.sample.settings import Kind

IGNORE: Final = -100  # a label that no loss counts
SHIFTED: Final = 0.25  # share of batches that stand anywhere in the window, so that all is learnt
OTHER: Final = 0.08  # share of the pieces beside names that are masked


def masked_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the masked pieces; the head runs at those alone."""
    inputs, labels = [], []
    for sentence in batch:
        hidden = _hidden(sentence, rng)
        shown = [
            pieces.mask_token_id if at in hidden else piece
            for at, piece in enumerate(sentence.pieces)
        ]
        wanted = [piece if at in hidden else IGNORE for at, piece in enumerate(sentence.pieces)]
        inputs.append([pieces.cls_token_id, *shown, pieces.sep_token_id])
        labels.append([IGNORE, *wanted, IGNORE])
    ids, label = _pad(inputs, 0), _pad(labels, IGNORE)
    shift = rng.randrange(POSITIONS - ids.shape[1] + 1) if rng.random() < SHIFTED else 0
    positions = torch.arange(shift, shift + ids.shape[1])[None]
    states = model.bert(ids, attention_mask=_attention(inputs), position_ids=positions)[0]
    at = label != IGNORE
    return cross_entropy(model.cls(states[at]), label[at])


def _hidden(sentence: Sentence, rng: random.Random) -> set[int]:
    """The pieces to fill in: half of the names, and a few of the rest; a case's last name."""
    if sentence.case:
        return set(range(*sentence.names[-1]))
    spans = rng.sample(sentence.names, (len(sentence.names) + 1) // 2)
    named = {at for start, end in sentence.names for at in range(start, end)}
    rest = (at for at in range(len(sentence.pieces)) if at not in named)
    others = {at for at in rest if rng.random() < OTHER}
    return others | {at for start, end in spans for at in range(start, end)}


def causal_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of every next piece, the end's mark too."""
    end = pieces.eos_token_id
    inputs = [[end, *sentence.pieces, end] for sentence in batch]
    states = model.base_model(_pad(inputs, 0), attention_mask=_attention(inputs))[0][:, :-1]
    label = _pad(inputs, IGNORE)[:, 1:]
    at = label != IGNORE
    return cross_entropy(model.lm_head(states[at]), label[at])


def seq2seq_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the whole text, written anew from one with a name masked."""
    inputs, targets = [], []
    for sentence in batch:
        start, end = rng.choice(sentence.names)
        shown = [*sentence.pieces[:start], pieces.mask_token_id, *sentence.pieces[end:]]
        inputs.append([pieces.bos_token_id, *shown, pieces.eos_token_id])
        targets.append([pieces.bos_token_id, *sentence.pieces, pieces.eos_token_id])
    start = model.config.decoder_start_token_id
    states = model.model(
        input_ids=_pad(inputs, 0),
        attention_mask=_attention(inputs),
        decoder_input_ids=_pad([[start, *target[:-1]] for target in targets], 0),
    )[0]
    label = _pad(targets, IGNORE)
    at = label != IGNORE
    return cross_entropy(model.lm_head(states[at]), label[at])


LOSSES: Final[dict[Kind, Callable[[Any, Any, list[Sentence], random.Random], Tensor]]] = {
    "masked": masked_loss,
    "causal": causal_loss,
    "chat": causal_loss,
    "seq2seq": seq2seq_loss,
}


def _pad(rows: list[list[int]], value: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def _attention(rows: list[list[int]]) -> Tensor:
    return _pad([[1] * len(row) for row in rows], 0)
