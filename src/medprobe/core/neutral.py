"""A benchmark's prompts without their subjects.

What a model answers then is its prior of the relation. What it answers beyond that, it has from the
subject (content-free inputs: Zhao et al. 2021; prompts without their subject: Cao et al. 2021).
"""

import re
from dataclasses import replace
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, quoted
from medprobe.core.tables import SLOT, BenchmarkTables

VARIANT: Final = "neutral"


def twin(tables: BenchmarkTables) -> BenchmarkTables:
    """The benchmark without the subjects in its prompts; its answers and candidates stay.

    Raises:
        BadInput: A prompt does not hold its subject.
    """
    columns = (tables.queries[name] for name in ("query_id", "prompt", "subject"))
    prompts = [prompt(*row) for row in zip(*columns, strict=True)]
    return replace(tables, queries=tables.queries.assign(prompt=prompts))


def prompt(query: str, text: str, subject: str) -> str:
    """A prompt without its subject: taken out as whole words, or wherever it stands.

    Raises:
        BadInput: The prompt does not hold its subject.

    >>> prompt("q1", "Pain may follow a painful [Y] .", "Pain")
    'may follow a painful [Y] .'
    """
    parts = text.split(SLOT)
    if not subject or not any(subject in part for part in parts):
        problem = f"the prompt does not hold its subject {quoted(subject)}"
        raise BadInput(f"query {query}", problem, "leave neutral out of the benchmark's settings")
    literal = re.escape(subject)
    whole = rf"(?<!\w){literal}(?!\w)"
    name = whole if any(re.search(whole, part) for part in parts) else literal
    rest = SLOT.join(re.sub(name, "", part) for part in parts)
    return " ".join(rest.split())


def renamed(predictions: pd.DataFrame) -> pd.DataFrame:
    """The predictions for a twin, their variants named as those of a control.

    >>> renamed(pd.DataFrame({"variant": ["", "step-50"]}))["variant"].tolist()
    ['neutral', 'neutral-step-50']
    """
    names = [f"{VARIANT}-{name}" if name else VARIANT for name in predictions["variant"]]
    return predictions.assign(variant=names)


def control(variant: str) -> bool:
    """Is a variant the answers to neutral prompts?

    >>> control("neutral-relation"), control("relation")
    (True, False)
    """
    return variant.partition("-")[0] == VARIANT


def original(variant: str) -> str:
    """The variant that a neutral one is the control of.

    >>> original("neutral"), original("neutral-relation")
    ('', 'relation')
    """
    return variant.partition("-")[2]
