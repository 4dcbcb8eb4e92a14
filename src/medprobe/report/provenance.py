"""How the results of a page were computed: versions, times, devices.

They are in a separate script, so that the page itself is the same for the same inputs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core import dvc_records, lineage, places
from medprobe.report.numbers import table_of

NAME: Final = "provenance.js"
CAPTION: Final = "If a stage was stopped and resumed, the figures cover its last run only"
PROVENANCE: Final = [  # what the page says of how a result was made
    *("seconds", "tokens_per_second", "device", "precision", "python"),
    *(f"version.{name}" for name in lineage.LIBRARIES),
]


def describe_state() -> list[str]:
    """The version, commit with its day, and data behind the page.

    Two runs on the same state give the same text.
    """
    md5 = dvc_records.data_hash()
    data = "data not pinned by data.dvc" if md5 == dvc_records.NOT_PINNED else f"data {md5[:8]}"
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


def script(state: Sequence[str], results: Mapping[str, pd.DataFrame]) -> str:
    """Write the script that the page opens.

    Args:
        state: facts about the whole page, such as its commit.
        results: by benchmark, a table with one row per result; a column with one value moves to the
            caption.
    """
    tables = {name: asdict(table_of(table, CAPTION)) for name, table in results.items()}
    content = {"state": [*state], "results": tables}
    return f"showProvenance({json.dumps(content, ensure_ascii=False, allow_nan=False)});\n"
