"""The likeliest names in a slot, exactly, under a model that writes from left to right.

`best_first` chooses the nodes of the names' trie to read, and `reader` reads those of many prompts
in a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from medprobe.backends.finder import Backend, Transformers
from medprobe.core.progress import report_progress
from medprobe.engine import causal, seq2seq
from medprobe.engine.configuration import Head
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, WritingPrompt, answer_ids, too_long_error
from medprobe.extensions.likelihood.best_first import Contest, Search, rank_names, unclear
from medprobe.extensions.likelihood.rankers import VARIANTS, Ranker, Ranking, VariantRanking
from medprobe.extensions.likelihood.reader import Reader
from medprobe.extensions.likelihood.trie import ROOT, Tokens, Trie, TriePrompt

# Nats a token, the largest difference to what float32 reads alone. Sums of the same numbers in
# another order differed by 2e-7 to 6e-6; bfloat16's, over 240 filled prompts, by 0.065 at most.
ROUNDING: Final = {torch.float32: 2e-5, torch.bfloat16: 0.07}


class NameTries:
    """The names to rank as tries of their tokens, made once for all prompts.

    A name's tokens depend on the character before the slot, so each such character has a trie.
    """

    def __init__(self, tokenizer: Any, names: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.names = names
        self._tries: dict[str, Trie] = {}

    def after(self, preceding: str) -> Trie:
        """Return the trie of the names after this character."""
        if preceding not in self._tries:
            self._tries[preceding] = Trie.build(answer_ids(self.tokenizer, self.names, preceding))
        return self._tries[preceding]


@dataclass
class TrieRanker:
    """Ranks names under a model in this process, exactly, by a search over their trie."""

    model: Model
    head: Head
    exact: Callable[[], Model]  # the same model in float32
    tries: NameTries | None = None  # of the names that were ranked last

    def tokenize(self, prompts: Sequence[str], where: Sequence[str]) -> list[WritingPrompt]:
        """Slots, and what an encoder reads."""
        if self.head == "seq2seq":
            frames = seq2seq.frames(self.model, prompts, where)
            return [(frame.target, tuple(frame.source)) for frame in frames]
        return [(slot, ()) for slot in causal.prompt_slots(self.model, prompts, where)]

    def find_likeliest(
        self, prompts: Sequence[WritingPrompt], where: Sequence[str], ranking: Ranking
    ) -> list[list[VariantRanking]]:
        """Return for each prompt the ranking of names by each variant."""
        if self.tries is None or self.tries.names != ranking.names:
            self.tries = NameTries(self.model.tokenizer, ranking.names)
        return find_likeliest(
            self.model,
            [slot for slot, _ in prompts],
            where,
            self.tries,
            ranking.k,
            sources=[source for _, source in prompts if source],
            answers=ranking.answers,
            variants=ranking.variants,
            ahead=ranking.ahead,
            exact=self.exact,
        )


def ranker_of(backend: Backend) -> Ranker:
    """Return what ranks names under a backend: one from outside has its own way."""
    if isinstance(backend, Transformers):
        return TrieRanker(backend.model, backend.head, backend.exact)
    assert isinstance(backend, Ranker), "`finder` checks that a backend that can echo has it"
    return backend


def find_likeliest(
    model: Model,
    slots: Sequence[Slot],
    where: Sequence[str],
    tries: NameTries,
    k: int,
    *,
    sources: Sequence[Tokens] = (),
    answers: Sequence[Sequence[int]] = (),
    variants: int = len(VARIANTS),
    ahead: bool = False,
    exact: Callable[[], Model] | None = None,
    on_reader: Callable[[Reader], object] = lambda reader: None,
) -> list[list[VariantRanking]]:
    """Find the k likeliest names of each slot, or those up to its best answer."""
    asked: dict[tuple[Slot, Tokens], list[int]] = {}
    for i, slot in enumerate(slots):
        asked.setdefault((slot, tuple(sources[i]) if sources else ()), []).append(i)
    prompts = [TriePrompt(slot, tries.after(slot.preceding), source) for slot, source in asked]
    for prompt, queries in zip(prompts, asked.values(), strict=True):
        _check_window(prompt, model.max_length, where[queries[0]], tries.names)
    contests: list[list[Contest]] = [[] for _ in prompts]
    by_query: dict[int, list[tuple[int, Contest]]] = {}
    for number, queries in enumerate(asked.values()):
        for i in queries:
            leaves = prompts[number].trie.leaves_of(answers[i] if answers else ())
            mine = [Contest(variant, k, leaves, ahead) for variant in range(variants)]
            contests[number] += mine
            by_query[i] = [(number, contest) for contest in mine]
    on_reader(reader := Reader(model, prompts))
    _search(reader, contests)
    alone = _read_alone(exact or (lambda: model), prompts, contests)
    return [
        [rank_names(prompts[i].trie, c, alone[i][c.variant]) for i, c in by_query[query]]
        for query in range(len(slots))
    ]


def _check_window(prompt: TriePrompt, window: int, where: str, names: Sequence[str]) -> None:
    """Raise BadInput, with a longest name, if it does not fit into the model's window."""
    slot, depths = prompt.slot, prompt.trie.max_depths
    length = len(slot.before) + int(depths[ROOT]) + len(slot.after)
    if length > window:
        [row, *_] = prompt.trie.rows_of(int((depths * prompt.trie.is_leaf).argmax()))
        raise too_long_error(where, names[row], length, window)


def _search(reader: Reader, contests: Sequence[Sequence[Contest]]) -> None:
    """Decide the contests of all prompts, of as many at a time as there is room for.

    Nodes of many prompts share a batch; short prompts come first.
    """
    prompts = reader.prompts
    lengths = [(len(slot.before) - slot.forced, len(slot.after)) for slot, *_ in prompts]
    rounding = ROUNDING.get(reader.model.dtype, ROUNDING[torch.bfloat16])
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i].slot.before), -i))
    for trie in {id(prompt.trie): prompt.trie for prompt in prompts}.values():
        queue = [i for i in order if prompts[i].trie is trie]
        mine = [part if prompts[i].trie is trie else [] for i, part in enumerate(contests)]
        search, reading = Search(trie, lengths, mine, rounding), set[int]()
        while queue or reading:
            added: list[int] = []
            while queue and reader.has_room(len(reading) + len(added)):
                added.append(queue.pop())
            search.begin(added)
            work, waiting = search.next(), search.unfinished()
            if finished := (reading | {*added}) - waiting:
                reader.release([*finished])
                report_progress(len(finished), "queries")
            if reading := waiting:
                search.receive(*reader.read(trie, work))


def _read_alone(
    exact: Callable[[], Model],
    prompts: Sequence[TriePrompt],
    contests: Sequence[Sequence[Contest]],
) -> list[list[dict[int, float]]]:
    """Return for each prompt and variant the scores of leaves whose order must be made certain.

    They depend on nothing but the model and the text.
    """
    texts = [
        (number, leaf, [*prompt.slot.before, *prompt.trie.spell(leaf), *prompt.slot.after])
        for number, (prompt, mine) in enumerate(zip(prompts, contests, strict=True))
        for leaf in {int(x) for c in mine for x in unclear(prompt.trie, c)}
    ]
    scores: list[list[dict[int, float]]] = [[{} for _ in VARIANTS] for _ in prompts]
    if not texts:
        return scores
    model = exact()
    if prompts[0].source:
        log_probs = [
            causal.continuations(model, text[:1], [text[1:]], 1, prompts[number].source)[1][0]
            for number, _, text in texts
        ]
    else:
        log_probs = causal.log_likelihood_alone(model, [text for *_, text in texts])
    for (number, leaf, _), row in zip(texts, log_probs, strict=True):
        own = row[prompts[number].slot.forced - 1 :]
        scores[number][0][leaf], scores[number][1][leaf] = sum(own), sum(own) / len(own)
    return scores
