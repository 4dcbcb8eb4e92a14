"""Sentences that are longer than what a model reads: it reads what is around the gap."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from medprobe.core.errors import quote
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.engine.configuration import read_config
from medprobe.engine.load import window_of
from medprobe.engine.tokenizer import load_tokenizer

SPARE: Final = 4  # tokens: RoBERTa reads two fewer than it has positions, and borders can add some
LEAST: Final = 16  # tokens of an answer that a decoder may write, whatever names there are
SENTENCE: Final = "sentence"  # a column: the prompt with its answer, where a source has it


def shorten_prompts(folder: Path, tables: BenchmarkTables) -> tuple[BenchmarkTables, list[str]]:
    """Shorten the prompts that, with the longest name in the gap, a model cannot read whole.

    A prompt keeps the words around its gap, as many as the model reads. Where one side is short,
    the other keeps more.
    """
    queries = tables.queries
    if queries.empty or not (folder / "config.json").is_file():
        return tables, []
    tokenizer = load_tokenizer(folder, config := read_config(folder))
    window = window_of(config, tokenizer) - tokenizer.num_special_tokens_to_add() - SPARE
    prompts = queries["prompt"].tolist()
    for _, of_subset, candidates in tables.subsets():
        answers = chain.from_iterable(of_subset["answers"])
        names = [*{*candidates["name"], *answers}]
        # A token has a byte at least, so that most benchmarks need no counting.
        room = window - max(LEAST, *(len(name.encode()) for name in names), 0)
        places = np.flatnonzero(queries["subset"] == of_subset["subset"].iloc[0])
        long = [place for place in places if len(prompts[place].encode()) > room]
        if not long:
            continue
        ids = tokenizer(names, add_special_tokens=False)["input_ids"] if names else []
        room = max(window - max(LEAST, *map(len, ids), 0), 2)
        shorter = shorten(tokenizer, [prompts[place] for place in long], room)
        for place, prompt in zip(long, shorter, strict=True):
            prompts[place] = prompt
    is_shorter = np.array(prompts, dtype=object) != queries["prompt"].to_numpy(object)
    if not is_shorter.any():
        return tables, []
    short = queries.assign(prompt=prompts)
    if SENTENCE in short:
        filled = [
            prompt.replace(SLOT, answers[0]) if is_cut else sentence
            for prompt, answers, is_cut, sentence in zip(
                prompts, short["answers"], is_shorter, short[SENTENCE], strict=True
            )
        ]
        short = short.assign(**{SENTENCE: filled})
    return replace(tables, queries=short), queries.loc[is_shorter, "query_id"].tolist()


def find_long_names(folder: Path, tables: BenchmarkTables) -> list[str]:
    """Return the candidates that a model cannot read, with nothing around them."""
    if tables.candidates.empty or not (folder / "config.json").is_file():
        return []
    tokenizer = load_tokenizer(folder, config := read_config(folder))
    window = window_of(config, tokenizer) - tokenizer.num_special_tokens_to_add()
    names = tables.candidates["name"].drop_duplicates()
    long = [name for name in names if len(name.encode()) > window]  # a token has a byte at least
    ids = tokenizer(long, add_special_tokens=False, verbose=False)["input_ids"] if long else []
    return [name for name, of_name in zip(long, ids, strict=True) if len(of_name) > window]


def describe_long_names(names: Sequence[str]) -> str:
    """Say which names a model cannot read; empty if there are none.

    >>> describe_long_names(["a" * 999])[:37]
    '1 name is longer than the model reads'
    """
    if not names:
        return ""
    count = f"{len(names):,} names are" if len(names) > 1 else "1 name is"
    problem = f"{count} longer than the model reads, and refused by methods that fill it in"
    return f"{problem}: {', '.join(map(quote, names[:3]))}"


def describe_shorter(ids: Sequence[str]) -> str:
    """Say which queries' prompts a model reads in part; empty if there are none.

    >>> describe_shorter(["q7"])
    '1 prompt is longer than the model reads, which reads the words around the gap: q7'
    """
    if not ids:
        return ""
    count = f"{len(ids):,} prompts are" if len(ids) > 1 else "1 prompt is"
    named = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
    return f"{count} longer than the model reads, which reads the words around the gap: {named}"


def shorten(tokenizer: Any, prompts: Sequence[str], room: int) -> list[str]:
    """Return the words around each prompt's gap that have at most `room` tokens."""
    sides = [prompt.partition(SLOT)[::2] for prompt in prompts]
    encoded = tokenizer(
        [*chain.from_iterable(sides)],
        add_special_tokens=False,
        return_offsets_mapping=True,
        verbose=False,
    )["offset_mapping"]
    shorter = []
    for prompt, (before, after), spans in zip(
        prompts, sides, zip(encoded[::2], encoded[1::2], strict=True), strict=True
    ):
        first, second = spans
        if len(first) + len(second) <= room:
            shorter.append(prompt)
            continue
        kept_after = min(len(second), max(room // 2, room - len(first)))
        kept_before = min(len(first), room - kept_after)
        start = first[-kept_before][0] if kept_before < len(first) else 0
        end = second[kept_after - 1][1] if kept_after < len(second) else len(after)
        from_end = _from_word(after[::-1], len(after) - end)[::-1]
        shorter.append(_from_word(before, start) + SLOT + from_end)
    return shorter


def _from_word(text: str, start: int) -> str:
    """The text from the first word that begins at `start` or later.

    >>> _from_word("born in Paris ", 6)
    'Paris '
    """
    if not start:
        return text
    if not text[start - 1].isspace():
        start = next((i for i in range(start, len(text)) if text[i].isspace()), start)
    return text[start:].lstrip()
