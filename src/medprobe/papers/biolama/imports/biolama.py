"""BioLAMA's unpacked data; its UMLS triples need a licence and BioLAMA's own script."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="biolama",
    files=("*/triples_processed/*/*.jsonl", "*/prompts/manual.jsonl"),
    next_step="name a benchmark of the builder biolama in params.yaml, with the sources you have",
)
