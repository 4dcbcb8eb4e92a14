"""Whether a text names a disease, told naively, for the gate.

It shares no code with the builder's search (sources/forms.py), whose mistakes it would repeat.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

NAMED, NEARLY, WITHIN = "named", "nearly named", "within a word"
SHORT: Final = 5  # letters of an abbreviation, and of a word's beginning


def plain(text: str, case: str = "lower") -> str:
    """The letters and digits of a text in lower case, with a blank between and around words."""
    words = re.findall(r"[^\W_]+", text.lower() if case == "lower" else text)
    return f" {' '.join(words)} "


def find_leaks(text: str, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Find names, pairs of a name and a CUI, in a text. Yields how, the name and the CUI.

    `named`: in whole words; an abbreviation, five capitals at most, as it stands. `nearly named`:
    all words of the name are in one sentence, by their first five letters. `within a word`: inside.

    >>> names = [("muscle atrophy", "C1"), ("AS", "C2")]
    >>> [*find_leaks("As said, atrophic muscles", names)], [*find_leaks("AS; normal", names)]
    ([('nearly named', 'muscle atrophy', 'C1')], [('named', 'AS', 'C2')])
    """
    words, stands = plain(text), plain(text, "own")
    sentences = [{word[:SHORT] for word in plain(s).split()} for s in re.split(r"[.;!?\n]", text)]
    for name, cui in names:
        form, is_short = plain(name), len(name) <= SHORT and name.isupper()
        starts = {word[:SHORT] for word in form.split()}
        if len(form) > 3 and (plain(name, "own") in stands if is_short else form in words):
            yield NAMED, name, cui
        elif len(starts) > 1 and any(starts <= sentence for sentence in sentences):
            yield NEARLY, name, cui
        elif len(form) > 4 and form.strip() in words:
            yield WITHIN, name, cui
