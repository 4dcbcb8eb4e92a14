"""The longest sentence that becomes a query.

Every model must be able to read every query, since models are compared over the same ones.
"""

from typing import Final

from pydantic import Field

from medprobe.core.settings import Section

TOO_LONG: Final = "too_long"  # the rule's name


class SentenceSettings(Section):
    """Settings of every builder whose prompts are sentences of other people's text."""

    max_words: int | None = Field(300, gt=0)
    """The most words of a sentence. A longer one is no query, and is counted as `too_long`. Models
    of 512 tokens read 300 words; choose fewer for models that read less. Empty: no limit."""


def is_too_long(text: str, max_words: int | None) -> bool:
    """Return whether a sentence has more words, separated by blanks, than allowed.

    >>> is_too_long("Rust is made of [Y] .", 5), is_too_long("Rust is made of [Y] .", None)
    (True, False)
    """
    return max_words is not None and len(text.split()) > max_words
