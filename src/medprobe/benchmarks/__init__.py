"""The benchmarks' builders. One file, or one folder, is one builder; it ends with its `BENCHMARK`:

    BENCHMARK = Benchmark(METADATA, Settings, build)

A project builds as many benchmarks by one builder as `params.yaml` names.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Section
from medprobe.core.tables import BenchmarkTables, Metadata

__all__ = ["Benchmark", "Metadata", "find", "names"]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's builder: `build(data, settings, seed)` makes its tables from the sources below
    the folder `data`. Paths among the settings are relative to `data`, and lie inside a source.
    One that reads many files, and takes an executor for them as its fourth argument, is so marked.
    """

    metadata: Metadata
    settings: type[Section]
    build: Callable[..., BenchmarkTables]
    gate_sources: tuple[str, ...] = ()  # files below data/ that its expectations read themselves
    many_files: bool = False


def names() -> list[str]:
    """The builders there are.

    >>> "medlama" in names()
    True
    """
    here = Path(__path__[0])
    files = [*here.glob("*.py"), *here.glob("*/__init__.py")]
    builders = [path for path in files if "\nBENCHMARK = " in path.read_text(encoding="utf-8")]
    return sorted(
        path.parent.name if path.name == "__init__.py" else path.stem for path in builders
    )


def find(name: str) -> Benchmark:
    """A builder by its name. Raises BadInput where there is none of that name."""
    if name not in (there := names()):
        remedy = f"one of {', '.join(there)}"
        raise BadInput("benchmarks", f"no builder '{name}'{nearest(name, there)}", remedy)
    found: Benchmark = vars(importlib.import_module(f"{__name__}.{name}"))["BENCHMARK"]
    return found
