"""Stage `build`: a benchmark's tables from its sources."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from medprobe import benchmarks
from medprobe.benchmark_statistics import statistics
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.params import Params, SampledSettings, parse_section
from medprobe.core.progress import show_progress


def build(name: str, params: Params, executor: Executor = in_this_process) -> None:
    """Build a benchmark from its sources.

    Writes `outputs/benchmarks/<name>/` (queries, candidates, further tables, statistics.csv) and
    the benchmark's metadata, `outputs/about/<name>.json`.

    Args:
        name: the benchmark's name in params.yaml.
        params: the content of params.yaml.
        executor: what scans the files of large sources.

    Raises:
        BadInput: params.yaml has no such benchmark, or a source is missing or malformed.
    """
    builder = params.builder(name)
    benchmark = benchmarks.find(builder)
    where = f"params.yaml: benchmarks.{builder}.{name}"
    settings = parse_section(benchmark.settings, params.benchmarks[builder][name], where)
    for key, path in _paths(settings.model_dump(), ()):
        if not any(path.is_relative_to(source) for source in benchmark.metadata.sources):
            sources = ", ".join(f"data/{source}" for source in benchmark.metadata.sources)
            problem = f"data/{path} is not in a source that dvc.yaml lists for this benchmark"
            raise BadInput(f"{where}.{key}", problem, f"move it to one of {sources}")
    executors = (executor,) if benchmark.many_files else ()
    with show_progress(f"build {name}"):
        tables = benchmark.build(places.DATA, settings, params.seed, *executors)
        tables = replace(
            tables,
            queries=tables.queries.assign(benchmark=name),
            notes={**tables.notes, "statistics": statistics(tables)},
            builder=builder,
        )
        tables.write(places.BENCHMARKS / name)
    invented = isinstance(settings, SampledSettings) and settings.invented
    replace(benchmark.metadata, invented=invented).write(places.ABOUT / f"{name}.json")


def _paths(content: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """All paths in settings, with their dotted keys."""
    if isinstance(content, Path):
        yield ".".join(keys), content
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _paths(value, (*keys, str(key)))
