"""Rules that decide whether a predicted text equals an answer. A benchmark names its rule."""

import re
import string
from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.tables import QUERY_COLUMNS, BenchmarkTables

THINK_END: Final = "</think>"  # ends the thoughts that many models write before an answer
THOUGHTS: Final = 2048  # tokens for the thoughts of a model that is known to think
WARNED: Final = 0.1  # of the queries: a larger share without an answer is a warning


def exact(text: str) -> str:
    """Return the text unchanged."""
    return text


def biolama(text: str) -> str:
    """Normalise a text as BioLAMA's evaluator does.

    Lower case, without punctuation and articles, words separated by single blanks.

    Source:
        Sung et al., EMNLP 2021; its released evaluator.

    >>> biolama("The Wolff-Parkinson-White  syndrome")
    'wolffparkinsonwhite syndrome'
    """
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def uncased(normalise: Callable[[str], str]) -> Callable[[str], str]:
    """Return the rule without regard to letter case.

    For texts that a model writes itself: its tokenizer may have lower-cased them.

    >>> uncased(exact)("Chronic Pain")
    'chronic pain'
    """
    return lambda text: normalise(text).lower()


def loose(normalise: Callable[[str], str]) -> Callable[[str], str]:
    """Return the rule without regard to letter case, punctuation and articles.

    For free answers. It is the rule, and then that of BioLAMA's evaluator.

    >>> loose(exact)("The gout.")
    'gout'
    """
    return lambda text: biolama(normalise(text))


RULES: Final[dict[str, Callable[[str], str]]] = {"exact": exact, "biolama": biolama}


def find_rule(name: str) -> Callable[[str], str]:
    """Return the rule with this name, a function that normalises a text."""
    if name not in RULES:
        raise BadInput("answers", f"no rule '{name}'{nearest(name, [*RULES])}")
    return RULES[name]


def with_hits(
    predictions: pd.DataFrame,
    tables: BenchmarkTables,
    normalise: Callable[[str], str] | None = None,
) -> pd.DataFrame:
    """Add the columns `prediction_id` and `hit` where the method did not write them itself.

    Args:
        predictions: Columns `query_id` and `prediction` at least.
        tables: The benchmark.
        normalise: The rule for equal answers; the benchmark's if None.
    """
    if "prediction_id" not in predictions:
        id_by_name = dict(zip(tables.candidates["name"], tables.candidates["id"], strict=True))
        ids = predictions["prediction"].map(id_by_name).fillna("")
        predictions = predictions.assign(prediction_id=ids)
    if "hit" in predictions:
        return predictions
    normalise = normalise or find_rule(tables.normalise)
    # A sweep has a hundred million predictions, of few names: texts are looked at once each.
    query_codes, query_ids = pd.factorize(predictions["query_id"])
    name_codes, names = pd.factorize(predictions["prediction"])
    text_codes, texts = pd.factorize(np.array([normalise(name) for name in names], dtype=object))
    code_of = {text: code for code, text in enumerate(texts)}
    answers = dict(zip(tables.queries["query_id"], tables.queries["answers"], strict=True))
    right = [
        query * len(texts) + code_of[text]
        for query, query_id in enumerate(query_ids)
        for text in map(normalise, answers[query_id])
        if text in code_of
    ]
    hits = np.isin(query_codes * len(texts) + text_codes[name_codes], right)
    return predictions.assign(hit=hits)


def collect_facts(tables: BenchmarkTables) -> pd.DataFrame:
    """Return all that a benchmark says to be true: its queries, and those of its further tables.

    Returns:
        Columns `QUERY_COLUMNS`.
    """
    fact_tables = [table for table in tables.others.values() if {*QUERY_COLUMNS} <= {*table}]
    columns = [table[QUERY_COLUMNS] for table in (tables.queries, *fact_tables)]
    return pd.concat(columns, ignore_index=True)


def describe_unanswered(predictions: pd.DataFrame) -> str:
    """Return a warning where more than WARNED of the queries of a variant have no answer, or ""."""
    if "unanswered" not in predictions:
        return ""
    first = predictions[(predictions["rank"] == 1) & predictions["unanswered"].notna()]
    parts = []
    for variant, rows in first.groupby("variant"):
        reasons = rows.loc[rows["unanswered"] != "", "unanswered"].value_counts()
        if reasons.sum() > WARNED * len(rows):
            causes = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
            parts.append(f"{variant}: {reasons.sum():,} of {len(rows):,} unanswered ({causes})")
    if not parts:
        return ""
    advice = "settings for more room: spare, thinking.budget; for a name alone: system, question"
    return f"{'; '.join(parts)}; {advice}"
