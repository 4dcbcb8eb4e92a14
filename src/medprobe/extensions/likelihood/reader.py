"""Reads nodes of tries after prompts, those of many prompts in a batch.

The keys and values of what was read are stored and serve all that follows, as far as there is room;
what finds no room is read again. A token's keys and values in all layers are one row of a table,
which knows the row before it, so that a text that was read is its last row. Texts share the rows of
a common prefix, and many, padded on the left, make a cache from which a model reads on. A model
that keeps other things than keys and values reads every text from its beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from inspect import signature
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from medprobe.engine import causal
from medprobe.engine.batching import CACHED_PER_READ, compute_in_batches, pad_rows
from medprobe.engine.heads import logits_in_parts
from medprobe.engine.load import CACHE, Model
from medprobe.extensions.likelihood.best_first import Work
from medprobe.extensions.likelihood.trie import NO_TOKEN, ROOT, Trie, TriePrompt, ranges

TABLE_BYTES: Final = 2**30
MEMORY_SHARE: Final = 0.4  # of a card's free memory, for the table
FEW_PROMPTS: Final = 64  # for these there is room, if not for all that is read of them
ROWS_A_PROMPT: Final = 350  # of the table: SmolLM2 read 341 tokens for a query of MedLAMA
PASS: Final = {"cpu": 20}  # tokens that take as long as what each pass costs: reading the weights
CARD_PASS: Final = 1000  # the same on a card: starting all kernels; reckoned, not measured
Shape = tuple[int, int, torch.device]  # of keys or values of a layer: heads, their size


class _Rows(NamedTuple):
    """Nodes to read: what the network is fed, and which log-probabilities are needed.

    The tokens of a node are those of its text that no row of the table has, up to its end.
    """

    prompts: np.ndarray
    marks: np.ndarray  # the row of the table up to which the text is stored
    skipped: np.ndarray  # tokens that are fed as context alone, those before the first of `top`
    counts: np.ndarray  # tokens
    fed: np.ndarray  # of them: a leaf's last is not
    child_counts: np.ndarray
    tokens: np.ndarray  # of all nodes, one after the other
    children: np.ndarray  # their first tokens


class Reader:
    """Reads nodes after prompts, and stores keys and values until a prompt is finished."""

    def __init__(self, model: Model, prompts: Sequence[TriePrompt]) -> None:
        self.model = model
        self.prompts = prompts
        self.states = StateTable(least=model.max_length)
        self.encoded: dict[int, torch.Tensor] = {}  # [tokens, width]: of the source, for a decoder
        self.shapes: list[Shape] = []
        self.tokens_read = 0
        sizes = [(len(slot.before), len(slot.after), slot.forced) for slot, *_ in prompts]
        self.before, self.after, self.forced = np.array(sizes, dtype=int).reshape(-1, 3).T
        parameters = signature(model.model.forward).parameters
        # prefixes up to this length do not share batches with longer ones
        self.apart = 1 if "position_ids" in parameters else model.max_length

    def has_room(self, prompts: int) -> bool:
        """Return whether there is room for one more than so many prompts."""
        return prompts < max(FEW_PROMPTS, self.states.capacity // ROWS_A_PROMPT)

    def release(self, prompts: Sequence[int]) -> None:
        """Remove all that is stored for prompts."""
        self.states.release(prompts)
        for prompt in prompts:
            self.encoded.pop(prompt, None)

    def read(self, trie: Trie, work: Work) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read nodes of a trie, and return what `best_first.Search.receive` needs."""
        spent, marks = np.zeros(len(work.nodes)), work.marks.copy()
        child_counts, _ = trie.children_of(work.nodes)
        firsts, child_starts = np.zeros(child_counts.sum()), np.cumsum(child_counts) - child_counts

        def read_batch(group: np.ndarray, batch: list[int]) -> list[int]:
            places = group[batch]
            rows = self._rows(trie, Work(*(part[places] for part in work)))
            children = ranges(child_starts[places], child_counts[places])
            spent[places], firsts[children], marks[places] = self._read_batch(rows)
            return batch

        starts, _, ends = self._spans(trie, work)
        fed = ends - starts - trie.is_leaf[work.nodes]
        costs = fed + starts // CACHED_PER_READ
        # the cache of a batch, before and after it grows, takes as much memory as the table
        budget = min(self.model.token_budget, self.states.capacity // 8 or self.model.token_budget)
        with torch.inference_mode():
            for group in self._groups(fed, starts):
                compute_in_batches(costs[group].tolist(), budget, partial(read_batch, group))
        return spent, firsts, marks

    def _spans(self, trie: Trie, work: Work) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how much of each text is stored, and where its slot and what is read of it end."""
        slot_ends = self.before[work.prompts] + trie.sizes(work.nodes)
        after = self.after[work.prompts] * trie.is_leaf[work.nodes]
        return self.states.lengths[work.marks], slot_ends, slot_ends + after

    def _groups(self, counts: np.ndarray, prefixes: np.ndarray) -> Iterator[np.ndarray]:
        """Yield texts of like length, whose padding costs less than a further pass would."""
        kinds = np.minimum(prefixes, self.apart)
        order = np.lexsort((counts, kinds))
        kinds, counts = kinds[order], counts[order]
        least = PASS.get(self.model.device.type, CARD_PASS)
        start = 0
        for end in (np.flatnonzero(np.diff(kinds) | np.diff(counts)) + 1).tolist():
            padding = (end - start) * (counts[end] - counts[end - 1])
            if kinds[end] != kinds[start] or padding > least:
                yield order[start:end]
                start = end
        yield order[start:]

    def _rows(self, trie: Trie, work: Work) -> _Rows:
        """Return what is read of nodes: all of a text after what is stored of it."""
        prompts, tops, nodes, marks = work
        starts, slot_ends, ends = self._spans(trie, work)
        is_leaf, before = trie.is_leaf[nodes], self.before[prompts]
        firsts = np.where(nodes == ROOT, self.forced[prompts], before + trie.depths(tops)) - 1
        counts = ends - starts
        owners, places = np.repeat(np.arange(len(nodes)), counts), ranges(starts, counts)
        slots = [self.prompts[prompt].slot for prompt in prompts.tolist()]
        tokens = np.empty(len(places), dtype=int)
        is_before, is_after = places < before[owners], places >= slot_ends[owners]
        tokens[is_before] = [
            t for slot, i in zip(slots, starts, strict=True) for t in slot.before[i:]
        ]
        in_slot = slot_ends - np.maximum(starts, before)
        tokens[~is_before & ~is_after] = trie.last_tokens(nodes, in_slot)
        tokens[is_after] = [t for i in np.flatnonzero(is_leaf) for t in slots[i].after]
        child_counts, below = trie.children_of(nodes)
        children, parents = trie.tokens[below].astype(int), np.repeat(prompts, child_counts)
        ended = (children == NO_TOKEN) & (self.after[parents] > 0)
        children[ended] = [self.prompts[i].slot.after[0] for i in parents[ended]]
        fed = counts - is_leaf
        return _Rows(prompts, marks, firsts - starts, counts, fed, child_counts, tokens, children)

    def _read_batch(self, rows: _Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read nodes in a pass: what `read` returns of them."""
        model, length, numbers = self.model, int(rows.fed.max()), np.arange(len(rows.fed))
        starts = np.cumsum(rows.counts) - rows.counts
        ids = np.full((len(rows.fed), length), model.tokenizer.pad_token_id or 0)
        ids[np.arange(length) < rows.fed[:, None]] = rows.tokens[ranges(starts, rows.fed)]
        inputs = {
            **causal.decoder_inputs(model, torch.from_numpy(ids).to(model.device)),
            **self._model_inputs(rows, length),
            "use_cache": model.keeps_states,
        }
        caches: list[Any] = []

        def forward() -> Any:
            out = model.model(**inputs)
            caches.append(out.get(CACHE))
            return out

        scored, later = rows.fed - rows.skipped, rows.counts - rows.skipped - 1
        positions = ranges(numbers * length + rows.skipped, scored).tolist()
        parts = logits_in_parts(causal.body(model), positions, model.config.vocab_size, forward)
        ends = np.cumsum(scored)
        followed = np.append(ranges(ends - scored, later), np.repeat(ends - 1, rows.child_counts))
        tokens = np.append(rows.tokens[ranges(starts + rows.skipped + 1, later)], rows.children)
        log_probs = _log_probs(parts, followed, tokens)
        own, firsts = np.split(log_probs, [later.sum()])
        spent = np.bincount(np.repeat(numbers, later), own, len(numbers))
        self.tokens_read += int(rows.fed.sum())
        marks = self._store(rows, caches[0], length) if model.keeps_states else rows.marks
        return spent, firsts, marks

    def _model_inputs(self, rows: _Rows, length: int) -> dict[str, Any]:
        """Return what is stored, which `length` tokens follow, as arguments of the model."""
        if not self.model.keeps_states:
            return {}
        device = self.model.device
        prefixes = self.states.lengths[rows.marks]
        start = not prefixes[0]
        cache = DynamicCache() if start else self.states.cache(rows.marks)
        if not self.prompts[0].source:
            if (prefixes == prefixes[0]).all():
                return {CACHE: cache}
            lengths, longest = torch.from_numpy(prefixes[:, None]).to(device), int(prefixes.max())
            padding = torch.arange(longest + length, device=device) < longest - lengths
            return {
                CACHE: cache,
                "attention_mask": (~padding).long(),
                "position_ids": lengths + torch.arange(length, device=device),
            }
        if start:
            sources = [self.prompts[prompt].source for prompt in rows.prompts]
            ids, mask = pad_rows(sources, self.model.tokenizer.pad_token_id or 0, device)
            hidden = self.model.model.get_encoder()(input_ids=ids, attention_mask=mask)[0]
            cross_attention = DynamicCache()
        else:
            prompts, places = np.unique(rows.prompts, return_inverse=True)
            indices = torch.from_numpy(places).to(device)
            encoded = [self.encoded[i] for i in prompts.tolist()]
            states = torch.nn.utils.rnn.pad_sequence(encoded, batch_first=True)[indices]
            lengths = torch.tensor([len(source) for source in encoded], device=device)[indices]
            mask = (torch.arange(states.shape[1], device=device) < lengths[:, None]).long()
            hidden = states.new_zeros(*states.shape[:2], self.model.config.hidden_size)
            cross_attention = _unflat(states, self.shapes)
        return {
            CACHE: EncoderDecoderCache(cache, cross_attention),
            "encoder_outputs": BaseModelOutput(last_hidden_state=hidden),
            "attention_mask": mask,
        }

    def _store(self, rows: _Rows, cache: Any, length: int) -> np.ndarray:
        """Store the states of nodes that have children, as far as there is room."""
        if isinstance(cache, EncoderDecoderCache):
            if not self.states.lengths[rows.marks[0]]:
                sources = [len(self.prompts[prompt].source) for prompt in rows.prompts]
                states, self.shapes = _flat(cache.cross_attention_cache, max(sources))
                for prompt, count, own in zip(rows.prompts.tolist(), sources, states, strict=True):
                    self.encoded[prompt] = own[:count].clone()
            cache = cache.self_attention_cache
        marks, kept = rows.marks.copy(), np.flatnonzero(rows.child_counts)
        if not len(kept):
            return marks
        states, shapes = _flat(cache, length)
        kept = kept[np.cumsum(rows.fed[kept]) <= self.states.room(states, shapes)]
        if not len(kept):
            return marks
        places = torch.from_numpy(ranges(kept * length, rows.fed[kept])).to(states.device)
        states = states.flatten(0, 1)[places]
        marks[kept] = self.states.store(states, marks[kept], rows.fed[kept], rows.prompts[kept])
        return marks


def _log_probs(
    parts: Iterable[torch.Tensor], positions: np.ndarray, tokens: np.ndarray
) -> np.ndarray:
    """Return the log-probability of a token at each position of logits that come in parts."""
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
    return log_probs


class StateTable:
    """A table of the states of tokens, a row each, as large as memory allows.

    On a processor it has `TABLE_BYTES`, on a card MEMORY_SHARE of what is free; but `least` rows.
    A row stands for the text up to its token, and knows the row before it; the first row is
    nobody's, and stands for an empty text.
    """

    def __init__(self, least: int) -> None:
        self.least = least
        self.table: torch.Tensor | None = None
        self.capacity = 0  # tokens that the table holds
        self.free = np.empty(0, dtype=int)  # rows; the last are given first
        # of each row; owners are prompts, and nobody is 0
        self.previous, self.lengths, self.owners = np.zeros((3, 1), dtype=int)
        self.shapes: list[Shape] = []  # of keys, of values, …

    def room(self, states: torch.Tensor, shapes: list[Shape]) -> int:
        """Return for how many more tokens, whose states are like these, there is room."""
        if self.table is None:
            width = states.shape[-1] * states.element_size()
            self.capacity = max(_table_bytes(states.device) // width, self.least)
            self.table, self.shapes = states.new_empty(self.capacity + 1, states.shape[-1]), shapes
            self.table[0] = 0
            self.free = np.arange(self.capacity, 0, -1)
            sizes = (3, self.capacity + 1)
            self.previous, self.lengths, self.owners = np.zeros(sizes, dtype=int)
        return len(self.free)

    def store(
        self, states: torch.Tensor, marks: np.ndarray, counts: np.ndarray, prompts: np.ndarray
    ) -> np.ndarray:
        """Store states, [tokens, width], so many of each text after what it has up to its mark."""
        assert self.table is not None
        self.free, rows = self.free[: -len(states)], self.free[-len(states) :][::-1]
        self.table[torch.from_numpy(rows.copy()).to(states.device)] = states
        starts = np.cumsum(counts) - counts
        previous = np.append(0, rows[:-1])
        previous[starts] = marks
        self.previous[rows] = previous
        self.lengths[rows] = ranges(self.lengths[marks] + 1, counts)
        self.owners[rows] = np.repeat(prompts + 1, counts)
        return rows[starts + counts - 1]

    def release(self, prompts: Sequence[int]) -> None:
        """Free the rows of prompts."""
        rows = np.flatnonzero(np.isin(self.owners, np.array(prompts) + 1))
        self.owners[rows] = 0
        self.free = np.append(self.free, rows)

    def cache(self, marks: np.ndarray) -> DynamicCache:
        """Return the cache of the texts up to some rows; what is on the left of one is padding."""
        assert self.table is not None
        rows = np.zeros((self.lengths[marks].max(), len(marks)), dtype=int)
        for place in range(len(rows) - 1, -1, -1):
            rows[place], marks = marks, self.previous[marks]
        return _unflat(
            self.table[torch.from_numpy(rows.T.copy()).to(self.table.device)], self.shapes
        )


def _table_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return TABLE_BYTES
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(MEMORY_SHARE * (torch.cuda.mem_get_info(device)[0] + unused))


def _flat(cache: Any, tokens: int) -> tuple[torch.Tensor, list[Shape]]:
    """Return keys and values of a cache's last tokens, [texts, tokens, width], and their shapes."""
    parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    last = [part[:, :, part.shape[2] - tokens :].transpose(1, 2) for part in parts]
    shapes = [(part.shape[2], part.shape[3], part.device) for part in last]
    device = last[0].device  # of the first layer
    return torch.cat([part.flatten(2).to(device) for part in last], dim=-1), shapes


def _unflat(states: torch.Tensor, shapes: Sequence[Shape]) -> DynamicCache:
    """Return the cache of states [texts, tokens, width]."""
    widths = [heads * size for heads, size, _ in shapes]
    parts = [
        part.unflatten(-1, shape).transpose(1, 2).to(device)
        for part, (*shape, device) in zip(states.split(widths, dim=-1), shapes, strict=True)
    ]
    return DynamicCache(list(zip(parts[::2], parts[1::2], strict=True)))
