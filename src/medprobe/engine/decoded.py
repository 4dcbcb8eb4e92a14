"""What decoding filled into slots (`engine.filling`), as prediction rows."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from medprobe.engine import ranking
from medprobe.engine.filling import Filling, text_of
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, answer_ids


def predictions(
    model: Model,
    queries: pd.DataFrame,
    slots: Sequence[Slot],
    decoded: Sequence[Sequence[Filling]],
    *,
    k: int,
    normalise: Callable[[str], str],
    named: Mapping[str, str] | None = None,
    variant: str = "",
    replicate: str = "",
) -> pd.DataFrame:
    """The k best decoded texts of each query, or what each is `named`, as prediction rows.

    Fillings of the same text count once, with the best score. A text is a hit where one of its
    fillings, no worse than the last text shown, has exactly the tokens of an answer, or where it
    equals one by the rule `normalise`.
    """
    rows = []
    for query, slot, fillings in zip(queries.itertuples(), slots, decoded, strict=True):
        answers = list(query.answers)
        tokens = {tuple(ids) for ids in answer_ids(model.tokenizer, answers, slot.left)}
        texts = {normalise(answer) for answer in answers}
        read = [text_of(model, filling.tokens) for filling in fillings]
        shown = [((named or {}).get(text, text), f) for text, f in zip(read, fillings, strict=True)]
        scores: dict[str, float] = {}
        for text, filling in shown:
            scores.setdefault(text, filling.score)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        hits = {
            text
            for text, filling in shown
            if filling.score >= best[-1][1]
            and (filling.tokens in tokens or normalise(text) in texts)
        }
        for row in ranking.rows(str(query.query_id), best, variant, replicate):
            rows.append({**row, "hit": row["prediction"] in hits})
    return pd.DataFrame(rows)
