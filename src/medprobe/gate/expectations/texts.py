"""Sentences and prompts that are none, and what stands around most texts of a column."""

import re
from typing import Final

import pandas as pd

from medprobe.core.tables import SLOT
from medprobe.gate.checks import row_check, says, value_check
from medprobe.gate.damage import find_fault, find_frames
from medprobe.gate.expectations.tables import SUBJECT

TOUCHED: Final = re.compile(
    rf"[^\W\d_](?:{re.escape(SUBJECT)}|{re.escape(SLOT)})"
    rf"|(?:{re.escape(SUBJECT)}|{re.escape(SLOT)})[^\W\d_]"
)


@value_check
@says(lambda kwargs, row: find_fault(row[kwargs["column"]], is_sentence=True))
def expect_texts_to_be_sentences(texts: pd.Series) -> list[bool]:
    """No text is damaged, or a line of another format than sentences."""
    return [not find_fault(text, is_sentence=True) for text in texts]


@value_check
@says("most texts have the same marks around them")
def expect_texts_to_have_no_frame(texts: pd.Series, share: float) -> list[bool]:
    """No more than this share of the texts have the same marks around them or between their words.

    Such are quotation marks, numbers, labels, brackets with the kind of a concept, and columns.
    """
    return [not frames for frames in find_frames(texts, share)]


@row_check
@says("a letter touches a slot")
def expect_slots_to_stand_alone(rows: pd.DataFrame) -> list[bool]:
    """No letter touches the slot or the subject. Columns `subject, prompt`."""
    return [
        not TOUCHED.search(prompt.replace(subject, SUBJECT, 1) if subject else prompt)
        for subject, prompt in rows.itertuples(index=False, name=None)
    ]
