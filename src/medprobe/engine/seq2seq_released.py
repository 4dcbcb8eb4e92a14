"""Generation as MedLAMA's released script has it (Meng et al., ACL 2022; `generative_probe`).

The prompt's final full stop is dropped, up to 80 tokens more than were read are written, by the
checkpoint's own generation settings, and what is written is read as it stands: of T5's text only
the opening sentinel and full stops are taken off, so that the closing one stays in it; of BART's
the prompt, where it is a regular expression that matches.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from medprobe.core.tables import SLOT
from medprobe.engine.batching import compute_in_batches
from medprobe.engine.load import Model
from medprobe.engine.seq2seq import OPENING, writes_sentinels
from medprobe.engine.slots import split_prompt, too_long_error

MORE: Final = 80  # tokens that may be written beyond as many as were read
BREAKS: Final = ("<s>", "</s>", "<pad>", ".", OPENING, "<mask>")  # are read apart from their like
DROPPED: Final = BREAKS[:-1]

Written = tuple[str, float]  # a text, and the mean log-probability of its tokens


def texts(
    model: Model, prompts: Iterable[str], where: Sequence[object], beams: int
) -> list[list[Written]]:
    """The `beams` texts that each prompt gives, best first, equal ones too.

    `where` names each prompt in errors. Raises BadInput for a prompt without exactly one slot or
    longer than the model's window.
    """
    prompts = list(prompts)
    sources = []
    for prompt, name in zip(prompts, where, strict=True):
        split_prompt(prompt, name)
        sources.append(source_ids(model, prompt))
        if len(sources[-1]) > model.max_length:
            raise too_long_error(name, "its mark", len(sources[-1]), model.max_length)

    def compute(batch: list[int]) -> list[list[Written]]:
        texts = []
        for i in batch:  # alone: how much may be written depends on how much is read
            ids, scores = _generated(model, sources[i], beams)
            front = prompts_front(prompts[i])
            read = [text_of(model, row, front) for row in ids]
            texts.append(list(zip(read, scores, strict=True)))
        return texts

    with torch.inference_mode():
        return compute_in_batches([len(ids) for ids in sources], model.token_budget, compute)


def source_ids(model: Model, prompt: str) -> list[int]:
    """What the encoder reads."""
    mark = OPENING if writes_sentinels(model) else model.tokenizer.mask_token
    text = " ".join(_bare(prompt).replace(SLOT, f" {mark} ").split())
    ids: list[int] = model.tokenizer(text, verbose=False)["input_ids"]
    return ids


def prompts_front(prompt: str) -> str:
    """The prompt without its slot: what is taken off BART's texts."""
    return _bare(prompt).replace(SLOT, "").strip()


def text_of(model: Model, ids: Sequence[int], front: str) -> str:
    """What a written sequence reads as."""
    tokens = model.tokenizer.convert_ids_to_tokens(list(ids))
    parts: list[str] = []
    run: list[str] = []
    for token in [*tokens, None]:
        if token is None or token in BREAKS:
            parts += [_joined(model, run), token or ""]
            run = []
        else:
            run.append(token)
    text = " ".join(word for word in " ".join(parts).split() if word not in DROPPED)
    if writes_sentinels(model):
        return text
    try:
        return " ".join(re.sub(front, "", text).split())
    except re.error:
        return text


def _generated(model: Model, source: list[int], beams: int) -> tuple[list[list[int]], list[float]]:
    ids = torch.tensor([source], device=model.device)
    config = model.generation_config(
        own_settings=True,
        num_beams=beams,
        num_return_sequences=beams,
        max_length=len(source) + MORE,
        do_sample=False,
    )
    out: Any = model.model.generate(
        ids, attention_mask=torch.ones_like(ids), generation_config=config
    )
    return out.sequences.tolist(), out.sequences_scores.tolist()


def _bare(prompt: str) -> str:
    return " ".join(prompt.strip(".").split())


def _joined(model: Model, tokens: list[str]) -> str:
    """The text of some tokens; behind each of T5's sentinels a blank, as slow tokenizers had it."""
    if writes_sentinels(model):
        spaced = [f"{token} " if token.startswith("<extra_id_") else token for token in tokens]
        return "".join(spaced).replace("▁", " ")
    return str(model.tokenizer.convert_tokens_to_string(tokens)) if tokens else ""
