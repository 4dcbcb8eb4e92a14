"""The one kind of error a user is meant to read, and what of the data it may quote."""

import copyreg
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

# May errors quote text of the data? Of the command line's only where `track.text` says so.
text: Final[ContextVar[bool]] = ContextVar("text", default=True)


class BadInput(Exception):
    """Input that cannot be used: says where, what was expected, and what to do, in one line.

    The command line prints it as it is and exits with status 2.

    >>> raise BadInput("MRREL.RRF, line 7", "15 fields, expected 16", "fetch the file anew")
    Traceback (most recent call last):
    ...
    medprobe.core.errors.BadInput: MRREL.RRF, line 7: 15 fields, expected 16; fetch the file anew
    """

    def __init__(self, where: object, problem: str, remedy: str = "") -> None:
        line = f"{where}: {problem}" + (f"; {remedy}" if remedy else "")
        super().__init__(" ".join(line.split()))

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def quoted(value: object) -> str:
    """Text of the data in an error: as it is, or, where it may be licensed, its length.

    >>> with withheld():
    ...     quoted("fever"), quoted(None)
    ('a text of 5 characters', 'a NoneType')
    """
    if text.get():
        return repr(value)
    return f"a text of {len(value)} characters" if isinstance(value, str) else _kind(value)


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


@contextmanager
def withheld() -> Iterator[None]:
    """Within the block errors quote no text of the data, unless `text` is set again."""
    token = text.set(False)
    try:
        yield
    finally:
        text.reset(token)


def nearest(word: str, known: list[str]) -> str:
    """` (did you mean 'x'?)` for the known word nearest to a mistyped one, or nothing.

    >>> nearest("relatons", ["relations", "seed"])
    " (did you mean 'relations'?)"
    """
    import difflib

    found = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean '{found[0]}'?)" if found else ""
