"""A benchmark's prompts without their subjects, the neutral control.

A model's answers to these prompts are its prior of the relation. What it answers beyond the prior,
it has from the subject.

Sources: content-free inputs, Zhao et al. 2021; prompts without their subject, Cao et al. 2021.
"""

import re
from dataclasses import replace
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, quote
from medprobe.core.tables import SLOT, BenchmarkTables

VARIANT: Final = "neutral"


def neutral_tables(tables: BenchmarkTables) -> BenchmarkTables:
    """Return the benchmark with the subjects removed from its prompts; answers and candidates stay.

    Raises:
        BadInput: A prompt does not contain its subject.
    """
    columns = (tables.queries[name] for name in ("query_id", "prompt", "subject"))
    prompts = [neutral_prompt(*row) for row in zip(*columns, strict=True)]
    return replace(tables, queries=tables.queries.assign(prompt=prompts))


def neutral_prompt(query: str, text: str, subject: str) -> str:
    """Remove the subject from a prompt: as whole words, or wherever it occurs if never as such.

    Args:
        query: The query's id, for errors.
        text: The prompt, with one slot.
        subject: The text to remove.

    Raises:
        BadInput: The prompt does not contain its subject.

    >>> neutral_prompt("q1", "Pain may follow a painful [Y] .", "Pain")
    'may follow a painful [Y] .'
    """
    parts = text.split(SLOT)
    if not subject or not any(subject in part for part in parts):
        problem = f"the prompt does not hold its subject {quote(subject)}"
        raise BadInput(f"query {query}", problem, "leave neutral out of the benchmark's settings")
    literal = re.escape(subject)
    whole_word = rf"(?<!\w){literal}(?!\w)"
    name = whole_word if any(re.search(whole_word, part) for part in parts) else literal
    text_left = SLOT.join(re.sub(name, "", part) for part in parts)
    return " ".join(text_left.split())


def as_control(predictions: pd.DataFrame) -> pd.DataFrame:
    """Rename the variants of predictions for neutral prompts to those of a control.

    >>> as_control(pd.DataFrame({"variant": ["", "step-50"]}))["variant"].tolist()
    ['neutral', 'neutral-step-50']
    """
    names = [f"{VARIANT}-{name}" if name else VARIANT for name in predictions["variant"]]
    return predictions.assign(variant=names)


def is_control(variant: str) -> bool:
    """Return whether a variant holds the answers to neutral prompts.

    >>> is_control("neutral-relation"), is_control("relation")
    (True, False)
    """
    return variant.partition("-")[0] == VARIANT


def original_variant(variant: str) -> str:
    """Return the variant that a neutral one is the control of.

    >>> original_variant("neutral"), original_variant("neutral-relation")
    ('', 'relation')
    """
    return variant.partition("-")[2]
