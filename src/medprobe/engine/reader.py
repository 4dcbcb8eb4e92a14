"""Reads nodes of tries behind prompts, those of many prompts in a batch.

The keys and values of what was read are kept and serve all that comes behind, as far as there is
room; what found none is read again. A token's keys and values in all layers are one row of a table,
and a text that was read is the list of its rows: texts share the rows of what they begin with, and
any texts of one length make a cache that a model reads on from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from medprobe.engine import causal
from medprobe.engine.batching import in_batches, padded
from medprobe.engine.best_first import Read
from medprobe.engine.heads import bounded, narrowed
from medprobe.engine.load import Model
from medprobe.engine.trie import ROOT, Prompt, Tokens

KEPT_BYTES: Final = 2**30
Shape = tuple[int, int, torch.device]  # of keys or values of a layer: heads, their size
BEHIND: Final = 4  # so many kept tokens cost a batch as much as one that is read


@dataclass(frozen=True)
class _Row:
    """A node to read: what a batch reads, and which log-probabilities are wanted of it."""

    prompt: int
    node: int
    behind: np.ndarray  # rows of `kept` of what was read before
    fed: Tokens
    skipped: int  # of what is fed: tokens read once more, that want no scores
    scored: Tokens  # each follows the token fed at its place, those skipped left out
    firsts: list[int]  # each follows the last token fed


class Reader:
    """Reads nodes behind prompts, and keeps keys and values until a prompt is done."""

    def __init__(self, model: Model, prompts: Sequence[Prompt]) -> None:
        self.model = model
        self.prompts = prompts
        self.kept = Kept(least=model.max_length)
        self.texts: list[dict[int, np.ndarray]] = [{} for _ in prompts]  # node → rows of `kept`
        self.own: list[list[np.ndarray]] = [[] for _ in prompts]  # rows to release in the end
        self.encoded: dict[int, torch.Tensor] = {}  # [tokens, width]: of the source, for a decoder
        self.shapes: list[Shape] = []
        self.nodes_read, self.tokens_read = 0, 0

    def room(self, prompts: Sequence[int]) -> bool:
        """Is there room for these prompts, too?"""
        return self.kept.room(sum(len(self.prompts[i].slot.before) for i in prompts))

    def forget(self, prompt: int) -> None:
        """Keep nothing of a prompt any longer."""
        for rows in self.own[prompt]:
            self.kept.release(rows)
        self.texts[prompt], self.own[prompt] = {}, []
        self.encoded.pop(prompt, None)

    def read(self, work: Sequence[tuple[int, int, int]]) -> list[Read]:
        """For each prompt, top and node what `best_first.search` asks for."""
        rows = [self._row(*item) for item in work]
        results: list[Any] = [None] * len(rows)
        places = sorted(range(len(rows)), key=lambda i: len(rows[i].behind))
        with torch.inference_mode():
            for _, group in groupby(places, key=lambda i: len(rows[i].behind)):
                for i, read in self._alike([(i, rows[i]) for i in group]):
                    results[i] = read
        return results

    def _row(self, prompt: int, top: int, node: int) -> _Row:
        """How to read a node: behind the nearest one that is kept."""
        asked, texts = self.prompts[prompt], self.texts[prompt]
        tokens = asked.tokens(top, node)
        fed, skipped, parent = tokens, 0, asked.trie.parents[top]
        behind = np.empty(0, dtype=int)
        if node != ROOT:
            while parent not in texts:
                fed = asked.trie.edges[parent] + fed
                parent = asked.trie.parents[parent]
            behind, skipped = texts[parent], len(fed) - len(tokens)
        if node != ROOT and asked.trie.leaf[node]:
            return _Row(prompt, node, behind, fed[:-1], skipped, tokens[1:], [])
        return _Row(prompt, node, behind, fed, skipped, tokens[1:], asked.firsts(node))

    def _alike(self, items: list[tuple[int, _Row]]) -> Iterator[tuple[int, Read]]:
        """Read rows that stand behind equally many tokens."""
        rows = [row for _, row in items]
        counts = [len(row.fed) for row in rows]
        costs = [count + len(row.behind) // BEHIND for count, row in zip(counts, rows, strict=True)]

        def compute(batch: list[int]) -> list[Read]:
            reads = []
            for part in bounded(batch, counts, self.model.config.vocab_size):
                reads += self._batch([rows[i] for i in part])
            return reads

        reads = in_batches(costs, self.model.token_budget, compute)
        return zip((i for i, _ in items), reads, strict=True)

    def _batch(self, rows: list[_Row]) -> list[Read]:
        model = self.model
        ids, _ = padded([row.fed for row in rows], model.tokenizer.pad_token_id or 0, model.device)
        length = ids.shape[1]
        self.nodes_read += len(rows)
        self.tokens_read += sum(len(row.fed) for row in rows)
        positions = [
            i * length + j for i, row in enumerate(rows) for j in range(row.skipped, len(row.fed))
        ]
        with narrowed(causal.body(model), positions):
            out = model.model(**causal.written(model, ids), **self._behind(rows), use_cache=True)
        self._keep(rows, out.past_key_values, length)
        return _reads(rows, out.logits[0].float())

    def _behind(self, rows: list[_Row]) -> dict[str, Any]:
        """What the rows are read behind, as the model takes it."""
        start = not len(rows[0].behind)
        cache = DynamicCache() if start else self.kept.cache([row.behind for row in rows])
        if not self.prompts[0].source:
            return {"past_key_values": cache}
        device = self.model.device
        if start:
            sources = [self.prompts[row.prompt].source for row in rows]
            ids, mask = padded(sources, self.model.tokenizer.pad_token_id or 0, device)
            hidden = self.model.model.get_encoder()(input_ids=ids, attention_mask=mask)[0]
            across = DynamicCache()
        else:
            several = sorted({row.prompt for row in rows})
            place = torch.tensor([several.index(row.prompt) for row in rows], device=device)
            encoded = [self.encoded[i] for i in several]
            states = torch.nn.utils.rnn.pad_sequence(encoded, batch_first=True)[place]
            lengths = torch.tensor([len(of_one) for of_one in encoded], device=device)[place]
            mask = (torch.arange(states.shape[1], device=device) < lengths[:, None]).long()
            hidden = states.new_zeros(*states.shape[:2], self.model.config.hidden_size)
            across = _unflat(states, self.shapes)
        return {
            "past_key_values": EncoderDecoderCache(cache, across),
            "encoder_outputs": BaseModelOutput(last_hidden_state=hidden),
            "attention_mask": mask,
        }

    def _keep(self, rows: list[_Row], cache: Any, length: int) -> None:
        """Keep the keys and values of nodes that have children, as far as there is room."""
        if isinstance(cache, EncoderDecoderCache):
            if not len(rows[0].behind):
                width = max(len(self.prompts[row.prompt].source) for row in rows)
                states, self.shapes = _flat(cache.cross_attention_cache, width)
                for row, of_row in zip(rows, states, strict=True):
                    source = len(self.prompts[row.prompt].source)
                    self.encoded[row.prompt] = of_row[:source].clone()
            cache = cache.self_attention_cache
        inner = [i for i, row in enumerate(rows) if row.firsts]
        if not inner:
            return
        states, shapes = _flat(cache, length)
        for i in inner:
            row = rows[i]
            own = self.kept.store(states[i, : len(row.fed)], shapes)
            if own is not None:
                self.texts[row.prompt][row.node] = np.concatenate([row.behind, own])
                self.own[row.prompt].append(own)


def _reads(rows: Sequence[_Row], logits: torch.Tensor) -> list[Read]:
    """What is asked of each row, from the logits of the tokens fed that were not skipped,
    [positions, vocabulary]."""
    at: list[int] = []
    start = 0
    for row in rows:
        count = len(row.fed) - row.skipped
        at += [*range(start, start + len(row.scored)), *[start + count - 1] * len(row.firsts)]
        start += count
    wanted = torch.tensor([max(t, 0) for row in rows for t in (*row.scored, *row.firsts)])
    places = torch.tensor(at, device=logits.device)
    chosen = logits[places, wanted.to(logits.device)] - logits.logsumexp(-1)[places]
    values = chosen.double().cpu().numpy()
    reads, start = [], 0
    for row in rows:
        middle = start + len(row.scored)
        end = middle + len(row.firsts)
        firsts = np.where(np.array(row.firsts, dtype=int) < 0, 0.0, values[middle:end])
        reads.append((float(values[start:middle].sum()), firsts))
        start = end
    return reads


class Kept:
    """A table that holds as many tokens as fit into `KEPT_BYTES`, or `least` where that is more."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.table: torch.Tensor | None = None
        self.free: list[int] = []
        self.shapes: list[Shape] = []  # of keys, of values, …

    def store(self, states: torch.Tensor, shapes: list[Shape]) -> np.ndarray | None:
        """Keep the states of some tokens, [tokens, width], as `_flat` makes them; returns their
        rows, or None where there is no room."""
        if self.table is None:
            width = states.shape[1] * states.element_size()
            room = max(KEPT_BYTES // width, self.least)
            self.table, self.shapes = states.new_empty(room, states.shape[1]), shapes
            self.free = list(range(room))[::-1]
        if len(states) > len(self.free):
            return None
        rows = np.array([self.free.pop() for _ in states], dtype=int)
        self.table[torch.from_numpy(rows).to(states.device)] = states
        return rows

    def room(self, tokens: int) -> bool:
        """Is there room for so many, and as many again for what is read behind them?"""
        return self.table is not None and len(self.free) >= 2 * tokens

    def release(self, rows: np.ndarray) -> None:
        self.free += rows.tolist()

    def cache(self, texts: Sequence[np.ndarray]) -> DynamicCache:
        """The cache of texts that are given by their rows, all of one length."""
        assert self.table is not None
        rows = torch.from_numpy(np.stack(texts)).to(self.table.device)
        return _unflat(self.table[rows], self.shapes)


def _flat(cache: Any, tokens: int) -> tuple[torch.Tensor, list[Shape]]:
    """The keys and values of the last tokens of a cache, [texts, tokens, width], on the device of
    its first layer, and the shape of each part of the width."""
    parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    last = [part[:, :, part.shape[2] - tokens :].transpose(1, 2) for part in parts]
    shapes = [(part.shape[2], part.shape[3], part.device) for part in last]
    device = last[0].device
    return torch.cat([part.flatten(2).to(device) for part in last], dim=-1), shapes


def _unflat(states: torch.Tensor, shapes: Sequence[Shape]) -> DynamicCache:
    """The cache of states [texts, tokens, width]."""
    widths = [heads * size for heads, size, _ in shapes]
    parts = [
        part.unflatten(-1, shape).transpose(1, 2).to(device)
        for part, (*shape, device) in zip(states.split(widths, dim=-1), shapes, strict=True)
    ]
    return DynamicCache(list(zip(parts[::2], parts[1::2], strict=True)))
