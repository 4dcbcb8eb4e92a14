"""What a model writes freely behind a prompt: by beam search, or by drawing.

Prompts of one length share a batch, so that none is padded: what a prompt gets does not depend on
the others, whatever the architecture.
"""

import copy
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from medprobe.core.errors import BadInput
from medprobe.engine.batching import in_batches
from medprobe.engine.heads import bounded
from medprobe.engine.load import Model
from medprobe.engine.reader import BEHIND
from medprobe.engine.slots import Slot

REPEATED: Final = {DynamicLayer, DynamicSlidingWindowLayer}  # keys and values, and nothing else
STEPS_KEPT: Final = 4  # beam search keeps the scores of all its steps: let four fit at a time

Text = tuple[str, float]
Asked = tuple[Slot, tuple[int, ...]]  # and what an encoder reads; nothing where there is none


@dataclass(frozen=True)
class Way:
    """How to write: the likeliest `beams` texts, or `samples` draws where so many are wanted."""

    beams: int  # two at least
    samples: int
    temperature: float | None  # of draws; none: the checkpoint's where its settings hold, or 1
    cap: int  # tokens at most, the one that ends an answer counted
    own_settings: bool  # do the checkpoint's generation settings hold beside these?
    seed: int

    @property
    def texts(self) -> int:
        """How many are written behind each prompt."""
        return self.samples or self.beams


def write(model: Model, asked: Sequence[Asked], where: Sequence[str], way: Way) -> list[list[Text]]:
    """For each slot the different texts that are written there, best first, equal ones by name.

    A text ends with its line, or before a token that ends it: the first of `slot.after`, or one
    that the tokenizer or the checkpoint ends texts with. Of beam search its score is the
    log-probability of all its tokens, the end's too; of draws the share of them that are this text.
    `where` names each prompt in errors. Raises BadInput for a prompt that leaves no room to write.
    """
    for (slot, source), name in zip(asked, where, strict=True):
        length = max(len(source), len(slot.before) + way.cap)
        if length > model.max_length:
            problem = f"with its answer it has {length} tokens, the model reads {model.max_length}"
            raise BadInput(name, problem, "shorten the prompt, or tell fewer facts before it")
    alike = defaultdict(list)
    for i, (slot, source) in enumerate(asked):
        alike[i if way.samples else (len(slot.before), len(source), slot.after)].append(i)
    written: list[list[Text]] = [[] for _ in asked]
    for group in alike.values():
        for i, texts in zip(group, _alike(model, [asked[i] for i in group], way), strict=True):
            written[i] = texts
    return written


def _alike(model: Model, asked: Sequence[Asked], way: Way) -> list[list[Text]]:
    """The texts behind prompts of one length; of draws, behind one prompt."""
    config = _config(model, way, asked[0][0])
    counts = [way.texts * way.cap // STEPS_KEPT + 1] * len(asked)

    def compute(batch: list[int]) -> list[list[Text]]:
        texts = []
        for part in bounded(batch, counts, model.config.vocab_size):
            texts += _written(model, [asked[i] for i in part], config, way)
        return texts

    read = [max(len(slot.before), len(source)) for slot, source in asked]
    lengths = [length + way.texts * (1 + length // BEHIND) for length in read]
    with torch.inference_mode(), torch.random.fork_rng(enabled=way.samples > 0):
        if way.samples:
            drawn = random.Random(f"{way.seed} {asked[0]}")
            torch.manual_seed(drawn.getrandbits(63))
        return in_batches(lengths, model.token_budget, compute)


def _config(model: Model, way: Way, slot: Slot) -> GenerationConfig:
    """This way's settings, over the checkpoint's where these hold."""
    own = model.model.generation_config
    told = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = {*told, *slot.after, model.tokenizer.eos_token_id} - {None}
    config = copy.deepcopy(own) if way.own_settings else GenerationConfig(top_k=0)
    config.update(
        num_beams=1 if way.samples else way.beams,
        num_return_sequences=way.texts,
        do_sample=way.samples > 0,
        max_new_tokens=way.cap,
        length_penalty=0.0,  # beams compete by their sums: texts that end are whole answers
        eos_token_id=sorted(ends),
        pad_token_id=model.tokenizer.pad_token_id,
        return_dict_in_generate=True,
        output_scores=True,
    )
    if way.temperature is not None:
        config.update(temperature=way.temperature)
    return config


def _written(
    model: Model, asked: Sequence[Asked], config: GenerationConfig, way: Way
) -> list[list[Text]]:
    begun = torch.tensor([list(slot.before) for slot, _ in asked], device=model.device)
    if asked[0][1]:
        read = torch.tensor([list(source) for _, source in asked], device=model.device)
        more = {"decoder_input_ids": begun}
    else:
        read, more = begun, _read(model, begun, config, way)
    out = model.model.generate(
        read, attention_mask=torch.ones_like(read), generation_config=config, **more
    )
    count = way.texts * len(asked)
    scores = [1 / way.texts] * count if way.samples else out.sequences_scores.tolist()
    made: list[dict[str, float]] = [{} for _ in asked]
    for i, (ids, score) in enumerate(zip(out.sequences.tolist(), scores, strict=True)):
        best = made[i // way.texts]
        text = _text(model.tokenizer, ids[begun.shape[1] :], config.eos_token_id)
        best[text] = best.get(text, 0.0) + score if way.samples else best.get(text, score)
    return [sorted(best.items(), key=lambda item: (-item[1], item[0])) for best in made]


def _read(
    model: Model, prompts: torch.Tensor, config: GenerationConfig, way: Way
) -> dict[str, Any]:
    """The keys and values of all tokens of prompts but the last, [prompts, tokens], for each text
    that is to be written there: `generate` would read a prompt once for each. Nothing for models
    that keep something else, which reads prompts again."""
    if prompts.shape[1] < 2 or config.use_cache is False or config.cache_implementation:
        return {}
    out = model.model.base_model(prompts[:, :-1], use_cache=True)
    kept = out.get("past_key_values")
    if type(kept) is not DynamicCache or not REPEATED.issuperset(map(type, kept.layers)):
        return {}
    kept.batch_repeat_interleave(way.texts)
    return {"past_key_values": kept}


def _text(tokenizer: Any, ids: Sequence[int], ends: Sequence[int]) -> str:
    """An answer's text, up to its end or that of its first line."""
    count = next((place for place, token in enumerate(ids) if token in ends), len(ids))
    text = tokenizer.decode(ids[:count], skip_special_tokens=True).strip()
    return " ".join(text.partition("\n")[0].split())
