"""The drawings: what is drawn of one benchmark's rows of the comparison (`metrics/results.py` has
its columns), whether they are of one result or of all.

`plots.py` has the kinds of drawings, each file beside it one drawing and the table it needs.
"""

from pathlib import Path

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.figures import losses, relations, reliability, sweeps, trajectory, ucm


def of_result(
    rows: pd.DataFrame, metadata: Metadata, path: Path, folder: Path, *, names: bool
) -> dict[str, str]:
    """The drawings of one result, `figures/<name>.svg` -> SVG, from its rows of the comparison, its
    prediction table at `path` with the notes beside it, and its benchmark's folder.

    `names`: entities go by their names, which may be licensed, not by their identifiers.
    """
    if rows.empty:
        return {}
    benchmark, system = path.stem, {path.parent.parent.name: path}
    asked = ucm.asked(rows)
    drawn = [
        *relations.drawn(rows, metadata),
        *sweeps.drawn(rows, metadata),
        *ucm.shares_drawn(asked),
        *ucm.accuracy_drawn(asked),
        *trajectory.drawn(trajectory.table(system, folder, names), benchmark),
        *losses.drawn(losses.table(system), benchmark),
        *reliability.drawn(reliability.table(system), benchmark),
    ]
    return {f"figures/{one.file}": one.svg for one in drawn}
