"""Sentence sets: text files with one sentence a line."""

from pathlib import Path

from medprobe.core.errors import BadInput, nearest
from medprobe.sources.records import lines


def read_sentences(path: Path) -> dict[int, str]:
    """The sentences of a set by their lines' numbers, blanks at their ends kept, blank lines left
    out. Raises BadInput where the file is missing or not UTF-8."""
    if not path.is_file():
        names = sorted(file.stem for file in path.parent.glob("*.txt"))
        known = f"there are: {', '.join(names)}" if names else "put one sentence a line there"
        raise BadInput(path, f"no such sentence set{nearest(path.stem, names)}", known)
    return read_lines(path)


def read_lines(path: Path) -> dict[int, str]:
    """The lines of a text that are not blank, by their numbers. Raises BadInput for bad UTF-8."""
    found = enumerate(lines(path, "put one sentence a line there"), 1)
    return {number: line.removesuffix("\n") for number, (_, line) in found if line.strip()}
