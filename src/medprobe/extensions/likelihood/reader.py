"""Reads nodes of tries after prompts, those of many prompts in a batch.

The keys and values of what was read are stored and serve all that follows, as far as there is room;
what finds no room is read again. A token's keys and values in all layers are one row of a table,
and a text that was read is the list of its rows. Texts share the rows of a common prefix, and many
texts, padded on the left, make a cache from which a model reads on. A model that keeps other things
than keys and values reads every text from its beginning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from typing import Any, Final

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from medprobe.engine import causal
from medprobe.engine.batching import CACHED_PER_READ, compute_in_batches, pad_rows
from medprobe.engine.heads import narrow_head, split_by_logits
from medprobe.engine.load import Model
from medprobe.extensions.likelihood.best_first import NodeScores
from medprobe.extensions.likelihood.trie import ROOT, Tokens, TriePrompt

TABLE_BYTES: Final = 2**30
NOTHING: Final = np.empty(0, dtype=int)  # rows of a text of which nothing is stored
Shape = tuple[int, int, torch.device]  # of keys or values of a layer: heads, their size


@dataclass(frozen=True)
class _NodeRow:
    """A node to read: what a batch reads, and which log-probabilities it needs."""

    prompt: int
    node: int
    prefix: np.ndarray  # rows of `kept` of what was read before
    inputs: Tokens
    overlap: int  # of what is fed: tokens fed again only as context
    targets: Tokens  # each follows the token fed at its place, those skipped left out
    first_tokens: list[int]  # each follows the last token fed


class Reader:
    """Reads nodes after prompts, and stores keys and values until a prompt is finished."""

    def __init__(self, model: Model, prompts: Sequence[TriePrompt]) -> None:
        self.model = model
        self.prompts = prompts
        self.states = StateTable(least=model.max_length)
        self.texts: list[dict[int, np.ndarray]] = [{} for _ in prompts]  # node → rows of `kept`
        self.owned_rows: list[list[np.ndarray]] = [
            [] for _ in prompts
        ]  # rows to release in the end
        self.encoded: dict[int, torch.Tensor] = {}  # [tokens, width]: of the source, for a decoder
        self.shapes: list[Shape] = []
        self.nodes_read, self.tokens_by_prompt = 0, [0] * len(prompts)
        parameters = signature(model.model.forward).parameters
        self.pads_prefixes = "position_ids" in parameters  # else those of one length share batches

    @property
    def tokens_read(self) -> int:
        """The tokens that were read for all prompts."""
        return sum(self.tokens_by_prompt)

    def has_room(self, prompts: Sequence[int]) -> bool:
        """Return whether there is room for these prompts, too."""
        if not self.model.keeps_states:
            return True
        return self.states.has_room(sum(len(self.prompts[i].slot.before) for i in prompts))

    def release(self, prompt: int) -> None:
        """Remove all that is stored for a prompt."""
        for rows in self.owned_rows[prompt]:
            self.states.release(rows)
        self.texts[prompt], self.owned_rows[prompt] = {}, []
        self.encoded.pop(prompt, None)

    def read(self, work: Sequence[tuple[int, int, int]]) -> list[NodeScores]:
        """Return what `best_first.search` needs for each prompt, top and node."""
        rows = [self._row(*item) for item in work]
        results: list[Any] = [None] * len(rows)

        def shared(i: int) -> int:
            length = len(rows[i].prefix)
            return min(length, 1) if self.pads_prefixes else length

        with torch.inference_mode():
            for _, group in groupby(sorted(range(len(rows)), key=shared), key=shared):
                for i, read in self._read_group([(i, rows[i]) for i in group]):
                    results[i] = read
        return results

    def _row(self, prompt: int, top: int, node: int) -> _NodeRow:
        """Return how to read a node: after the nearest node that is stored."""
        trie_prompt, texts = self.prompts[prompt], self.texts[prompt]
        tokens = trie_prompt.tokens(top, node)
        if node == ROOT:
            forced, first_tokens = trie_prompt.slot.forced, trie_prompt.first_tokens(node)
            return _NodeRow(
                prompt, node, NOTHING, tokens, forced - 1, tokens[forced:], first_tokens
            )
        inputs, parent = tokens, trie_prompt.trie.parents[top]
        while parent not in texts and parent != ROOT:
            inputs = trie_prompt.trie.edges[parent] + inputs
            parent = trie_prompt.trie.parents[parent]
        if parent not in texts:
            inputs = trie_prompt.slot.before + inputs
        prefix, overlap = texts.get(parent, NOTHING), len(inputs) - len(tokens)
        if trie_prompt.trie.is_leaf[node]:
            return _NodeRow(prompt, node, prefix, inputs[:-1], overlap, tokens[1:], [])
        return _NodeRow(
            prompt, node, prefix, inputs, overlap, tokens[1:], trie_prompt.first_tokens(node)
        )

    def _read_group(self, items: list[tuple[int, _NodeRow]]) -> Iterator[tuple[int, NodeScores]]:
        """Read rows that can share batches."""
        rows = [row for _, row in items]
        counts = [len(row.inputs) for row in rows]
        costs = [
            count + len(row.prefix) // CACHED_PER_READ
            for count, row in zip(counts, rows, strict=True)
        ]

        def compute(batch: list[int]) -> list[NodeScores]:
            reads = []
            for part in split_by_logits(batch, counts, self.model.config.vocab_size):
                reads += self._read_batch([rows[i] for i in part])
            return reads

        reads = compute_in_batches(costs, self.model.token_budget, compute)
        return zip((i for i, _ in items), reads, strict=True)

    def _read_batch(self, rows: list[_NodeRow]) -> list[NodeScores]:
        model = self.model
        ids, _ = pad_rows(
            [row.inputs for row in rows], model.tokenizer.pad_token_id or 0, model.device
        )
        length = ids.shape[1]
        self.nodes_read += len(rows)
        for row in rows:
            self.tokens_by_prompt[row.prompt] += len(row.inputs)
        positions = [
            i * length + j
            for i, row in enumerate(rows)
            for j in range(row.overlap, len(row.inputs))
        ]
        with narrow_head(causal.body(model), positions):
            out = model.model(
                **causal.decoder_inputs(model, ids),
                **self._model_inputs(rows, length),
                use_cache=model.keeps_states,
            )
        if model.keeps_states:
            self._store(rows, out.past_key_values, length)
        return _reads(rows, out.logits[0].float())

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
        indices = [i for i, row in enumerate(rows) if row.first_tokens]
        if not indices:
            return
        states, shapes = _flat(cache, length)
        for i in indices:
            row = rows[i]
            rows_stored = self.states.store(states[i, : len(row.inputs)], shapes)
            if rows_stored is not None:
                self.texts[row.prompt][row.node] = np.concatenate([row.prefix, rows_stored])
                self.owned_rows[row.prompt].append(rows_stored)


def _reads(rows: Sequence[_NodeRow], logits: torch.Tensor) -> list[NodeScores]:
    """Return the scores of each row, from the logits of its new tokens, [positions, vocabulary]."""
    positions: list[int] = []
    start = 0
    for row in rows:
        count = len(row.inputs) - row.overlap
        positions += [
            *range(start, start + len(row.targets)),
            *[start + count - 1] * len(row.first_tokens),
        ]
        start += count
    targets = torch.tensor([max(t, 0) for row in rows for t in (*row.targets, *row.first_tokens)])
    indices = torch.tensor(positions, device=logits.device)
    log_probs = logits[indices, targets.to(logits.device)] - logits.logsumexp(-1)[indices]
    values = log_probs.double().cpu().numpy()
    reads, start = [], 0
    for row in rows:
        middle = start + len(row.targets)
        end = middle + len(row.first_tokens)
        firsts = np.where(np.array(row.first_tokens, dtype=int) < 0, 0.0, values[middle:end])
        reads.append((float(values[start:middle].sum()), firsts))
        start = end
    return reads


class StateTable:
    """A table for as many tokens as fit into `TABLE_BYTES`, or for `least` where that is more."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.table: torch.Tensor | None = None
        self.free: list[int] = []
        self.shapes: list[Shape] = []  # of keys, of values, …

    def store(self, states: torch.Tensor, shapes: list[Shape]) -> np.ndarray | None:
        """Store the states of some tokens.

        Args:
            states: [tokens, width], as `_flat` makes them.
            shapes: The shapes of the parts of the width.

        Returns:
            Their rows in the table, or None where there is no room.
        """
        if self.table is None:
            width = states.shape[1] * states.element_size()
            capacity = max(TABLE_BYTES // width, self.least)
            self.table, self.shapes = states.new_empty(capacity, states.shape[1]), shapes
            self.free = list(range(capacity))[::-1]
        if len(states) > len(self.free):
            return None
        rows = np.array([self.free.pop() for _ in states], dtype=int)
        self.table[torch.from_numpy(rows).to(states.device)] = states
        return rows

    def has_room(self, tokens: int) -> bool:
        """Return whether there is room for so many tokens, and as many that follow them."""
        return self.table is not None and len(self.free) >= 2 * tokens

    def release(self, rows: np.ndarray) -> None:
        """Free rows of the table."""
        self.free += rows.tolist()

    def cache(self, texts: Sequence[np.ndarray]) -> DynamicCache:
        """Return the cache of texts given by their rows; what is on the left of one is padding."""
        assert self.table is not None
        longest = max(map(len, texts))
        rows = np.stack([np.pad(text, (longest - len(text), 0), mode="edge") for text in texts])
        return _unflat(self.table[torch.from_numpy(rows).to(self.table.device)], self.shapes)


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
