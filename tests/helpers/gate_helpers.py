"""What the gate finds wrong with tables, by the project's own expectations."""

import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import pandas as pd

from helpers import ROOT
from medprobe import benchmarks
from medprobe.core.settings import Section
from medprobe.gate import run as gate
from medprobe.gate import suites

EXPECTATIONS = ROOT / "expectations"


def failing(
    builder: str,
    tables: dict[str, pd.DataFrame],
    settings: Section | None = None,
    data: Path | None = None,
) -> list[dict[str, Any]]:
    """The checks of a builder's suites that fail, for those of its tables that are given.

    `data` is what the gate reads again.
    """
    chosen = settings or benchmarks.find(builder).settings()
    folder = EXPECTATIONS / builder
    loaded = suites.load(folder, list(tables), chosen.model_dump(mode="json"))
    suites_of_tables = [suite for suite in loaded if suite.table in tables]
    with tempfile.TemporaryDirectory() as project:
        Path(project, "data").symlink_to((data or Path("data")).resolve())
        with chdir(project):
            reports = gate.run(suites_of_tables, tables, text=False)
    return [check for report in reports for check in report["checks"] if not check["success"]]


def critical(
    builder: str,
    tables: dict[str, pd.DataFrame],
    settings: Section | None = None,
    data: Path | None = None,
) -> list[str]:
    """The types of the failing checks that stop the pipeline."""
    checks = failing(builder, tables, settings, data)
    return [check["type"] for check in checks if check["severity"] != "warning"]
