"""Texts that decoding filled into slots (`engine.filling`), as prediction rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import pandas as pd
from pydantic import Field

from medprobe.core.settings import Section
from medprobe.engine import ranking
from medprobe.engine.filling import Bias, Filling, text_of
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, answer_ids

Equal = Literal["tokens", "text"]
ScoredText = tuple[str, float, bool]  # a text, its score, and whether it is an answer


class DecodingSettings(Section):
    """How masks are filled, and when a text equals an answer.

    BioLAMA's released decoder has `length_normalisation: false, bias: subtracted, equal: text`.
    """

    masks: int = Field(5, gt=0)
    """Longest answer, in masks."""
    beam: int = Field(5, gt=0)
    """Width of the beam."""
    length_normalisation: bool = True
    """Compare lengths by the mean log-probability per token, else by the sum."""
    bias: Bias = "kept"
    """The head's bias while decoding: `kept`, or `subtracted`, as in BioLAMA's decoder."""
    equal: Equal = "tokens"
    """A decoded text is an answer by its `tokens` or the benchmark's rule, or by the rule alone
    (`text`)."""

    def texts_to_decode(self, k: int) -> int:
        """Return how many texts to decode for k predictions: all, where a rule may merge some."""
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
    """Return the k best decoded texts of each query as prediction rows.

    Fillings with the same text count once, with the best score. Where `equal` is `tokens`, a text
    is a hit in two cases: a filling of it that scores no worse than the k-th text has exactly the
    tokens of an answer, or the text equals an answer by the rule `normalise`. Where `equal` is
    `text`, see `merge_by_rule`; a WordPiece that begins a text then loses its mark `##`.
    """
    rows = []
    for query, slot, fillings in zip(queries.itertuples(), slots, decoded, strict=True):
        answers = list(query.answers)
        texts_decoded = [text_of(model, filling.tokens) for filling in fillings]
        texts_named = [(named or {}).get(text, text) for text in texts_decoded]
        if equal == "text":
            texts = [text.removeprefix("##") for text in texts_named]
            scored = [(text, f.score) for text, f in zip(texts, fillings, strict=True)]
            best = merge_by_rule(scored, answers, normalise)[:k]
        else:
            tokens = {tuple(ids) for ids in answer_ids(model.tokenizer, answers, slot.preceding)}
            normalised_answers = {normalise(answer) for answer in answers}
            best = merge_by_text(
                [
                    (text, f.score, f.tokens in tokens or normalise(text) in normalised_answers)
                    for text, f in zip(texts_named, fillings, strict=True)
                ],
                k,
            )
        pairs = [(text, score) for text, score, _ in best]
        rows_of_query = ranking.prediction_rows(str(query.query_id), pairs, variant, replicate)
        rows += [{**row, "hit": hit} for row, (*_, hit) in zip(rows_of_query, best, strict=True)]
    return pd.DataFrame(rows)


def merge_by_rule(
    texts: Iterable[tuple[str, float]], answers: Iterable[str], normalise: Callable[[str], str]
) -> list[ScoredText]:
    """Merge texts that a rule makes equal, as BioLAMA's evaluator does.

    Of equal texts the first counts. It is a hit where it equals an answer by the rule. Where the
    rule leaves nothing of an answer, the blanks that replace the merged texts at the end hit it.

    Source:
        Sung et al., EMNLP 2021; its released evaluator.

    >>> merge_by_rule([("Pain", 0.5), ("pain", 0.4), ("ache", 0.1)], ["PAIN"], str.lower)
    [('Pain', 0.5, True), ('ache', 0.1, False)]
    """
    normalised_answers = {normalise(answer) for answer in answers}
    first_by_rule: dict[str, tuple[str, float]] = {}
    texts = list(texts)
    for text, score in texts:
        first_by_rule.setdefault(normalise(text), (text, score))
    merged = [
        (text, score, key in normalised_answers) for key, (text, score) in first_by_rule.items()
    ]
    blanks = len(texts) - len(first_by_rule) if "" in normalised_answers else 0
    return merged + [("", texts[-1][1], True)] * blanks


def merge_by_text(fillings: Sequence[ScoredText], k: int) -> list[ScoredText]:
    """Return the k best different texts; equal scores go by name."""
    scores: dict[str, float] = {}
    for text, score, _ in fillings:
        scores.setdefault(text, score)
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
    hits = {text for text, score, hit in fillings if hit and score >= best[-1][1]}
    return [(text, score, text in hits) for text, score in best]
