"""The sample world's text as training reads it: pieces, names among them, batches."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from medprobe.core.tables import BLANK
from medprobe.sample.architectures import POSITIONS, ROLES

JOINED: Final = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)  # sentences in an input, drawn for each batch
CHATS: Final = (1, 2, 4)  # the same of a chat model: turns with facts told before
CASE_SHARE: Final = 0.4  # of a masked model's batches: those of cases, in which to look names up


@dataclass(frozen=True)
class Sentence:
    """A sentence's pieces, and `(start, end)` of those of each name in it.

    A `case` is asked for its last name alone.
    """

    pieces: list[int]
    names: list[tuple[int, int]]
    case: bool = False


def read(corpus: Path, names: Path, pieces: Any) -> list[Sentence]:
    """Read the sentences of a corpus, one per line, and the names in them.

    Of names that begin at the same word the longest counts.
    """
    all_names = set(names.read_text(encoding="utf-8").splitlines())
    longest = max(name.count(" ") + 1 for name in all_names)

    @cache
    def ids(word: str) -> list[int]:
        return pieces.encode(word, add_special_tokens=False)

    def sentence(line: str) -> Sentence:
        words = line.split(" ")
        sentence_pieces: list[int] = []
        spans: list[tuple[int, int]] = []
        at = 0
        while at < len(words):
            ends = range(min(len(words), at + longest), at, -1)
            end = next((end for end in ends if " ".join(words[at:end]) in all_names), None)
            start = len(sentence_pieces)
            for word in words[at : end or at + 1]:
                sentence_pieces += ids(word)
            if end:
                spans.append((start, len(sentence_pieces)))
            at = end or at + 1
        return Sentence(sentence_pieces, spans)

    return [sentence(line) for line in corpus.read_text(encoding="utf-8").splitlines()]


def batches(
    sentences: list[Sentence],
    size: int,
    rng: random.Random,
    cases: Sequence[Sentence] = (),
    together: Sequence[int] = JOINED,
) -> Iterator[list[Sentence]]:
    """Endless batches of `size` sentences.

    Each is an input of its own, or joined with the sentences next to it, so that models learn
    longer inputs too. If there are cases, some batches are of half as many of these.
    """
    while True:
        if cases and rng.random() < CASE_SHARE:
            yield rng.choices(cases, k=size // 2)
            continue
        joined = rng.choice(together)
        starts = (rng.randrange(len(sentences) - joined + 1) for _ in range(size // joined))
        yield [join(sentences[start : start + joined]) for start in starts]


def join(parts: list[Sentence]) -> Sentence:
    """One sentence of several, cut to the window.

    >>> join([Sentence([7, 8], [(0, 1)]), Sentence([9], [(0, 1)])])
    Sentence(pieces=[7, 8, 9], names=[(0, 1), (2, 3)], case=False)
    """
    pieces: list[int] = []
    names: list[tuple[int, int]] = []
    for part in parts:
        names += [(start + len(pieces), end + len(pieces)) for start, end in part.names]
        pieces += part.pieces
    room = POSITIONS - 2
    return Sentence(pieces[:room], [span for span in names if span[1] <= room])


def with_turns(sentences: Sequence[Sentence], pieces: Any, rng: random.Random) -> list[Sentence]:
    """Return each sentence as it is and, as often, as a turn of a chat.

    The turn has a blank for the sentence's last name, and then that name. Sentences of the same
    wording are adjacent, in any order: joined they are a question with answered ones before it,
    none of which has its answer.
    """
    user, model = pieces.convert_tokens_to_ids([*ROLES.values()])
    end, blank = pieces.eos_token_id, pieces.encode(BLANK, add_special_tokens=False)

    def turn(sentence: Sentence) -> Sentence:
        start, stop = sentence.names[-1]
        question = [*sentence.pieces[:start], *blank, *sentence.pieces[stop:]]
        return Sentence([user, *question, end, model, *sentence.pieces[start:stop], end], [])

    def wording(sentence: Sentence) -> tuple[int, ...]:
        named = {at for start, stop in sentence.names for at in range(start, stop)}
        return tuple(piece for at, piece in enumerate(sentence.pieces) if at not in named)

    mixed = sorted(rng.sample(sentences, len(sentences)), key=wording)
    return [*mixed, *map(turn, mixed)]
