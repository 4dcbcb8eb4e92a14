"""When is a predicted text an answer? Benchmarks choose one of these rules by its name."""

import re
import string
from collections.abc import Callable
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.tables import BenchmarkTables


def exact(text: str) -> str:
    """The text as it is."""
    return text


def biolama(text: str) -> str:
    """Lower case, no punctuation, no articles, single blanks: BioLAMA's evaluator (Sung et al.,
    EMNLP 2021).

    >>> biolama("The Wolff-Parkinson-White  syndrome")
    'wolffparkinsonwhite syndrome'
    """
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def uncased(rule: Callable[[str], str]) -> Callable[[str], str]:
    """A rule, letter case aside: for texts that a model writes itself, and whose case its tokenizer
    may have taken.

    >>> uncased(exact)("Chronic Pain")
    'chronic pain'
    """
    return lambda text: rule(text).lower()


RULES: Final[dict[str, Callable[[str], str]]] = {"exact": exact, "biolama": biolama}


def rule(name: str) -> Callable[[str], str]:
    """The rule of this name. Raises BadInput where there is none."""
    if name not in RULES:
        raise BadInput("answers", f"no rule '{name}'{nearest(name, [*RULES])}")
    return RULES[name]


def with_hits(predictions: pd.DataFrame, tables: BenchmarkTables) -> pd.DataFrame:
    """Add `prediction_id` and `hit`, as far as the method did not say them itself: a hit equals one
    of the query's answers by the benchmark's rule."""
    if "prediction_id" not in predictions:
        ids = dict(zip(tables.candidates["name"], tables.candidates["id"], strict=True))
        names = predictions["prediction"]
        predictions = predictions.assign(prediction_id=[ids.get(name, "") for name in names])
    if "hit" in predictions:
        return predictions
    normalise = rule(tables.normalise)
    right = {
        row.query_id: {normalise(answer) for answer in row.answers}
        for row in tables.queries.itertuples()
    }
    hits = [
        normalise(name) in right[query]
        for query, name in zip(predictions["query_id"], predictions["prediction"], strict=True)
    ]
    return predictions.assign(hit=hits)
