"""What the gate finds wrong with tables, by the project's own expectations."""

import tempfile
from collections.abc import Collection
from contextlib import chdir
from pathlib import Path
from typing import Any

import pandas as pd

from helpers import ROOT
from helpers.broken_tables import only
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
    asked: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The checks of a builder's suites that fail, for those of its tables that are given.

    `data` is what the gate reads again. Only the checks that are `asked` run, if any is named.
    """
    chosen = settings or benchmarks.find(builder).settings()
    folder = EXPECTATIONS / builder
    loaded = suites.load(folder, list(tables), chosen.model_dump(mode="json"))
    chosen_suites = [only(suite, {*asked}) if asked else suite for suite in loaded]
    suites_of_tables = [suite for suite in chosen_suites if suite.table in tables]
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
    asked: Collection[str] = (),
) -> list[str]:
    """The types of the failing checks that stop the pipeline."""
    checks = failing(builder, tables, settings, data, asked)
    return [check["type"] for check in checks if check["severity"] != "warning"]
