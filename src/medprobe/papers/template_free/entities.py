"""Entity lists: a text file with one name per line, or the mentions of CHEMDNER annotations.

A list has names and nothing else: no columns, no header. It may hold no name twice. Names of up to
three characters are told apart by case ("CAT" and "cat"), longer ones are not.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import Field

from medprobe.core.errors import BadInput, quote
from medprobe.core.looks import NO_VALUE, find_fault
from medprobe.core.settings import Section
from medprobe.sources.records import Count, Name, Record, read_lines, validate

TOO_LONG: Final = "too_long"  # the rule's name


class SentenceSettings(Section):
    """Settings of every builder whose prompts are sentences of other people's text."""

    max_words: int | None = Field(None, gt=0)
    """The most words of a sentence. A longer one is no query, and is counted as `too_long`. Empty:
    no limit; of a sentence longer than its window, a model reads the words around the gap."""


def is_too_long(text: str, max_words: int | None) -> bool:
    """Return whether a sentence has more words, separated by blanks, than allowed.

    >>> is_too_long("Rust is made of [Y] .", 5), is_too_long("Rust is made of [Y] .", None)
    (True, False)
    """
    return max_words is not None and len(text.split()) > max_words


CASE_MATTERS_UP_TO: Final = 3  # characters of a name
GET: Final = "put a list there, one name per line"
ALONE: Final = "expected one name, and nothing else, per line"
HEADERS: Final = re.compile(
    r"(?:\w+[_ ])?(?:entity|entities|labels?|mentions?|names?|terms?)|(?:chemical|disease|drug)s?"
)


class ListedEntity(Record):
    """A line of a list."""

    name: Name


class Annotation(Record):
    """A line of CHEMDNER's annotations, where tabs separate and nothing quotes."""

    pmid: Name
    part: Name  # T, the title, or A, the abstract
    start: Count
    end: Count
    mention: Name
    type: Name


def key(name: str) -> str:
    """What two names of one list may not share.

    >>> key("Aspirin") == key("aspirin"), key("CAT") == key("cat")
    (True, False)
    """
    return name if len(name) <= CASE_MATTERS_UP_TO else name.casefold()


def read_names(path: Path) -> list[str]:
    """Read the names of an entity list, in its order. Blank lines are skipped.

    A file called `*.annotations.txt` is read as CHEMDNER's annotations: its distinct mentions,
    each in its most frequent spelling.
    """
    names = _chemdner(path) if path.name.endswith(".annotations.txt") else _plain(path)
    if not names:
        raise BadInput(path, "contains no names", "expected an entity list, one name per line")
    return names


def _plain(path: Path) -> list[str]:
    first_places: dict[str, str] = {}
    names: list[str] = []
    for where, line in _nonblank_lines(path):
        if "\t" in line.strip() or "\r" in line.strip():
            raise BadInput(where, "a tab or a line end of another system within the line", ALONE)
        name = validate(where, {"name": line.strip()}, ListedEntity, "correct the line").name
        if find_fault(name) == NO_VALUE:
            raise BadInput(where, f"{quote(name)} is no name: {NO_VALUE}", ALONE)
        if not names and HEADERS.fullmatch(name.casefold().rstrip(":")):
            raise BadInput(where, f"{quote(name)} is no name: a header", ALONE)
        if (first_place := first_places.setdefault(key(name), where)) != where:
            number = first_place.rpartition(" ")[2]
            raise BadInput(where, f"{quote(name)} is also on line {number}", "drop one")
        names.append(name)
    if len(names) == 1 and re.search(r"[,;].+[,;]", names[0]):
        raise BadInput(path, "one line with several names", ALONE)
    return names


def _chemdner(path: Path) -> list[str]:
    spellings: dict[str, Counter[str]] = {}
    columns = list(Annotation.model_fields)
    for where, line in _nonblank_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != len(columns):
            raise BadInput(where, f"{len(fields)} fields, expected {len(columns)}")
        name = validate(where, dict(zip(columns, fields, strict=True)), Annotation).mention
        spellings.setdefault(key(name), Counter())[name] += 1
    return [
        min(counts.items(), key=lambda item: (-item[1], item[0]))[0]
        for counts in spellings.values()
    ]


def _nonblank_lines(path: Path) -> Iterator[tuple[str, str]]:
    return ((where, line) for where, line in read_lines(path, GET) if line.strip())
