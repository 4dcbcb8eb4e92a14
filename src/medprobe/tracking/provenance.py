"""What the page says of how its results were made."""

from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core import places
from medprobe.tracking import lineage

PROVENANCE: Final = [  # what the page says of how a result was made
    *("seconds", "tokens_per_second", "device", "precision", "python"),
    *(f"version.{name}" for name in lineage.LIBRARIES),
]


def describe_state() -> list[str]:
    """The version, commit with its day, and data behind the page.

    Two runs on the same state give the same text.
    """
    md5 = lineage.data_hash()
    data = "data not pinned by data.dvc" if md5 == lineage.NOT_PINNED else f"data {md5[:8]}"
    commits = lineage.followed()
    code = commits and f"code and settings of {commits}"
    parts = [f"medprobe {version('medprobe')}", code, data]
    return [*filter(None, parts)]


def collect_provenance(tables: Iterable[Path]) -> pd.DataFrame:
    """When, how fast, on which device and with which libraries results were made.

    One row per prediction table that has a run record.
    """
    rows = []
    for path in tables:
        run = lineage.record(
            places.RUNS / path.relative_to(places.PREDICTIONS).with_suffix(".json"), path
        )
        if "end" in run:  # an imported result has no time
            end = datetime.fromtimestamp(run["end"] / 1000, UTC)
            system = {"model": path.parent.parent.name, "method": path.parent.name}
            provenance = {name.removeprefix("version."): run.get(name) for name in PROVENANCE}
            rows.append({**system, "finished": f"{end:%Y-%m-%d %H:%M} UTC", **provenance})
    return pd.DataFrame(rows)
