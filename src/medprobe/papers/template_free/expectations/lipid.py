"""Expectations on prompts from texts: LIPID's sentences, and LAMA's parallel pairs."""

from collections.abc import Sequence
from datetime import date, timedelta

import pandas as pd

from medprobe.gate.checks import Context, row_check, says, value_check
from medprobe.sources.mentions import Mentions, is_symbol, words


@value_check
def expect_texts_to_hold_one_candidate(texts: pd.Series, context: Context) -> pd.Series:
    """Each text has exactly one mention of any candidate of the benchmark.

    A candidate in capitals is mentioned in capitals only.
    """
    names = context.tables["candidates"]["name"]
    finder = Mentions(((name, name) for name in names.unique()), exact=is_symbol)
    return texts.map(lambda text: len(finder.find(text)) == 1)


@row_check
def expect_dates_to_be_later(rows: pd.DataFrame) -> list[bool]:
    """The first column's date, YYYY-MM-DD, exists and is later than the second one's."""
    first, second = (rows[column] for column in rows.columns)
    return [
        _day(day) > date.fromisoformat(other_day)
        for day, other_day in zip(first, second, strict=True)
    ]


@value_check
@says("the date is in the future")
def expect_dates_to_be_past(days: pd.Series) -> pd.Series:
    """Each date, YYYY-MM-DD, is not after tomorrow: another time zone can be a day ahead."""
    return days.map(_day) <= date.today() + timedelta(days=1)


@row_check
def expect_filled_prompts(rows: pd.DataFrame) -> list[bool]:
    """The third column is the first one with an item of the second one in its slot.

    It may be spelt in any way in which it is found in a text: in another case, with a hyphen.
    """
    prompts, answers, texts = (rows[column] for column in rows.columns)
    return [
        any(words(prompt.replace("[Y]", answer)) == words(text) for answer in items)
        for prompt, items, text in zip(prompts, answers, texts, strict=True)
    ]


@row_check
@says("its answer stands at the head of the prompt")
def expect_prompts_not_to_begin_with_answers(
    rows: pd.DataFrame, share: float, at_least: int
) -> pd.Series:
    """Few prompts of a relation begin with an answer.

    Columns `subset, relation, prompt, answers`. A sentence or two can; where more than this share
    of a relation do, the object was put before its sentences. Relations with fewer prompts than
    `at_least` pass.
    """
    subset, relation, prompt, answers = rows.columns
    begins = pd.Series(
        [_begins(text, names) for text, names in zip(rows[prompt], rows[answers], strict=True)],
        rows.index,
    )
    groups = begins.groupby([rows[subset], rows[relation]])
    is_many = (groups.transform("mean") > share) & (groups.transform("size") >= at_least)
    return ~(begins & is_many)


@row_check
def expect_pairs_to_match(rows: pd.DataFrame, template_based: str, template_free: str) -> pd.Series:
    """Rows of `template_based` equal rows of `template_free` but for the subset.

    The first column is the subset. Rows of other subsets are ignored.
    """
    subset_column, *columns = rows.columns
    subsets = [template_based, template_free]
    keys = pd.Series([str(row) for row in rows[columns].to_numpy().tolist()], index=rows.index)
    counts = pd.crosstab(keys, rows[subset_column]).reindex(columns=subsets, fill_value=0)
    is_paired = keys.map((counts == 1).all(axis=1))
    return ~rows[subset_column].isin(subsets) | is_paired.astype(bool)


def _begins(prompt: str, answers: Sequence[str]) -> bool:
    tokens = words(prompt)
    return any(name and tokens[: len(name)] == name for name in map(words, answers))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min
