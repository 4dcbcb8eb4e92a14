"""The page with the sections of all papers and extensions."""

from pathlib import Path

import pandas as pd
import pytest

from helpers import FolderOf
from helpers.render_helpers import check_snapshot
from helpers.toy_project import METADATA
from helpers.toy_report import write_report
from medprobe.core.tables import BASELINE
from medprobe.report.page import chapters
from medprobe.report.page_data import PageData


@pytest.mark.slow
def test_the_chapters_of_twins(tmp_path: Path, tiny_model: FolderOf) -> None:
    """The parts of rewiring and of trust are there."""
    reports = write_report(tmp_path, tiny_model("bert"))
    rows, tests = (pd.read_csv(reports / f"{name}.csv") for name in ("comparison", "significance"))
    models = rows[rows["model"] != BASELINE]
    results = PageData(
        models,
        tests,
        benchmarks={"made_up": METADATA},
        twins={"taught": "untaught"},
        main={("made_up", name): "contrastive" for name in ("taught", "untaught")},
    )
    check_snapshot("twins", chapters(results))
