"""Free answers of models that write: by beam search, or by sampling.

Prompts of one length share a batch without padding, so that the texts of a prompt do not depend on
other prompts, whatever the architecture.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from transformers import GenerationConfig

from medprobe.core.errors import BadInput
from medprobe.engine.batching import CACHED_PER_READ, compute_in_batches
from medprobe.engine.heads import split_by_logits
from medprobe.engine.load import CACHE, Model
from medprobe.engine.slots import Slot, WritingPrompt

STEPS_KEPT: Final = 4  # beam search keeps the scores of all its steps: let four fit at a time


class Text(NamedTuple):
    """A text, its score, and whether it did not end by itself."""

    text: str
    score: float
    is_cut: bool = False


@dataclass(frozen=True)
class WritingSettings:
    """How to write: the likeliest `beams` texts, or `samples` draws if that is not 0."""

    beams: int  # one takes the likeliest token each time
    samples: int
    temperature: float | None  # of draws; none: the checkpoint's where its settings hold, or 1
    cap: int  # tokens at most, the one that ends an answer counted
    own_settings: bool  # do the checkpoint's generation settings hold beside these?
    seed: int
    one_line: bool = True  # a text ends with its line
    thoughts: int = 0  # further tokens, for what a chat model thinks before its answer

    @property
    def texts(self) -> int:
        """How many texts are written for each prompt."""
        return self.samples or self.beams


def write(
    model: Model, prompts: Sequence[WritingPrompt], where: Sequence[str], settings: WritingSettings
) -> list[list[Text]]:
    """Write texts in the slots of prompts.

    A text ends before a token that ends it: the first of `slot.after`, or one with which the
    tokenizer or the checkpoint ends texts; and with its line, if `settings.one_line`.

    Returns:
        For each prompt its different texts with scores, best first; equal ones by name. The score
        of beam search is the log-probability of all tokens of the text, its end included; that of
        draws is the share of them that are this text, that of a single beam 1.
    """
    for (slot, source), name in zip(prompts, where, strict=True):
        length = max(len(source), len(slot.before) + settings.cap)
        if length > model.max_length:
            problem = f"with its answer it has {length} tokens, the model reads {model.max_length}"
            raise BadInput(name, problem, "shorten the prompt, or tell fewer facts before it")
    groups = defaultdict(list)
    for i, (slot, source) in enumerate(prompts):
        groups[i if settings.samples else (len(slot.before), len(source), slot.after)].append(i)
    written: list[list[Text]] = [[] for _ in prompts]
    for group in groups.values():
        for i, texts in zip(
            group, _write_group(model, [prompts[i] for i in group], settings), strict=True
        ):
            written[i] = texts
    return written


def _write_group(
    model: Model, prompts: Sequence[WritingPrompt], settings: WritingSettings
) -> list[list[Text]]:
    """Return the texts for prompts of one length; of draws, for one prompt."""
    config = _generation_config(model, settings, prompts[0][0])
    counts = [settings.texts * settings.cap // STEPS_KEPT + 1] * len(prompts)

    def compute(batch: list[int]) -> list[list[Text]]:
        texts = []
        for part in split_by_logits(batch, counts, model.config.vocab_size):
            texts += _write_batch(model, [prompts[i] for i in part], config, settings)
        return texts

    tokens_read = [max(len(slot.before), len(source)) for slot, source in prompts]
    lengths = [length + settings.texts * (1 + length // CACHED_PER_READ) for length in tokens_read]
    with torch.inference_mode(), torch.random.fork_rng(enabled=settings.samples > 0):
        if settings.samples:
            generator = random.Random(f"{settings.seed} {prompts[0]}")
            torch.manual_seed(generator.getrandbits(63))
        return compute_in_batches(lengths, model.token_budget, compute)


def _generation_config(model: Model, settings: WritingSettings, slot: Slot) -> GenerationConfig:
    own_ends = model.own_settings.get("eos_token_id")
    ends = {*(own_ends if isinstance(own_ends, list) else [own_ends]), *slot.after}
    given = {} if settings.temperature is None else {"temperature": settings.temperature}
    return model.generation_config(
        own_settings=settings.own_settings,
        num_beams=1 if settings.samples else settings.beams,
        num_return_sequences=settings.texts,
        do_sample=settings.samples > 0,
        max_new_tokens=settings.cap,
        length_penalty=0.0,  # beams compete by their sums: texts that end are whole answers
        decoder_start_token_id=slot.before[0],
        eos_token_id=sorted({*ends, model.tokenizer.eos_token_id} - {None}),
        **given,
    )


def _write_batch(
    model: Model,
    prompts: Sequence[WritingPrompt],
    config: GenerationConfig,
    settings: WritingSettings,
) -> list[list[Text]]:
    prefix = torch.tensor([list(slot.before) for slot, _ in prompts], device=model.device)
    if prompts[0][1]:
        inputs = torch.tensor([list(source) for _, source in prompts], device=model.device)
        extra = {"decoder_input_ids": prefix}
    else:
        inputs, extra = prefix, _read_prompts(model, prefix, config, settings)
    with model.explained_settings(own_settings=settings.own_settings):
        out = model.model.generate(
            inputs, attention_mask=torch.ones_like(inputs), generation_config=config, **extra
        )
    count = settings.texts * len(prompts)
    scored = settings.samples == 0 and settings.beams > 1
    scores = out.sequences_scores.tolist() if scored else [1 / settings.texts] * count
    scores_by_prompt: list[dict[tuple[str, bool], float]] = [{} for _ in prompts]
    for i, (ids, score) in enumerate(zip(out.sequences.tolist(), scores, strict=True)):
        best = scores_by_prompt[i // settings.texts]
        text = _text(
            model.tokenizer, ids[prefix.shape[1] :], config.eos_token_id, one_line=settings.one_line
        )
        best[text] = best.get(text, 0.0) + score if settings.samples else best.get(text, score)
    return [
        sorted(
            (Text(text, score, is_cut) for (text, is_cut), score in best.items()),
            key=lambda item: (-item.score, item.text),
        )
        for best in scores_by_prompt
    ]


def _read_prompts(
    model: Model, prompts: torch.Tensor, config: GenerationConfig, settings: WritingSettings
) -> dict[str, Any]:
    """Read all tokens of prompts but the last once for all texts, instead of once per text."""
    if prompts.shape[1] < 2 or config.use_cache is False or config.cache_implementation:
        return {}
    cache = model.model.base_model(prompts[:, :-1], use_cache=True)[CACHE]
    cache.batch_repeat_interleave(settings.texts)
    return {CACHE: cache}


def _text(
    tokenizer: Any, ids: Sequence[int], ends: Sequence[int], *, one_line: bool
) -> tuple[str, bool]:
    """Return the text of an answer, up to its end or to that of its line, and whether it is cut.

    Marks of the tokenizer, such as those around thoughts, are kept: what reads a text drops them.
    """
    count = next((index for index, token in enumerate(ids) if token in ends), len(ids))
    text = tokenizer.decode(ids[:count], skip_special_tokens=one_line).strip()
    if not one_line:
        return text, count == len(ids)
    line, is_longer, _ = text.partition("\n")
    return " ".join(line.split()), count == len(ids) and not is_longer
