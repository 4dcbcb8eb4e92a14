"""What decoding filled into slots (`engine.filling`), as prediction rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import pandas as pd
from pydantic import Field

from medprobe.core.params import Section
from medprobe.engine import ranking
from medprobe.engine.filling import Bias, Filling, text_of
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, answer_ids

Equal = Literal["tokens", "text"]
Named = tuple[str, float, bool]  # a text, its score, and whether it is an answer


class DecodingSettings(Section):
    """How masks are filled, and when a text is an answer.

    BioLAMA's released decoder has `length_normalisation: false, bias: subtracted, equal: text`.
    """

    masks: int = Field(5, gt=0)
    """Longest answer, in masks."""
    beam: int = Field(5, gt=0)
    """Width of the beam."""
    length_normalisation: bool = True
    """Answers of different lengths compete by their mean log-probability per token; otherwise by
    the sum."""
    bias: Bias = "kept"
    """The bias of the language-model head while decoding: `kept`, or `subtracted` as BioLAMA's
    released decoder does."""
    equal: Equal = "tokens"
    """When a decoded text is an answer: if its `tokens` or the benchmark's rule say so, or by the
    rule alone (`text`)."""

    def needed(self, k: int) -> int:
        """How many texts to decode for k predictions: all, where some may be equal by a rule."""
        return self.masks * self.beam if self.equal == "text" else k


def predictions(
    model: Model,
    queries: pd.DataFrame,
    slots: Sequence[Slot],
    decoded: Sequence[Sequence[Filling]],
    *,
    k: int,
    normalise: Callable[[str], str],
    equal: Equal = "tokens",
    named: Mapping[str, str] | None = None,
    variant: str = "",
    replicate: str = "",
) -> pd.DataFrame:
    """The k best decoded texts of each query, or what each is `named`, as prediction rows.

    Fillings of the same text count once, with the best score. Where `equal` is `tokens`, a text is
    a hit where one of its fillings, no worse than the last text shown, has exactly the tokens of an
    answer, or where it equals one by the rule `normalise`. For `text` see `by_rule`; a WordPiece
    that begins a text is then read without its mark.
    """
    rows = []
    for query, slot, fillings in zip(queries.itertuples(), slots, decoded, strict=True):
        answers = list(query.answers)
        read = [text_of(model, filling.tokens) for filling in fillings]
        shown = [(named or {}).get(text, text) for text in read]
        if equal == "text":
            texts = [text.removeprefix("##") for text in shown]
            scored = [(text, f.score) for text, f in zip(texts, fillings, strict=True)]
            best = by_rule(scored, answers, normalise)[:k]
        else:
            tokens = {tuple(ids) for ids in answer_ids(model.tokenizer, answers, slot.left)}
            right = {normalise(answer) for answer in answers}
            best = by_text(
                [
                    (text, f.score, f.tokens in tokens or normalise(text) in right)
                    for text, f in zip(shown, fillings, strict=True)
                ],
                k,
            )
        pairs = [(text, score) for text, score, _ in best]
        of_query = ranking.rows(str(query.query_id), pairs, variant, replicate)
        rows += [{**row, "hit": hit} for row, (*_, hit) in zip(of_query, best, strict=True)]
    return pd.DataFrame(rows)


def by_rule(
    texts: Iterable[tuple[str, float]], answers: Iterable[str], normalise: Callable[[str], str]
) -> list[Named]:
    """BioLAMA's evaluator (Sung et al., EMNLP 2021): of texts, best first, that the rule makes
    equal the first counts; it is a hit where the rule makes it equal to an answer. Where the rule
    leaves nothing of an answer, blanks that stand at the end for the other texts hit it.

    >>> by_rule([("Pain", 0.5), ("pain", 0.4), ("ache", 0.1)], ["PAIN"], str.lower)
    [('Pain', 0.5, True), ('ache', 0.1, False)]
    """
    right = {normalise(answer) for answer in answers}
    first: dict[str, tuple[str, float]] = {}
    texts = list(texts)
    for text, score in texts:
        first.setdefault(normalise(text), (text, score))
    named = [(text, score, rule in right) for rule, (text, score) in first.items()]
    blanks = len(texts) - len(first) if "" in right else 0
    return named + [("", texts[-1][1], True)] * blanks


def by_text(fillings: Sequence[Named], k: int) -> list[Named]:
    """The k best different texts, equal scores by name."""
    scores: dict[str, float] = {}
    for text, score, _ in fillings:
        scores.setdefault(text, score)
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
    hits = {text for text, score, hit in fillings if hit and score >= best[-1][1]}
    return [(text, score, text in hits) for text, score in best]
