"""Rules that decide whether a predicted text equals an answer. A benchmark names its rule."""

import re
import string
from collections.abc import Callable
from typing import Final

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
        names = predictions["prediction"]
        predictions = predictions.assign(prediction_id=[id_by_name.get(name, "") for name in names])
    if "hit" in predictions:
        return predictions
    normalise = normalise or find_rule(tables.normalise)
    answers_by_query = {
        row.query_id: {normalise(answer) for answer in row.answers}
        for row in tables.queries.itertuples()
    }
    names = {name: normalise(name) for name in predictions["prediction"].unique()}
    hits = [
        names[name] in answers_by_query[query]
        for query, name in zip(predictions["query_id"], predictions["prediction"], strict=True)
    ]
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
