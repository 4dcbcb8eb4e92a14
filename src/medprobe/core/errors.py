"""`BadInput`, the one kind of error that users read, and the rule for quoting data in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from medprobe.core.dvc_records import stage_of

# May errors quote text of the data? On the command line only if `track.text` is true. This is a
# context variable, since the readers that raise errors are far below the command that knows the
# answer: as an argument it would pass through each reader, builder, validator and worker between.
quoting: Final[ContextVar[bool]] = ContextVar("quoting", default=True)
MEMORY_REFUSED: Final = (
    *("out of memory", "can't allocate memory"),
    *("Cannot allocate memory", "failed to map segment"),
)
LONGEST: Final = 1_000  # characters of a problem: foreign files can hold much


class BadInput(Exception):  # noqa: N818 - a name that messages and documents use
    """Input that cannot be used. Its one line says where, what is wrong, and what to do.

    The command line prints the line and exits with status 2.

    Args:
        where: The file with its row, the field, the option or the model.
        problem: What was found and what was expected.
        remedy: What the user can do about it, if that is known.

    >>> raise BadInput("MRREL.RRF, line 7", "15 fields, expected 16", "fetch the file again")
    Traceback (most recent call last):
    ...
    medprobe.core.errors.BadInput: MRREL.RRF, line 7: 15 fields, expected 16; fetch the file again
    """

    def __init__(self, where: object, problem: str, remedy: str = "") -> None:
        if len(problem) > LONGEST:
            problem = f"{problem[:LONGEST]}…"
        line = f"{where}: {problem}" + (f"; {remedy}" if remedy else "")
        line = " ".join(line.split())
        super().__init__("".join(c if c.isprintable() else "\ufffd" for c in line))

    def __reduce__(self) -> Any:
        return Exception.__new__, (type(self), *self.args), self.__dict__  # without `__init__`


class NotAsked(BadInput):
    """A model that cannot be asked by a method on a benchmark; other results are not concerned."""


def quote(value: object) -> str:
    """Return a text of the data for an error: in quotes, or its length where it may be licensed.

    >>> with without_quotes():
    ...     quote("fever"), quote(None)
    ('a text of 5 characters', 'a NoneType')
    """
    if quoting.get():
        return repr(value)
    if isinstance(value, str):
        return f"a text of {len(value)} characters"
    return f"a {type(value).__name__}"


@contextmanager
def without_quotes() -> Iterator[None]:
    """Quote no text of the data in errors within the block, unless `quoting` is set again."""
    token = quoting.set(False)
    try:
        yield
    finally:
        quoting.reset(token)


def nearest(word: str, words: list[str]) -> str:
    """Return ` (did you mean 'x'?)` for the word of a list nearest to a mistyped one, or "".

    Case does not matter.

    >>> nearest("relatons", ["relations", "seed"]), nearest("ROW_ID", ["row_id"])
    (" (did you mean 'relations'?)", " (did you mean 'row_id'?)")
    """
    import difflib

    spellings = {spelling.casefold(): spelling for spelling in words}
    matches = difflib.get_close_matches(word.casefold(), spellings, n=1)
    return f" (did you mean '{spellings[matches[0]]}'?)" if matches else ""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports that a machine or device refused memory.

    Libraries word it differently.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory.")), is_out_of_memory(ValueError("7"))
    (True, False)
    """
    return isinstance(error, MemoryError) or any(words in str(error) for words in MEMORY_REFUSED)


def unusable(path: Path, problem: str) -> BadInput:
    """Return the error for an output that is missing or damaged: it names the stage to run."""
    command = " ".join(filter(None, ["dvc repro", stage_of(path)]))
    return BadInput(path, problem, f"run `{command}` to make it again")
