"""Reads nodes of tries after prompts, those of many prompts in a batch.

The keys and values of what was read are stored and serve all that follows, as far as there is room;
what finds no room is read again. A token's keys and values in all layers are one row of a table,
and a text that was read is the list of its rows. Texts share the rows of a common prefix, and many
texts, padded on the left, make a cache from which a model reads on. A model that keeps other things
than keys and values reads every text from its beginning.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from inspect import signature
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from medprobe.engine import causal
from medprobe.engine.batching import CACHED_PER_READ, compute_in_batches, pad_rows
from medprobe.engine.heads import logits_in_parts
from medprobe.engine.load import Model
from medprobe.extensions.likelihood.best_first import Work
from medprobe.extensions.likelihood.trie import NO_TOKEN, ROOT, Tokens, TriePrompt, ranges

TABLE_BYTES: Final = 2**30
MEMORY_SHARE: Final = 0.4  # of a card's free memory, for the table
FEW_PROMPTS: Final = 64  # for these there is room, if not for all that is read of them
ROWS_A_PROMPT: Final = 350  # of the table: SmolLM2 read 341 tokens for a query of MedLAMA
NodeScores = tuple[float, np.ndarray]  # of a node's tokens but the first; of its children's first
NOTHING: Final = np.empty(0, dtype=int)  # rows of a text of which nothing is stored
Shape = tuple[int, int, torch.device]  # of keys or values of a layer: heads, their size


class _NodeRow(NamedTuple):
    """A node to read: what a batch reads, and which log-probabilities it needs."""

    prompt: int
    node: int
    prefix: np.ndarray  # rows of the table with what was read before
    inputs: Tokens
    overlap: int  # of what is fed: tokens fed again only as context
    targets: Tokens  # each follows the token fed at its place, those skipped left out
    first_tokens: np.ndarray  # each follows the last token fed


class Reader:
    """Reads nodes after prompts, and stores keys and values until a prompt is finished."""

    def __init__(self, model: Model, prompts: Sequence[TriePrompt]) -> None:
        self.model = model
        self.prompts = prompts
        self.states = StateTable(least=model.max_length)
        self.texts: list[dict[int, np.ndarray]] = [{} for _ in prompts]  # node → rows of the table
        self.owned_rows: list[list[int]] = [[] for _ in prompts]  # to release in the end
        self.encoded: dict[int, torch.Tensor] = {}  # [tokens, width]: of the source, for a decoder
        self.shapes: list[Shape] = []
        self.tokens_read = 0
        parameters = signature(model.model.forward).parameters
        # prefixes up to this length do not share batches with longer ones
        self.apart = 1 if "position_ids" in parameters else model.max_length

    def has_room(self, prompts: int) -> bool:
        """Return whether there is room for so many prompts at a time."""
        return prompts <= max(FEW_PROMPTS, self.states.capacity // ROWS_A_PROMPT)

    def release(self, prompt: int) -> None:
        """Remove all that is stored for a prompt."""
        self.states.free += self.owned_rows[prompt]
        self.texts[prompt], self.owned_rows[prompt] = {}, []
        self.encoded.pop(prompt, None)

    def read(self, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Return what `best_first.Search.receive` needs."""
        rows = [self._row(*item) for item in zip(*(part.tolist() for part in work), strict=True)]
        alike = [  # little padding: inputs of 4 to 6 tokens go together, of 7 and 8, of 9 to 12
            (min(len(row.prefix), self.apart), int(2 * len(row.inputs) ** 0.5)) for row in rows
        ]
        results: list[Any] = [None] * len(rows)
        costs = [len(row.inputs) + len(row.prefix) // CACHED_PER_READ for row in rows]
        # the cache of a batch, before and after it grows, takes as much memory as the table
        budget = min(self.model.token_budget, self.states.capacity // 8 or self.model.token_budget)
        order = sorted(range(len(rows)), key=alike.__getitem__)
        for places in ([*group] for _, group in groupby(order, alike.__getitem__)):
            mine = [rows[i] for i in places]
            with torch.inference_mode():
                reads = compute_in_batches(
                    [costs[i] for i in places], budget, partial(self._read_batch, mine)
                )
            for i, read in zip(places, reads, strict=True):
                results[i] = read
        spent, firsts = zip(*results, strict=True)
        return np.array(spent), np.concatenate(firsts)

    def _row(self, prompt: int, top: int, node: int) -> _NodeRow:
        """Return how to read a node: after the nearest node that is stored."""
        trie_prompt, texts = self.prompts[prompt], self.texts[prompt]
        trie, tokens = trie_prompt.trie, trie_prompt.tokens(top, node)
        first_tokens = trie_prompt.first_tokens(node)
        if node == ROOT:
            forced = trie_prompt.slot.forced
            return _NodeRow(
                prompt, node, NOTHING, tokens, forced - 1, tokens[forced:], first_tokens
            )
        inputs, parent = tokens, int(trie.parents[top])
        while parent not in texts and parent != ROOT:
            inputs = (int(trie.tokens[parent]), *inputs)
            parent = int(trie.parents[parent])
        if parent not in texts:
            inputs = trie_prompt.slot.before + inputs
        prefix, overlap = texts.get(parent, NOTHING), len(inputs) - len(tokens)
        fed = inputs[:-1] if trie.is_leaf[node] else inputs
        return _NodeRow(prompt, node, prefix, fed, overlap, tokens[1:], first_tokens)

    def _read_batch(self, all_rows: list[_NodeRow], batch: list[int]) -> list[NodeScores]:
        rows, model = [all_rows[i] for i in batch], self.model
        ids, _ = pad_rows(
            [row.inputs for row in rows], model.tokenizer.pad_token_id or 0, model.device
        )
        length = ids.shape[1]
        overlaps = np.array([row.overlap for row in rows])
        counts = np.array([len(row.inputs) for row in rows])
        self.tokens_read += int(counts.sum())
        counts -= overlaps
        positions = ranges(np.arange(len(rows)) * length + overlaps, counts).tolist()
        inputs = {
            **causal.decoder_inputs(model, ids),
            **self._model_inputs(rows, length),
            "use_cache": model.keeps_states,
        }
        caches: list[Any] = []

        def forward() -> Any:
            out = model.model(**inputs)
            caches.append(getattr(out, "past_key_values", None))
            return out

        parts = logits_in_parts(causal.body(model), positions, model.config.vocab_size, forward)
        reads = _reads(rows, counts, parts)
        if model.keeps_states:
            self._store(rows, caches[0], length)
        return reads

    def _model_inputs(self, rows: list[_NodeRow], length: int) -> dict[str, Any]:
        """Return the prefixes of rows, which `length` tokens follow, as arguments of the model."""
        if not self.model.keeps_states:
            return {}
        device = self.model.device
        start = not len(rows[0].prefix)
        cache = DynamicCache() if start else self.states.cache([row.prefix for row in rows])
        if not self.prompts[0].source:
            lengths = torch.tensor([[len(row.prefix)] for row in rows], device=device)
            if start or (lengths == lengths[0]).all():
                return {"past_key_values": cache}
            longest = int(lengths.max())
            padding = torch.arange(longest + length, device=device) < longest - lengths
            positions = lengths + torch.arange(length, device=device)
            return {
                "past_key_values": cache,
                "attention_mask": (~padding).long(),
                "position_ids": positions,
            }
        if start:
            sources = [self.prompts[row.prompt].source for row in rows]
            ids, mask = pad_rows(sources, self.model.tokenizer.pad_token_id or 0, device)
            hidden = self.model.model.get_encoder()(input_ids=ids, attention_mask=mask)[0]
            cross_attention = DynamicCache()
        else:
            prompts = sorted({row.prompt for row in rows})
            indices = torch.tensor([prompts.index(row.prompt) for row in rows], device=device)
            encoded = [self.encoded[i] for i in prompts]
            states = torch.nn.utils.rnn.pad_sequence(encoded, batch_first=True)[indices]
            lengths = torch.tensor([len(source) for source in encoded], device=device)[indices]
            mask = (torch.arange(states.shape[1], device=device) < lengths[:, None]).long()
            hidden = states.new_zeros(*states.shape[:2], self.model.config.hidden_size)
            cross_attention = _unflat(states, self.shapes)
        return {
            "past_key_values": EncoderDecoderCache(cache, cross_attention),
            "encoder_outputs": BaseModelOutput(last_hidden_state=hidden),
            "attention_mask": mask,
        }

    def _store(self, rows: list[_NodeRow], cache: Any, length: int) -> None:
        """Store the keys and values of nodes that have children, as far as there is room."""
        if isinstance(cache, EncoderDecoderCache):
            if not len(rows[0].prefix):
                width = max(len(self.prompts[row.prompt].source) for row in rows)
                states, self.shapes = _flat(cache.cross_attention_cache, width)
                for row, row_states in zip(rows, states, strict=True):
                    source = len(self.prompts[row.prompt].source)
                    self.encoded[row.prompt] = row_states[:source].clone()
            cache = cache.self_attention_cache
        indices = np.array([i for i, row in enumerate(rows) if len(row.first_tokens)], dtype=int)
        if not len(indices):
            return
        states, shapes = _flat(cache, length)
        counts = np.array([len(rows[i].inputs) for i in indices])
        counts = counts[np.cumsum(counts) <= self.states.room(states, shapes)]
        indices = indices[: len(counts)]
        kept = ranges(indices * length, counts)
        stored = self.states.store(states.flatten(0, 1)[torch.from_numpy(kept).to(states.device)])
        for i, own in zip(indices, np.split(stored, np.cumsum(counts))[:-1], strict=True):
            row = rows[i]
            self.texts[row.prompt][row.node] = np.concatenate([row.prefix, own])
            self.owned_rows[row.prompt] += own.tolist()


def _reads(
    rows: Sequence[_NodeRow], counts: np.ndarray, parts: Iterable[torch.Tensor]
) -> list[NodeScores]:
    """Return the scores of each row, from the logits of `counts` positions of each, in parts."""
    starts = np.cumsum(counts) - counts
    target_counts = np.array([len(row.targets) for row in rows])
    first_counts = np.array([len(row.first_tokens) for row in rows])
    positions = np.append(
        ranges(starts, target_counts), np.repeat(starts + counts - 1, first_counts)
    )
    tokens = np.concatenate(
        [np.array([token for row in rows for token in row.targets], dtype=int)]
        + [row.first_tokens for row in rows]
    )
    places, values, start = [], [], 0
    for part in parts:
        logits = part.float()
        here = np.flatnonzero((positions >= start) & (positions < start + len(logits)))
        pairs = np.stack([positions[here] - start, np.maximum(tokens[here], 0)])
        at, token = torch.from_numpy(pairs).to(logits.device)
        values.append(logits[at, token] - logits.logsumexp(-1)[at])
        places.append(here)
        start += len(logits)
    log_probs = np.empty(len(tokens))
    log_probs[np.concatenate(places)] = torch.cat(values).double().cpu().numpy()
    log_probs[tokens == NO_TOKEN] = 0.0
    middle = target_counts.sum()
    owners = np.repeat(np.arange(len(rows)), target_counts)
    spent = np.bincount(owners, log_probs[:middle], minlength=len(rows))
    firsts = np.split(log_probs[middle:], np.cumsum(first_counts)[:-1])
    return [*zip(spent.tolist(), firsts, strict=True)]


class StateTable:
    """A table of the states of tokens, a row each, as large as memory allows.

    On a processor it has `TABLE_BYTES`, on a card MEMORY_SHARE of what is free; but `least` rows.
    """

    def __init__(self, least: int) -> None:
        self.least = least
        self.table: torch.Tensor | None = None
        self.capacity = 0  # tokens that the table holds
        self.free: list[int] = []
        self.shapes: list[Shape] = []  # of keys, of values, …

    def room(self, states: torch.Tensor, shapes: list[Shape]) -> int:
        """Return for how many more tokens, whose states are like these, there is room."""
        if self.table is None:
            width = states.shape[-1] * states.element_size()
            self.capacity = max(_table_bytes(states.device) // width, self.least)
            self.table, self.shapes = states.new_empty(self.capacity, states.shape[-1]), shapes
            self.free = list(range(self.capacity))[::-1]
        return len(self.free)

    def store(self, states: torch.Tensor) -> np.ndarray:
        """Store the states of tokens for which there is room, and return their rows."""
        assert self.table is not None
        first = len(self.free) - len(states)
        rows = np.array(self.free[first:][::-1], dtype=int)
        del self.free[first:]
        self.table[torch.from_numpy(rows).to(states.device)] = states
        return rows

    def cache(self, texts: Sequence[np.ndarray]) -> DynamicCache:
        """Return the cache of texts given by their rows; what is on the left of one is padding."""
        assert self.table is not None
        lengths = np.array([*map(len, texts)])
        rows = np.zeros((len(texts), lengths.max()), dtype=int)  # the first row was stored first
        rows[np.arange(lengths.max()) >= lengths.max() - lengths[:, None]] = np.concatenate(texts)
        return _unflat(self.table[torch.from_numpy(rows).to(self.table.device)], self.shapes)


def _table_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return TABLE_BYTES
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(MEMORY_SHARE * (torch.cuda.mem_get_info(device)[0] + unused))


def _flat(cache: Any, tokens: int) -> tuple[torch.Tensor, list[Shape]]:
    """Return the keys and values of the last tokens of a cache, [texts, tokens, width].

    Also returned are the shapes of the parts of the width. The tensor is on the device of the
    cache's first layer.
    """
    parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    last = [part[:, :, part.shape[2] - tokens :].transpose(1, 2) for part in parts]
    shapes = [(part.shape[2], part.shape[3], part.device) for part in last]
    device = last[0].device
    return torch.cat([part.flatten(2).to(device) for part in last], dim=-1), shapes


def _unflat(states: torch.Tensor, shapes: Sequence[Shape]) -> DynamicCache:
    """Return the cache of states [texts, tokens, width]."""
    widths = [heads * size for heads, size, _ in shapes]
    parts = [
        part.unflatten(-1, shape).transpose(1, 2).to(device)
        for part, (*shape, device) in zip(states.split(widths, dim=-1), shapes, strict=True)
    ]
    return DynamicCache(list(zip(parts[::2], parts[1::2], strict=True)))
