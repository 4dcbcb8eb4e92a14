"""Benchmarks: one file is one benchmark, found by its name, its metadata on top.

A benchmark's module has `METADATA`, `Settings` (its section of `params.yaml`), and
`build(data, settings, seed) -> tables.Benchmark`.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from medprobe.errors import BadInput, nearest


@dataclass(frozen=True)
class Metadata:
    """What to know about a benchmark before using it."""

    description: str  # one line
    citation: str
    licence: str  # of the sources it is built from
    sources: tuple[str, ...]  # files and folders below data/ that it is built from
    primary_metric: str
    many_relations: bool = False  # too many for a drawing, or for a metric each in MLflow


def names() -> list[str]:
    """The benchmarks there are: the modules here that have metadata."""
    modules = sorted(Path(__path__[0]).glob("*.py"))
    return [path.stem for path in modules if "\nMETADATA" in path.read_text(encoding="utf-8")]


def find(name: str) -> ModuleType:
    """The module of a benchmark. Raises BadInput where there is none of that name."""
    if name not in (there := names()):
        raise BadInput(
            name, f"no such benchmark{nearest(name, there)}", f"one of {', '.join(there)}"
        )
    return importlib.import_module(f"{__name__}.{name}")
