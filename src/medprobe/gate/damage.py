"""What is wrong with how a text looks, in words: a name, a prompt, or a sentence of a set.

`ftfy` judges damaged text, pandas' list of missing values what is no value, and Unicode's
categories what nobody sees. The rest are forms that other formats give a text. Some real names have
one of these, so that nothing stops at them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final

import ftfy

ENCODING: Final = "text in another encoding"
UNSEEN: Final = "an unseen character"
PRINT: Final = "a character of print"
NO_VALUE: Final = "no value"
STEPS: Final = {  # of ftfy, where it is none of an encoding
    "unescape_html": "markup",
    "remove_terminal_escapes": UNSEEN,
    "remove_control_chars": UNSEEN,
    "fix_latin_ligatures": PRINT,
    "fix_character_width": PRINT,
}
ALL_STEPS: Final = ftfy.TextFixerConfig(
    unescape_html=True, uncurl_quotes=False, fix_line_breaks=False, normalization=None
)
CODE_PAGES: Final = (  # that ftfy tries only where a text looks bad, or never
    *("cp437", "cp850", "cp852", "cp866", "cp1250", "cp1251", "cp1253", "cp1257", "koi8-r"),
    *("cp775", "cp1255", "cp1256", "iso8859-2", "iso8859-15", "mac-roman", "mac-latin2"),
)
EUROPEAN: Final = re.compile("[\u00a0-\u017f\u0300-\u045f\u1e00-\u22ff\ufb00-\ufb06]+")
FOREIGN: Final = re.compile(r"[^\x00-\x7f]{2,}")
PRINTED: Final = re.compile("<(?:circle|compat|final|font|initial|isolated|medial|square)>")
TYPED: Final = "µ…℃№″‴"  # which Unicode calls compatible with others
WORDS_FOR_NO_VALUE: Final = {  # first those that pandas reads as missing, without NA: sodium
    *("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>"),
    *("n/a", "nan", "none", "null"),
    *("-1", "-9", "-99", "-999", "-inf", "blank", "empty", "false", "fixme", "grand total"),
    *("missing", "n / a", "n.a.", "n.d.", "nil", "no data", "no value", "not applicable"),
    *("not available", "not determined", "not found", "not known", "not reported", "not specified"),
    *("placeholder", "subtotal", "tbd", "to be determined", "to do", "todo", "total", "true"),
    *("undefined", "unknown", "unspecified"),
}
LOOKALIKE: Final = "[\u0400-\u04ffΑΒΕΖΗΙΚΜΝΟΡΤΥΧο]"  # Cyrillic, and Greek that looks Latin
LETTER: Final = "[A-Za-zÀ-ÖØ-öø-ž]"
NAMES_NOTHING: Final = {  # the form of a whole text that names nothing, and what made it
    "a formula or an error of a spreadsheet": r"=.*|#\S*[!?]|#{2,}|Err:\d+",
    "the notation of a program": (
        r"[\[{].*[\]}]|[\w.]+\(\s*(?:[\[{'\"].*|\w+=.*)\)|\((['\"]).*\1.*\)|\w?(['\"]).*\2\s*,\s*\2.*"
        r"|(['\"])\w+\3\s*:.*|[bru](['\"]).*\4|.*\bdtype[:=].*|[\w.]+\(\)"
        r"|.*\^\^\S+|.*@[a-z]{2}(?:-[A-Za-z]+)?"
    ),
    "a mark before the text": r"[^\w\s(\[]+\s.*|(?:#|//|--).*|\(?\d{1,3}[.)]\s.*",
}
NO_NAME: Final = {NO_VALUE, *NAMES_NOTHING}
OF_TEXTS: Final = {
    **NAMES_NOTHING,
    "markup": (
        r".*</?[A-Za-z][\w:-]*(?:\s+[\w:-]+\s*=[^<>]*|\s*/)?>.*|<.*>"
        r"|.*(?:\[\[|\]\]|\{\{|\}\}|\]\(|\*\*|__|~~|`|(?:https?:|ftp:)//|\bwww\.).*"
    ),
    "an escape": (r".*(?:\\|[_^]\{|%[0-9A-F]{2}(?!\w)|%(?:20|2C|C3|CE|E2)|(?:=[0-9A-F]{2}){2}).*"),
    "pieces of words": (
        r".*(?:(?<!\S)##\w|▁|Ġ|\w@@(?!\S)|</w>|\[(?:CLS|SEP|PAD|UNK)\]|@[-,.]@|-[LR][RSC]B-).*"
    ),
    "a word that a line divided": (
        r".*[a-z]- (?!(?:and|or|to|nor|versus|vs|but|as|und|oder)\b)[a-z].*"
    ),
    "columns": r".*(?:\w\||\|\w|\w\s\|\s\w|\|\|).*",
    "a character that was lost": (
        rf".*(?:�|{LETTER}(?:\?|[^\w\s\x00-\x7f\u02b0-\u036f‐-―·’→]){LETTER}).*"
    ),
}
OF_NAMES: Final = {
    "several names in one": r".+[;¦•].+",
    "several blanks in a row": r".*\s\s.*",
    "a separator at an end": r"[,;:|/].*|.*[,;:|]",
    "letters of two alphabets": rf".*(?:[A-Za-z]{LOOKALIKE}|{LOOKALIKE}[A-Za-z]).*",
    "quotation marks": r"(['\"`*_~]+).*\1|[“‘«„‹].*[”’»“›]",
    "half of a pair": r"[^(]*\).*|.*\([^)]*|[^\[]*\].*|.*\[[^\]]*|['\"].*|.*\D\"|[“„«].*",
    "an identifier": (
        r"(?:[A-Za-z]+[ :_-]?)?[A-Z]{0,4}\d{5,}(?:\.\d+)?|[A-Za-z]+:\S*\d\S*|Q\d{3,}|[A-Z]\d\d\.\d+"
        r"|[a-z]+:[A-Z]\w*|(?:CAS\W*)?\d{2,7}-\d\d-\d|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}"
    ),
    "underscores for blanks": r"\S*[^\W_]_\(?[^\W_]\S*",
    "a footnote": r".*(?:\w\s?\[\d+\]|\w\s?[*†‡§¶]+|[^\W\d_]{4}[¹²³⁴-⁹]+)",
    "a date": (
        r"\d{1,2}[-. ]{1,2}[A-ZÀ-Ý][a-zà-ÿ]{2,3}(?:[-. ]+\d{2,4})?"
        r"|[A-ZÀ-Ý][a-zà-ÿ]{2,3}-\d\d(?:\d\d)?|\d{4}-\d\d-\d\d(?:[ T][\d:.]+)?"
        r"|\d\d?[./]\d\d?[./]\d{4}|\d\d?/\d\d?/\d\d"
    ),
    "a number": r"[+-]?\d+(?:[.,]\d+)?[Ee][+-]?\d+|\d+\.0",
}
OF_SENTENCES: Final = {
    "quotation marks": r"[bfru]?(['\"]).*\1,?",
    "columns": r".*(?:[^\W\d_],[^\W\d_].*){2}|.*\d,['\"A-Za-z].*",
    "tags of words": r"(?:.*\S[/_|][A-Z]{2,}){3}.*",
}
NUMBER: Final = re.compile(r"\d+")
NUMBERS: Final = {"9 …", "… 9"}
SENTENCE: Final = 5  # words of a text at whose ends "S12" and "doc3.txt" are no words
PLAIN: Final = re.compile(r"[a9](?:[a9'’.,/-]*[a9'’./-])?")  # the shape of a word
MARKS: Final = ")]}>\"'”»’|;,:*_"  # behind a word
COLUMN: Final = r"(\s*[,;|=:/]\s*|\s+[-–]\s+|\s{2,}|\t)"
FIRST_FIELD: Final = re.compile(rf"(\S+?){COLUMN}\S.*", re.DOTALL)
LAST_FIELD: Final = re.compile(rf".*\S{COLUMN}(\S+)", re.DOTALL)


def _compiled(*forms: dict[str, str]) -> list[tuple[str, re.Pattern[str]]]:
    return [(name, re.compile(form, re.DOTALL)) for part in forms for name, form in part.items()]


NAMES: Final = _compiled(OF_TEXTS, OF_NAMES)
SENTENCES: Final = _compiled(OF_TEXTS, OF_SENTENCES)


@cache
def find_fault(text: str, *, is_sentence: bool = False) -> str:
    """Return what is wrong with how a name or a sentence looks, or an empty text.

    >>> find_fault("BjÃ¶rk syndrome"), find_fault("gout;fever"), find_fault("Sepsis")
    ('text in another encoding', 'several names in one', '')
    """
    text = text.strip(" ")
    word = text.casefold()
    words = {word, word.rstrip(" :=0123456789"), word.strip("().: ")}
    if not any(map(str.isalnum, text)) or words & WORDS_FOR_NO_VALUE:
        return NO_VALUE
    forms = SENTENCES if is_sentence else NAMES
    return (
        _find_damage(text, "CZ" if not is_sentence else "C")
        or (_find_no_prose(text) if is_sentence else "")
        or next((fault for fault, form in forms if form.fullmatch(text)), "")
    )


def _find_damage(text: str, unseen: str) -> str:
    """What an encoding, a page of print or a hidden character did to a text.

    `unseen` are the first letters of the categories that no text has, the blank aside.
    """
    if steps := ftfy.fix_and_explain(text, ALL_STEPS).explanation:
        return STEPS.get(steps[0].parameter, ENCODING)
    if any(map(_is_misread, FOREIGN.findall(text))):
        return ENCODING
    if any(unicodedata.category(c)[0] in unseen and c != " " for c in text):
        return UNSEEN
    printed = (c for c in text if PRINTED.match(unicodedata.decomposition(c)) and c not in TYPED)
    return PRINT if any(printed) else ""


def _is_misread(characters: str) -> bool:
    """Return whether characters are UTF-8 that was read as an encoding of one byte a character."""
    for encoding in CODE_PAGES:
        try:
            meant = characters.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if EUROPEAN.fullmatch(meant):
            return True
    return False


def _find_no_prose(text: str) -> str:
    words = text.split()
    if all(len(word) == 1 for word in words):
        return "single letters"
    if len(words) > 2 and text.isupper():
        return "capitals alone"
    letters = sum(character.isalpha() or character.isspace() for character in text)
    return "few letters" if 2 * letters < len(text) else ""


def find_frames(texts: Iterable[str], share: float) -> list[set[str]]:
    """Return the frames of each text that more than a share of the texts have, and five at least.

    A frame is what stands around a text: what is no word at one of its ends, or a separator with a
    word of one shape. Letters are `a` and digits `9`. A number counts once for all texts that are
    equal without their numbers, since "gene 1" and "gene 2" are names.

    >>> names = [f"{name} (finding)" for name in ("gout", "flu", "fever", "pain", "rash")]
    >>> sorted(find_frames(names, 0.5)[0])
    ['… (a)', '… )']
    """
    texts = [text.strip() for text in texts]
    each = [_frames(text) for text in texts]
    counts = Counter(frame for found in each for frame in found - NUMBERS)
    for frame in NUMBERS:
        framed = (text for text, found in zip(texts, each, strict=True) if frame in found)
        counts[frame] = len({NUMBER.sub("", text) for text in framed})
    common = {frame for frame, count in counts.items() if count > max(share * len(each), 4)}
    return [found & common for found in each]


def _frames(text: str) -> set[str]:
    shape = NUMBER.sub("9", re.sub(r"[^\W\d_]+", "a", text))
    words = shape.split() or ["a"]
    first, last = words[0], words[-1].rstrip(".?!")
    is_plain = [
        bool(PLAIN.fullmatch(word))
        and (len(words) == 1 or ("a" in word and ("9" not in word or len(words) < SENTENCE)))
        for word in (first, last)
    ]
    found = set() if is_plain[0] else {f"{first} …"}
    if last and not is_plain[1]:
        found |= {f"… {last}", f"… {last[len(last.rstrip(MARKS)) :]}"} - {"… "}
    if field := FIRST_FIELD.fullmatch(shape):
        found.add(f"{field[1]} {field[2].strip()} …")
    if field := LAST_FIELD.fullmatch(shape):
        found.add(f"… {field[1].strip()} {field[2]}")
    return found
