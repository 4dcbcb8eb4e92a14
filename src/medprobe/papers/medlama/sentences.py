"""Sentence sets, text files with one sentence per line, and the pairs that rewiring learns.

A pair is a sentence without its tail, and that tail.
"""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput, nearest
from medprobe.papers.medlama.settings.rewire import Cut, RewireSettings
from medprobe.sources.records import read_lines

SENTENCES: Final = Path("data/sentences")


def read_sentences(path: Path) -> list[str]:
    """Read the lines of a set up to its last sentence; a blank one is empty."""
    get = "put one sentence per line there"
    if not path.is_file():
        names = sorted(file.stem for file in path.parent.glob("*.txt"))
        remedy = f"there are: {', '.join(names)}" if names else get
        raise BadInput(path, f"no such sentence set{nearest(path.stem, names)}", remedy)
    lines = [line.removesuffix("\n") if line.strip() else "" for _, line in read_lines(path, get)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def cut_tail(
    sentence: str,
    mask: str,
    ratio: float,
    generator: random.Random,
    rule: Cut = "released",
    *,
    keep_blank: bool = False,
) -> tuple[str, str] | None:
    """Cut the end of a sentence: return `(query, answer)`.

    Of n words m are cut, 1 ≤ m ≤ 1 + ⌊ratio · n⌋, and `mask` takes their place. A sentence that is
    too short for the cut gives None. With `keep_blank` it gives what Python's slices then give, as
    the released code does.

    Words are what stands between blanks. As `released`, the cut starts one word early, so that the
    last "word" stays: in lines that end in a blank that one is empty. `tail` ignores blanks at the
    ends and cuts the very last words. `sentence` draws nothing: it cuts the last ⌈ratio · n⌉ words,
    one at least, and leaves the full stop where it is (Meng et al., ACL 2022, section 4).

    >>> cut_tail("aspirin may prevent a stroke .", "[MASK]", 0.2, random.Random(1))
    ('aspirin may prevent a [MASK] .', 'stroke')
    >>> cut_tail("Aspirin may prevent stroke.", "[MASK]", 0.5, random.Random(1), "sentence")
    ('Aspirin may [MASK].', 'prevent stroke')
    """
    if rule == "sentence":
        return _cut_share(sentence, mask, ratio, keep_blank=keep_blank)
    words = sentence.split(" ") if rule == "released" else sentence.split()
    count = generator.randint(1, 1 + int(ratio * len(words)))
    start = len(words) - count - (rule == "released")
    answer = " ".join(words[start : start + count])
    query = " ".join([*words[:start], mask, *words[start + count :]])
    is_complete = start >= 0 and answer.strip() and query.replace(mask, "").strip()
    return (query, answer) if is_complete or keep_blank else None


def _cut_share(
    sentence: str, mask: str, ratio: float, *, keep_blank: bool
) -> tuple[str, str] | None:
    """Cut a share of a sentence's last words, excluding the full stop: `(query, answer)`."""
    body = sentence.rstrip().removesuffix(".")
    words, stop = body.split(), sentence.rstrip()[len(body.rstrip()) :]
    start = len(words) - max(1, math.ceil(round(ratio * len(words), 6)))
    query, answer = " ".join([*words[: max(0, start)], mask]) + stop, " ".join(words[start:])
    return (query, answer) if (start > 0 and answer) or keep_blank else None


def make_pairs(
    sentences: Sequence[str], mask: str, settings: RewireSettings, seed: str
) -> list[tuple[str, str]]:
    """One pair a sentence, in the order of the sentences; the cuts are drawn from `seed`.

    A blank line is a sentence if blank pairs are kept.
    """
    draw, keep_blank = random.Random(seed), settings.blank == "kept"
    cuts = [
        cut_tail(line, mask, settings.mask_ratio, draw, settings.cut, keep_blank=keep_blank)
        for line in sentences[: settings.max_sentences]
        if line.strip() or keep_blank
    ]
    return [pair for pair in cuts if pair]


def read_pairs(path: Path, mask: str, settings: RewireSettings, seed: str) -> list[tuple[str, str]]:
    """Make the pairs of a sentence set."""
    pairs = make_pairs(read_sentences(path), mask, settings, seed)
    if len(pairs) < 2:
        raise BadInput(path, f"{len(pairs)} sentences long enough to cut, expected 2 or more")
    return pairs
