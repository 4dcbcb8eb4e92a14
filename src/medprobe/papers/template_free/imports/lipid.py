"""LIPID.json as released."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="lipid",
    files=("LIPID.json",),
    next_step="name a benchmark of the builder lipid_released in params.yaml",
)
