"""Perplexity of filled prompts: how strange a model finds the sentences that it is probed with.

exp of the negative mean log-probability of a sentence's tokens. Each token is predicted from what
stands before it by causal models (Jurafsky and Martin, ch. 3), from all the rest by masked ones
(pseudo-perplexity: Salazar et al. 2020, section 2). A data set's value is the mean over its
prompts (Shaier et al., section 5.5).
"""

import math
from typing import Final

import pandas as pd

from medprobe.metrics.accuracy import KEYS

COLUMN: Final = "perplexity"  # a prediction table with this column holds perplexities, not ranks


def perplexity(log_probs: list[float]) -> float:
    """exp(-mean) of the log-probabilities of a sentence's tokens.

    >>> perplexity([math.log(0.5), math.log(0.125)])
    4.0
    """
    return math.exp(-sum(log_probs) / len(log_probs))


def values(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, replicate and query: `variant, replicate, query_id, subset, relation` and
    `perplexity`, as accuracy's table."""
    places = queries[["query_id", "subset", "relation"]]
    table = predictions[[*KEYS, COLUMN]].merge(places, on="query_id", validate="many_to_one")
    return table[[*KEYS, "subset", "relation", COLUMN]]
