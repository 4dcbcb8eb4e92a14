"""LIPID with what two people said of its prompts, of whom each filled in the sheet.

The sheet is `annotation.csv` of the built benchmark; filled in, it is `data/lipid/annotation.csv`.
"""

from dataclasses import replace
from pathlib import Path

from medprobe.benchmarks import Benchmark, lipid
from medprobe.benchmarks.lipid.sheet import read_sheet
from medprobe.core.tables import BenchmarkTables

SHEET = "lipid/annotation.csv"
METADATA = replace(lipid.METADATA, sources=(*lipid.METADATA.sources, SHEET))


def build(data: Path, settings: lipid.Settings, seed: int) -> BenchmarkTables:
    """LIPID and the note `agreement`. Raises BadInput for a sheet that is not filled in, too."""
    tables = lipid.build(data, settings, seed)
    return replace(tables, notes={**tables.notes, "agreement": read_sheet(data / SHEET)})


BENCHMARK = Benchmark(METADATA, lipid.Settings, build)
