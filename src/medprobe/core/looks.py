"""What is wrong with how a text looks, in words: a name, a prompt, or a sentence of a set.

`ftfy` judges damaged text, a list of missing values what is no value, and Unicode's categories what
nobody sees. Some real names look odd, so that nothing stops at them.
"""

import re
import unicodedata
from functools import cache
from typing import Final
from urllib.parse import unquote

import ftfy

NO_VALUE: Final = "no value"
UNSEEN: Final = "an unseen character"
STEPS: Final = {  # of ftfy, where it is none of an encoding
    "unescape_html": "markup",
    "remove_terminal_escapes": UNSEEN,
    "remove_control_chars": UNSEEN,
    "fix_latin_ligatures": "a character of print",
    "fix_character_width": "a character of print",
}
ALL_STEPS: Final = ftfy.TextFixerConfig(
    unescape_html=True, uncurl_quotes=False, fix_line_breaks=False, normalization=None
)
MISSING: Final = {  # what pandas and spreadsheets write for it; without NA, which is sodium
    *("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>"),
    *("n/a", "nan", "none", "null", "#ref!", "#value!", "#name?", "#div/0!", "#num!", "#null!"),
}
NO_NAMES: Final = {  # a fault → cells that spreadsheets and exports make of names
    fault: re.compile(pattern)
    for fault, pattern in {
        "a date": r"\d{1,2}-[A-Z][a-z]{2}(-\d{2,4})?|[A-Z][a-z]{2}-\d{2}"  # SEPT9, of a spreadsheet
        r"|\d{4}-\d\d-\d\d([ T][\d:.]+)?|\d{1,2}([/.])\d{1,2}\3\d{2,4}",
        "a number": r"\d{5,}",  # that stands for a day, too
        "several names in one": r"[^(\[]*[;|][^(\[]*",  # and not t(9;22)(q34;q11)
        "a formula": r"=.+",
        "markup": r".*</?[A-Za-z]{1,6}\d?\s*/?>.*",
        "a character that was lost": r".*[^\W\d_]\?[^\W\d_].*",
    }.items()
}


@cache
def find_fault(text: str, *, is_name: bool = False) -> str:
    """Return what is wrong with how a text looks, or an empty text.

    >>> find_fault("BjÃ¶rk syndrome"), find_fault("nan"), find_fault("gout; fever", is_name=True)
    ('text in another encoding', 'no value', 'several names in one')
    """
    if not any(map(str.isalnum, text)) or text.strip().casefold() in MISSING:
        return NO_VALUE
    if steps := ftfy.fix_and_explain(text, ALL_STEPS).explanation:
        return STEPS.get(steps[0].parameter, "text in another encoding")
    faults = {
        UNSEEN: any(unicodedata.category(c) in ("Cc", "Cf", "Co", "Zl", "Zp") for c in text),
        "a character that was lost": "\ufffd" in text,
        "an escape of a URL": "\ufffd" not in unquote(text) != text,
    }
    found = [fault for fault, is_found in faults.items() if is_found]
    if is_name:
        found += [fault for fault, shape in NO_NAMES.items() if shape.fullmatch(text)]
    return next(iter(found), "")
