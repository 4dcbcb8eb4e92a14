"""Sentence sets for rewiring, one sentence per line: MedLAMA's, or texts of yours."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="sentences",
    files=("*sents*", "*.txt"),
    suffix=".txt",
    next_step="list them in params.yaml under sentence_sets",
)
