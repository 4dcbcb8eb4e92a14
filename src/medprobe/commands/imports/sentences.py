"""Sentence sets for rewiring, as released: text files with a sentence a line, `.txt` or not."""

import re
from pathlib import Path

import pandas as pd

from medprobe.commands.imports import Found, folders
from medprobe.core.errors import BadInput
from medprobe.sources.sentences import read_numbered_lines

SENTENCES = 10_000  # of a set of the paper
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def find(path: Path) -> Found:
    """A file, or all sets of a folder; of a clone those called `*sents*`. The report counts
    sentences, different ones, and words in the mean."""
    files = [path] if path.is_file() else _sets(path)
    rows = []
    for file in files:
        if not NAME.fullmatch(file.stem):
            raise BadInput(file, "a set's name is letters, digits, _ and -", "rename the file")
        sentences = list(read_numbered_lines(file).values())
        if not sentences:
            raise BadInput(file, "no sentence in it", "give a text with a sentence a line")
        words = sum(len(text.split()) for text in sentences) / len(sentences)
        rows.append((file.stem, len(sentences), len(set(sentences)), round(words, 1)))
    report = pd.DataFrame(rows, columns=["set", "sentences", "different", "words"])
    listed = ", ".join(f"{name}: {{}}" for name in report["set"])
    short = [row.set for row in report.itertuples() if row.sentences < SENTENCES]
    return Found(
        "sentences",
        {f"{file.stem}.txt": file for file in files},
        "UTF-8, and a sentence a line",
        report,
        f"list them in params.yaml, sentence_sets: {{{listed}}}",
        [f"{name} has less than the paper's 10,000 sentences" for name in short],
    )


def _sets(folder: Path) -> list[Path]:
    """The sets of a folder: text files, or those called so anywhere below."""
    plain = [file for file in folder.iterdir() if file.is_file() and file.suffix in ("", ".txt")]
    named = [file for one in folders(folder, "*sents*") for file in one.glob("*sents*")]
    files = [file for file in named or plain if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise BadInput(folder, "no text file in it", "give a file with a sentence a line")
    if len({file.stem for file in files}) < len(files):
        raise BadInput(folder, "a set's name is there twice", "give one folder or file")
    return sorted(files)
