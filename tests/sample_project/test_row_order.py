"""Rows of a source in another order build the same benchmark."""

import random
import shutil
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT
from medprobe import benchmarks
from medprobe.core.params import load_params
from medprobe.core.settings import parse_section
from medprobe.core.tables import BenchmarkTables


def built(name: str) -> BenchmarkTables:
    params = load_params(ROOT / "params.yaml")
    builder = params.builder(name)
    benchmark = benchmarks.find(builder)
    settings = parse_section(benchmark.settings, params.benchmarks[builder][name], name)
    return benchmark.build(Path("data"), settings, params.seed)


@pytest.mark.parametrize("name", ["medlama", "diskne", "context"])
def test_the_order_of_the_umls_rows_changes_nothing(
    sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shutil.copytree(sample_folder, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")
    before = built(name)
    for path in sorted(Path("data/umls").glob("*.RRF")):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        path.unlink()
        path.write_text("".join(lines), "utf-8")
    after = built(name)
    pd.testing.assert_frame_equal(after.queries, before.queries)
    pd.testing.assert_frame_equal(after.candidates, before.candidates)
    for table, rows in before.others.items():
        pd.testing.assert_frame_equal(after.others[table], rows)
