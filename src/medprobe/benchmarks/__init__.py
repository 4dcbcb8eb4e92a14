"""Benchmarks: one file is one benchmark, found by its name, its metadata on top.

A benchmark's module has `METADATA`, `Settings` (its section of `params.yaml`), and
`build(data, settings, seed) -> tables.Benchmark`.
"""

import importlib
import pkgutil
from dataclasses import dataclass
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


def names() -> list[str]:
    """The benchmarks there are."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return [name for name in modules if hasattr(_module(name), "METADATA")]


def find(name: str) -> ModuleType:
    """The module of a benchmark. Raises BadInput where there is none of that name."""
    known = {module.name for module in pkgutil.iter_modules(__path__)}
    if name not in known or not hasattr(_module(name), "METADATA"):
        there = names()
        raise BadInput(
            name, f"no such benchmark{nearest(name, there)}", f"one of {', '.join(there)}"
        )
    return _module(name)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
