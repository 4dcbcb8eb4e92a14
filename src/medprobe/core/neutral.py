"""A benchmark's prompts without their subjects, the neutral control.

A model's answers to these prompts are its prior of the relation. What it answers beyond the prior,
it has from the subject.

Sources: content-free inputs, Zhao et al. 2021; prompts without their subject, Cao et al. 2021.
"""

import re
from dataclasses import replace
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT, BenchmarkTables

VARIANT: Final = "neutral"


def neutral_tables(tables: BenchmarkTables) -> BenchmarkTables:
    """Return the benchmark with the subjects removed from its prompts; answers and candidates stay.

    A query whose prompt does not contain its subject has no such control, and is left out.

    Raises:
        BadInput: No prompt contains its subject.
    """
    queries = select_controlled(tables.queries)
    if queries.empty:
        names = ", ".join(tables.queries["benchmark"].unique())
        problem = "no prompt contains its subject, so there is no neutral prompt to ask"
        raise BadInput(f"benchmark {names}", problem, "set neutral: false, or remove the setting")
    pairs = zip(queries["prompt"], queries["subject"], strict=True)
    prompts = [neutral_prompt(prompt, subject) for prompt, subject in pairs]
    return replace(tables, queries=queries.assign(prompt=prompts))


def select_controlled(queries: pd.DataFrame) -> pd.DataFrame:
    """Select the queries whose prompt contains their subject: those that have a neutral prompt."""
    pairs = zip(queries["prompt"], queries["subject"], strict=True)
    is_controlled = [holds_subject(prompt, subject) for prompt, subject in pairs]
    return queries[is_controlled].reset_index(drop=True)


def holds_subject(prompt: str, subject: str) -> bool:
    """Return whether a prompt contains its subject, as it is written.

    >>> holds_subject("He died in [Y] .", "Ada Berg"), holds_subject("Is [Y] a Y ?", "Y")
    (False, True)
    """
    return bool(subject) and any(subject in part for part in prompt.split(SLOT))


def neutral_prompt(text: str, subject: str) -> str:
    """Remove the subject from a prompt: as whole words, or wherever it occurs if never as such.

    Args:
        text: The prompt, with one slot. It contains the subject.
        subject: The text to remove.

    >>> neutral_prompt("Pain may follow a painful [Y] .", "Pain")
    'may follow a painful [Y] .'
    """
    parts = text.split(SLOT)
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
