"""MedLAMA as released: the full and the hard set of the relations of its imported files.

`medprobe import medlama FOLDER` checks the released files and brings them into `data/medlama`.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from medprobe.benchmarks import Benchmark
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama import source as files
from medprobe.papers.medlama.benchmarks import medlama
from medprobe.papers.medlama.benchmarks.medlama.queries import MedlamaSettings, tables

METADATA = replace(
    medlama.METADATA,
    description="biomedical facts of the UMLS as prompts with one slot, from the released files",
    sources=("medlama",),
)


def build(data: Path, settings: MedlamaSettings, seed: int) -> BenchmarkTables:
    """Build the queries of the released files, in their order.

    They are samples already, and drawn from only where fewer are asked for.

    Raises:
        BadInput: none of the relations is there, or a file is amiss.
    """
    folder = data / "medlama"
    full, _ = files.find_released_files(folder)
    available = [relation for relation in settings.relations if relation in full]
    if not available:
        raise BadInput(folder, "none of the relations of the setting `relations` is here")
    parts = [files.read_queries(full[relation], relation) for relation in available]
    read = [
        ("medlama", "rows", full[name].name, len(part))
        for name, part in zip(available, parts, strict=True)
    ]
    queries = pd.concat(parts, ignore_index=True)
    return tables(queries, settings, seed, read, keep_order=True)


BENCHMARK = Benchmark(
    METADATA, MedlamaSettings, build, files=lambda _: ["medlama/*_*.csv"], tables=()
)
