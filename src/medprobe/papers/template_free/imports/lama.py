"""LAMA's unpacked data."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="lama",
    files=(
        "Google_RE/*.jsonl",
        "TREx/*.jsonl",
        "ConceptNet/*.jsonl",
        "Squad/*.jsonl",
        "relations.jsonl",
    ),
    next_step="name a benchmark of the builder lama in params.yaml, with the sets you have",
)
