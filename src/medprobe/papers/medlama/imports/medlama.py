"""MedLAMA's relations in a clone or download; medprobe has the prompts."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="medlama",
    files=("*_[0-9]*.csv",),
    next_step="name a benchmark of the builder medlama_released in params.yaml",
)
