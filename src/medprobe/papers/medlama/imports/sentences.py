"""Released sentence sets for rewiring: text files with one sentence per line, `.txt` or not."""

import re
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.medlama.sentences import read_sentences
from medprobe.sources.releases import Release, folders

BRINGS = "sentences"

LINES = 10_000  # of a set of the paper
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def find(path: Path) -> Release:
    """Find a file, or all sets of a folder, which are `*sents*` in a clone.

    The report counts sentences, distinct sentences, and words per sentence.
    """
    files = [path] if path.is_file() else _sets(path)
    rows, small = [], []
    for file in files:
        if not NAME.fullmatch(file.stem):
            raise BadInput(file, "a set's name is letters, digits, _ and -", "rename the file")
        lines = read_sentences(file)
        sentences = [line for line in lines if line]
        if not sentences:
            raise BadInput(file, "contains no sentence", "give a text with one sentence per line")
        small += [file.stem] * (len(lines) < LINES)
        words = sum(len(text.split()) for text in sentences) / len(sentences)
        rows.append((file.stem, len(sentences), len(set(sentences)), round(words, 1)))
    report = pd.DataFrame(rows, columns=["set", "sentences", "distinct", "words"])
    entries = ", ".join(f"{name}: {{}}" for name in report["set"])
    return Release(
        folder="sentences",
        files={f"{file.stem}.txt": file for file in files},
        checks="UTF-8, one sentence per line",
        report=report,
        next_step=f"list them in params.yaml, sentence_sets: {{{entries}}}",
        missing=[f"{name} has fewer than the paper's 10,000 lines" for name in small],
    )


def _sets(folder: Path) -> list[Path]:
    """The sets of a folder: files `*sents*` at any depth, otherwise its text files."""
    texts = [file for file in folder.iterdir() if file.is_file() and file.suffix in ("", ".txt")]
    sets = [file for place in folders(folder, "*sents*") for file in place.glob("*sents*")]
    files = [file for file in sets or texts if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise BadInput(folder, "contains no text file", "give a file with one sentence per line")
    if len({file.stem for file in files}) < len(files):
        raise BadInput(folder, "contains two sets of one name", "give one folder or file")
    return sorted(files)
