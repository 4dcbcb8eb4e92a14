"""LIPID.json as released, from which the builder `lipid_released` builds."""

from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.template_free.benchmarks import lipid_released
from medprobe.sources.releases import Release, folders

BRINGS = "lipid"

NAME = "LIPID.json"
PAPER = {"chem": (46827, 1870), "gene": (41839, 2591)}  # prompts and entities


def find(path: Path) -> Release:
    """Find the file itself, or the file of that name below a folder.

    The report compares the numbers of prompts and entities with the paper's.
    """
    files = [path] if path.is_file() else [folder / NAME for folder in folders(path, NAME)]
    if len(files) != 1:
        raise BadInput(path, f"contains {len(files)} files {NAME}", "give the file")
    rows = pd.DataFrame([row.model_dump() for row in lipid_released.read(files[0])])
    report = rows.groupby("kind").agg(prompts=("prompt", "size"), entities=("entity", "nunique"))
    expected = pd.DataFrame(PAPER, index=["prompts_paper", "entities_paper"]).T
    report = report.join(expected, how="outer").fillna(0).astype(int)
    missing = [
        f"{row.prompts_paper - row.prompts} prompts of {row.Index}"
        for row in report.itertuples()
        if row.prompts < row.prompts_paper
    ]
    return Release(
        folder="lipid",
        files={NAME: files[0]},
        checks="every prompt: a mask, an entity, a kind",
        report=report.rename_axis("subset").reset_index(),
        next_step="name a benchmark of the builder lipid_released in params.yaml",
        missing=missing,
    )
