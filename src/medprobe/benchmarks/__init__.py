"""The builders of benchmarks, one per file or folder.

Each ends with its `BENCHMARK`:

    BENCHMARK = Benchmark(METADATA, Settings, build)

A builder is in the folder `benchmarks` of any place of plugins (`core.plugins`). A project can
build several benchmarks with one builder, each under its own name in `params.yaml`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe.core import plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.settings import Section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, Metadata

__all__ = ["Benchmark", "Metadata", "check_sources", "find", "list_names", "list_paths"]


@dataclass(frozen=True)
class Benchmark:
    """A builder of benchmarks.

    Attributes:
        metadata: what a benchmark of this builder measures, its citation, licence and sources.
        settings: its settings, as in `params.yaml`. Paths in them are relative to `data/` and lie
            inside one of `metadata.sources`.
        build: `build(data, settings, seed)` makes the tables from the sources below the folder
            `data`. With `many_files` it takes an executor as its fourth argument.
        files: of its settings, the files that `build` cannot do without in sources that are
            folders, relative to `data/`; a pattern stands for at least one file.
        gate_sources: files below `data/` that the expectations of the benchmark read themselves.
        many_files: whether `build` reads so many files that it divides the work.
        tables: the further tables that `build` can make for methods, such as `train`. A method that
            needs another one is refused before any stage runs. None: not declared, so that only
            the method itself can refuse.
        identifiers: the columns, of whichever of its tables, with identifiers of the sources. Where
            all are the sample world's, the facts are invented.
    """

    metadata: Metadata
    settings: type[Section]
    build: Callable[..., BenchmarkTables]
    files: Callable[[Any], Iterable[str]] = lambda settings: ()
    gate_sources: tuple[str, ...] = ()
    many_files: bool = False
    tables: tuple[str, ...] | None = None
    identifiers: tuple[str, ...] = ("subject_id", "answer_ids", "id", "cui", "document")


def list_names() -> list[str]:
    """List the names of all builders in alphabetical order, those of plugins included.

    Example:
        >>> "medlama" in list_names()
        True
    """
    return [*plugins.find_plugins("benchmarks")]


def find(name: str) -> Benchmark:
    """Return a builder.

    Args:
        name: of the builder's file or folder, such as `medlama`.

    Raises:
        BadInput: no builder has this name, or a plugin's file is broken.

    Example:
        >>> find("medlama").metadata.primary_metric
        'acc_at_1'
    """
    found = plugins.find_plugins("benchmarks")
    if name not in found:
        problem = f"no builder '{name}'{nearest(name, [*found])}"
        raise BadInput("benchmarks", problem, f"choose one of {', '.join(found)}")
    builder: Benchmark = plugins.load(found[name], "BENCHMARK", Benchmark)
    return builder


def check_sources(benchmark: Benchmark, settings: Section, where: str) -> None:
    """Refuse a path that is outside of the builder's sources: DVC would not notice its changes.

    Args:
        benchmark: the builder.
        settings: of the benchmark; all paths in them are checked.
        where: names the settings in errors, such as `params.yaml: benchmarks.table.mine`.

    Raises:
        BadInput: a path is in none of `metadata.sources`, or has `..` in it.
    """
    for key, path in list_paths(settings):
        is_source = any(path.is_relative_to(source) for source in benchmark.metadata.sources)
        if not is_source or ".." in path.parts:
            sources = ", ".join(f"data/{source}" for source in benchmark.metadata.sources)
            problem = f"data/{path} is not in a source that dvc.yaml lists for this benchmark"
            remedy = f"move it to one of {sources}"
            if path.is_absolute() or path.parts[:1] == ("data",):
                remedy = f"paths are read below data/: write one below {sources}, without data/"
            raise BadInput(f"{where}.{key}", problem, remedy)


def list_paths(settings: Section) -> list[tuple[str, Path]]:
    """List all paths in settings, which are relative to `data/`, with their dotted keys."""
    return [*_paths(settings.model_dump(), ())]


def _paths(content: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """All paths in settings, with their dotted keys."""
    if isinstance(content, Path):
        yield ".".join(keys), content
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _paths(value, (*keys, str(key)))


def with_distractors(candidates: pd.DataFrame, subset: str, names: Iterable[str]) -> pd.DataFrame:
    """Add names as distractors of a subset, except those that are its candidates already.

    A method that knows of distractors ranks with and without them in one pass; others never see
    them.
    """
    present = set(candidates.loc[candidates["subset"] == subset, "name"])
    new = [name for name in dict.fromkeys(names) if name not in present]
    more = pd.DataFrame({"name": new, "id": new, "type": DISTRACTOR, "subset": subset})
    return pd.concat([candidates, more], ignore_index=True)
