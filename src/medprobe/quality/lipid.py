"""Expectations on prompts that stand in texts: LIPID's sentences, and LAMA's parallel pairs."""

from datetime import date

import pandas as pd

from medprobe.quality.checks import row_check, tables, value_check
from medprobe.sources.mentions import Mentions, is_symbol


@value_check
def expect_texts_to_hold_one_candidate(texts: pd.Series) -> pd.Series:
    """Exactly one mention of any candidate of the benchmark stands in each text; a word in capitals
    is one in capitals only."""
    names = tables.get()["candidates"]["name"]
    finder = Mentions(((name, name) for name in names.unique()), exact=is_symbol)
    return texts.map(lambda text: len(finder.find(text)) == 1)


@row_check
def expect_dates_to_be_later(rows: pd.DataFrame) -> pd.Series:
    """The first column's date, YYYY-MM-DD, exists and is later than the second one's."""
    first, second = (rows[column] for column in rows.columns)
    found = [
        _day(day) > date.fromisoformat(after) for day, after in zip(first, second, strict=True)
    ]
    return pd.Series(found, index=rows.index)


@row_check
def expect_filled_prompts(rows: pd.DataFrame) -> pd.Series:
    """The third column's text is the first one's with any of the second one's items in its slot,
    whatever the case."""
    prompts, answers, texts = (rows[column] for column in rows.columns)
    found = [
        any(prompt.replace("[Y]", answer).casefold() == text.casefold() for answer in items)
        for prompt, items, text in zip(prompts, answers, texts, strict=True)
    ]
    return pd.Series(found, index=rows.index)


@row_check
def expect_pairs_to_match(rows: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Rows of subset `one` and rows of subset `other` are the same in all columns but the first,
    which is the subset; rows of further subsets are not looked at."""
    first, *rest = rows.columns
    keys = pd.Series([str(row) for row in rows[rest].to_numpy().tolist()], index=rows.index)
    counts = pd.crosstab(keys, rows[first]).reindex(columns=[one, other], fill_value=0)
    good = keys.map((counts[one] == 1) & (counts[other] == 1))
    return ~rows[first].isin([one, other]) | good.astype(bool)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min
