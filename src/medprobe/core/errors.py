"""The one kind of error a user is meant to read."""


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


def nearest(word: str, known: list[str]) -> str:
    """` (did you mean 'x'?)` for the known word nearest to a mistyped one, or nothing.

    >>> nearest("relatons", ["relations", "seed"])
    " (did you mean 'relations'?)"
    """
    import difflib

    found = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean '{found[0]}'?)" if found else ""
