"""The drawings of one benchmark's rows of the comparison.

The rows are of one result or of all; `metrics/results.py` has their columns.

`plots.py` has the kinds of drawings. Each other file has one drawing and the table that it needs.
"""

from pathlib import Path

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.extensions.chat import reliability
from medprobe.papers.context import drawings as ucm
from medprobe.papers.context import trajectory
from medprobe.papers.diskne import losses
from medprobe.papers.medlama import sweep_drawings as sweeps
from medprobe.report.figures import relations


def of_result(
    rows: pd.DataFrame, metadata: Metadata, path: Path, folder: Path, *, names: bool
) -> dict[str, str]:
    """Draw the figures of one result, `figures/<name>.svg` -> SVG.

    They are drawn from its rows of the comparison, its prediction table at `path` with the notes
    in the same folder, and its benchmark's folder.

    `names`: entities go by their names, which may be licensed, not by their identifiers.
    """
    if rows.empty:
        return {}
    benchmark, system = path.stem, {path.parent.parent.name: path}
    ucm_rows = ucm.select_variants(rows)
    drawings = [
        *relations.draw(rows, metadata),
        *sweeps.draw(rows, metadata),
        *ucm.draw_shares(ucm_rows),
        *ucm.draw_accuracy(ucm_rows),
        *trajectory.draw(trajectory.table(system, folder, names), benchmark),
        *losses.draw(losses.table(system), benchmark),
        *reliability.draw(reliability.table(system), benchmark),
    ]
    return {f"figures/{drawing.file}": drawing.svg for drawing in drawings}
