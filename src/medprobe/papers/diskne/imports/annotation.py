"""DisKnE's released annotation."""

from typing import Final

from medprobe.sources.releases import Release

RELEASE: Final = Release(
    folder="diskne",
    files=("DisknE_*_annotation.csv",),
    next_step="name a benchmark of the builder diskne_released in params.yaml, "
    "which reads MedNLI, MEDIQA-NLI and the UMLS too",
)
