"""What a run in MLflow shows of the rewirings that its method probed."""

import pandas as pd
import pyarrow.parquet as pq

from medprobe.papers.medlama.checkpoints import LOSSES, REWIRED
from medprobe.report.sections import Section, SingleResult, Steps


def find_rewirings(result: SingleResult) -> list[str]:
    """The rewirings of the model that the method probed: on its sets, and of its sweeps."""
    if result.method != "contrastive":
        return []
    replicates = pq.read_table(result.path, columns=["replicate"])["replicate"]
    sets = sorted({*replicates.unique().to_pylist()} - {""})
    start = f"{result.method}.sweeps."
    swept = [name.removeprefix(start) for name in result.settings if name.startswith(start)]
    cells = [f"{name}+{cell.replace('.', '-', 1)}" for name in sets for cell in swept]
    return [*sets, *(cell for cell in cells if (REWIRED / result.model / cell).is_dir())]


def inputs(result: SingleResult) -> list[str]:
    """The folders of their checkpoints."""
    return [f"{REWIRED}/{result.model}/{name}" for name in find_rewirings(result)]


def losses(result: SingleResult) -> dict[str, Steps]:
    """Their losses by step, a series per sentence set."""
    series = {}
    for name in find_rewirings(result):
        if (file := LOSSES / result.model / f"{name}.csv").is_file():
            table = pd.read_csv(file)
            steps = zip(table["step"].tolist(), table["loss"].tolist(), strict=True)
            series[f"rewiring loss/{name}"] = list(steps)
    return series


SECTION = Section(170, inputs=inputs, series=losses)
