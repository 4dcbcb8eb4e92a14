"""When is a predicted text an answer? Benchmarks choose one of these rules by its name."""

import re
import string
from collections.abc import Callable
from typing import Final

from medprobe.core.errors import BadInput, nearest


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


RULES: Final[dict[str, Callable[[str], str]]] = {"exact": exact, "biolama": biolama}


def rule(name: str) -> Callable[[str], str]:
    """The rule of this name. Raises BadInput where there is none."""
    if name not in RULES:
        raise BadInput("answers", f"no rule '{name}'{nearest(name, [*RULES])}")
    return RULES[name]
