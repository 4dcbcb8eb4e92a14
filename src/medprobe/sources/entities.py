"""Entity lists: a text file with one name a line, or the mentions of CHEMDNER annotations.

A list may hold no name twice. Names of up to three characters are told apart by case ("CAT" and
"cat"), longer ones are not.
"""

from collections import Counter
from pathlib import Path

from medprobe.core.errors import BadInput, quoted

CASE_MATTERS_UP_TO = 3  # characters of a name
CHEMDNER_FIELDS = 6  # PMID, T or A, start, end, mention, type


def key(name: str) -> str:
    """What two names of one list may not share.

    >>> key("Aspirin") == key("aspirin"), key("CAT") == key("cat")
    (True, False)
    """
    return name if len(name) <= CASE_MATTERS_UP_TO else name.casefold()


def read_names(path: Path) -> list[str]:
    """The names of an entity list, in its order. Blank lines are passed over.

    A file called `*.annotations.txt` is read as CHEMDNER's annotations: its distinct mentions,
    each in its most frequent spelling. Raises BadInput for a missing or empty list and, with both
    lines, for a name that stands twice in a list.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except FileNotFoundError:
        raise BadInput(path, "no such file", "put a list there, one name a line") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    annotations = path.name.endswith(".annotations.txt")
    names = _chemdner(lines, path) if annotations else _plain(lines, path)
    if not names:
        raise BadInput(path, "no name in it", "expected an entity list, one name a line")
    return names


def _plain(lines: list[str], path: Path) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for number, line in enumerate(lines, start=1):
        if not (name := line.strip()):
            continue
        if (first := seen.setdefault(key(name), number)) != number:
            raise BadInput(
                f"{path}, line {number}", f"{quoted(name)} is on line {first} too", "drop one"
            )
        names.append(name)
    return names


def _chemdner(lines: list[str], path: Path) -> list[str]:
    spellings: dict[str, Counter[str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        if len(fields) != CHEMDNER_FIELDS:
            raise BadInput(
                f"{path}, line {number}", f"{len(fields)} fields, expected {CHEMDNER_FIELDS}"
            )
        if name := fields[4].strip():
            spellings.setdefault(key(name), Counter())[name] += 1
    return [
        min(counts.items(), key=lambda item: (-item[1], item[0]))[0]
        for counts in spellings.values()
    ]
