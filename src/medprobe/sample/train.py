"""Training of the sample models: small, on the sample world's text, in a minute or two.

Masked models learn to fill in whole names ("salient spans", Guu et al. 2020, section 3.4), besides
any other words; sequence-to-sequence models the same by a slot `<extra_id_0>` (Raffel et al. 2020,
section 3.1.4); causal ones the next piece.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from medprobe.sample.settings import Recipe

POSITIONS = 256
IGNORE = -100  # a label that no loss counts
JOINED = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)  # sentences in an input; drawn for each batch


@dataclass(frozen=True)
class Sentence:
    """A sentence as pieces, and which of them are a name: (start, end) of each."""

    pieces: list[int]
    mentions: list[tuple[int, int]]


def tokenizer(kind: str, texts: list[Path], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer learnt from all the corpora, so that all sample models of a kind share it:
    lower-casing word pieces for masked models, byte-level pairs for the others."""
    files = [str(path) for path in sorted(texts)]
    if kind == "masked":
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
        pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        pieces.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocabulary, special_tokens=special, show_progress=False
        )
        pieces.train(files, trainer)
        pieces.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
        return BertTokenizerFast(tokenizer_object=pieces, model_max_length=POSITIONS)
    special = ["<pad>", "</s>", "<unk>", *(f"<extra_id_{i}>" for i in range(4))]
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pieces.train(files, trainer)
    if kind == "seq2seq":
        pieces.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=POSITIONS,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="</s>",
        unk_token="<unk>",
        extra_special_tokens=special[3:],
    )


def new_model(kind: str, recipe: Recipe, vocabulary: int) -> PreTrainedModel:
    """An untrained model of a kind, of the recipe's size."""
    size, heads = recipe.hidden, recipe.hidden // 64 or 1
    if kind == "masked":
        return BertForMaskedLM(
            BertConfig(
                vocab_size=vocabulary,
                hidden_size=size,
                num_hidden_layers=recipe.layers,
                num_attention_heads=heads,
                intermediate_size=4 * size,
                max_position_embeddings=POSITIONS,
                hidden_dropout_prob=recipe.dropout,
                attention_probs_dropout_prob=recipe.dropout,
            )
        )
    if kind == "causal":
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_embd=size,
                n_layer=recipe.layers,
                n_head=heads,
                n_positions=POSITIONS,
                resid_pdrop=recipe.dropout,
                embd_pdrop=recipe.dropout,
                attn_pdrop=recipe.dropout,
                bos_token_id=1,
                eos_token_id=1,
                pad_token_id=0,
            )
        )
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=vocabulary,
            d_model=size,
            d_kv=64,
            d_ff=4 * size,
            num_layers=recipe.layers,
            num_decoder_layers=recipe.layers,
            num_heads=heads,
            dropout_rate=recipe.dropout,
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
        )
    )


def read(corpus: Path, names: Path, pieces: PreTrainedTokenizerFast) -> list[Sentence]:
    """The sentences of a corpus, one a line, with the names found in them, longest first."""
    known = set(names.read_text(encoding="utf-8").splitlines())
    longest = max(len(name.split(" ")) for name in known)

    @lru_cache(maxsize=None)
    def ids(word: str) -> list[int]:
        return pieces.encode(word, add_special_tokens=False)

    def sentence(line: str) -> Sentence:
        words, all_pieces, mentions, at = line.split(" "), [], [], 0
        while at < len(words):
            ends = range(min(len(words), at + longest), at, -1)
            end = next((e for e in ends if " ".join(words[at:e]) in known), None)
            start = len(all_pieces)
            for word in words[at : end or at + 1]:
                all_pieces.extend(ids(word))
            if end:
                mentions.append((start, len(all_pieces)))
            at = end or at + 1
        return Sentence(all_pieces, mentions)

    return [sentence(line) for line in corpus.read_text(encoding="utf-8").splitlines()]


def batches(sentences: list[Sentence], count: int, rng: random.Random) -> Iterator[list[Sentence]]:
    """Endless batches of `count` sentences: each an input of its own, or joined with those that
    stand beside it, so that models know longer inputs too."""
    while True:
        joined = rng.choice(JOINED)
        starts = [rng.randrange(len(sentences) - joined + 1) for _ in range(count // joined)]
        yield [_join(sentences[start : start + joined]) for start in starts]


def _join(parts: list[Sentence]) -> Sentence:
    pieces: list[int] = []
    mentions: list[tuple[int, int]] = []
    for part in parts:
        mentions += [(start + len(pieces), end + len(pieces)) for start, end in part.mentions]
        pieces += part.pieces
    room = POSITIONS - 2
    return Sentence(pieces[:room], [span for span in mentions if span[1] <= room])


def hidden_spans(sentence: Sentence, rng: random.Random) -> list[tuple[int, int]]:
    """What is to be filled in: one of every two names and, beside it, now and then a piece."""
    spans = rng.sample(sentence.mentions, (len(sentence.mentions) + 1) // 2)
    named = {at for start, end in sentence.mentions for at in range(start, end)}
    other = [at for at in range(len(sentence.pieces)) if at not in named and rng.random() < 0.08]
    return sorted([*spans, *((at, at + 1) for at in other)])


def masked_loss(
    model: PreTrainedModel,
    pieces: PreTrainedTokenizerFast,
    batch: list[Sentence],
    rng: random.Random,
) -> Tensor:
    """Mean cross-entropy of the masked pieces; the head runs at those alone."""
    inputs, labels = [], []
    for sentence in batch:
        text, label = list(sentence.pieces), [IGNORE] * len(sentence.pieces)
        for start, end in hidden_spans(sentence, rng):
            label[start:end] = sentence.pieces[start:end]
            text[start:end] = [pieces.mask_token_id] * (end - start)
        inputs.append([pieces.cls_token_id, *text, pieces.sep_token_id])
        labels.append([IGNORE, *label, IGNORE])
    ids, attention, wanted = (
        _pad(inputs, 0, model),
        _attention(inputs, model),
        _pad(labels, IGNORE, model),
    )
    shift = rng.randrange(POSITIONS - ids.shape[1]) if rng.random() < 0.25 else 0
    positions = torch.arange(shift, shift + ids.shape[1], device=model.device)[None]
    states = model.bert(ids, attention_mask=attention, position_ids=positions).last_hidden_state
    at = wanted != IGNORE
    return torch.nn.functional.cross_entropy(model.cls(states[at]), wanted[at])


def causal_loss(
    model: PreTrainedModel,
    pieces: PreTrainedTokenizerFast,
    batch: list[Sentence],
    rng: random.Random,
) -> Tensor:
    """Mean cross-entropy of every next piece."""
    end = pieces.eos_token_id
    inputs = [[end, *sentence.pieces, end] for sentence in batch]
    ids, attention, labels = (
        _pad(inputs, 0, model),
        _attention(inputs, model),
        _pad(inputs, IGNORE, model),
    )
    return model(input_ids=ids, attention_mask=attention, labels=labels).loss


def seq2seq_loss(
    model: PreTrainedModel,
    pieces: PreTrainedTokenizerFast,
    batch: list[Sentence],
    rng: random.Random,
) -> Tensor:
    """Mean cross-entropy of one hidden name, after `<extra_id_0>` and before `<extra_id_1>`."""
    slot, close = pieces.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
    inputs, targets = [], []
    for sentence in batch:
        start, end = rng.choice(sentence.mentions)
        inputs.append([*sentence.pieces[:start], slot, *sentence.pieces[end:], pieces.eos_token_id])
        targets.append([slot, *sentence.pieces[start:end], close, pieces.eos_token_id])
    return model(
        input_ids=_pad(inputs, 0, model),
        attention_mask=_attention(inputs, model),
        labels=_pad(targets, IGNORE, model),
    ).loss


LOSSES: dict[str, Callable[..., Tensor]] = {
    "masked": masked_loss,
    "causal": causal_loss,
    "seq2seq": seq2seq_loss,
}


def _pad(rows: list[list[int]], value: int, model: PreTrainedModel) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows], device=model.device)


def _attention(rows: list[list[int]], model: PreTrainedModel) -> Tensor:
    return _pad([[1] * len(row) for row in rows], 0, model)


def train(
    kind: str,
    recipe: Recipe,
    model: PreTrainedModel,
    pieces: PreTrainedTokenizerFast,
    sentences: list[Sentence],
    seed: int,
    done: Callable[[int, float], Any] = lambda step, loss: None,
) -> None:
    rng = random.Random(seed)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        recipe.learning_rate,
        total_steps=recipe.steps,
        pct_start=0.06,
        cycle_momentum=False,
        anneal_strategy="linear",
    )
    model.train()
    for step, batch in zip(range(recipe.steps), batches(sentences, recipe.batch, rng)):
        loss = LOSSES[kind](model, pieces, batch, rng)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rates.step()
        done(step, loss)
    model.eval()
