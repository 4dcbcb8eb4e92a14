"""DisKnE's released annotation files, from which the builder `diskne_released` builds."""

from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.papers.diskne.annotation import oddities, read_released
from medprobe.sources.releases import Release

BRINGS = "diskne/DisknE_*_annotation.csv"

FILES = "DisknE_*_annotation.csv"
ALL = [
    FILES.replace("*", f"{hypotheses}_{negatives}")
    for hypotheses in ("medical", "terminological")
    for negatives in ("similar", "random")
]


def find(path: Path) -> Release:
    """Find all annotation files at or below a folder, and read every row.

    The report counts rows by file, category and label, and the odd ones among them
    (`annotation.oddities`). Other released files in the target folder stay; a sheet filled
    in by hand would mix with the files.
    """
    files = sorted(path.rglob(FILES))
    if not files:
        raise BadInput(path, f"no {FILES}", "give the released files' folder")
    if len({file.name for file in files}) < len(files):
        raise BadInput(path, "contains a file twice", "give the folder of one copy")
    tables = [read_released(file).assign(file=file.stem) for file in files]
    rows = pd.concat([table.assign(rows=1).join(oddities(table)) for table in tables])
    columns = ["rows", "twice", "alone", "by_premise"]
    report = rows.groupby(["file", "category", "label"])[columns].sum().reset_index()
    missing = [name for name in ALL if name not in {file.name for file in files}]
    return Release(
        folder="diskne",
        files={file.name: file for file in files},
        checks="every row: its identifiers, label, category and place",
        report=report,
        next_step="name a benchmark of the builder diskne_released in params.yaml, "
        "which reads MedNLI, MEDIQA-NLI and the UMLS too",
        missing=[f"{name}, unless it is in data/diskne already" for name in missing],
        conflicts=("annotation.csv",),
    )
