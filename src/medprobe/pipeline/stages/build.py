"""Stage `build`: a benchmark's tables from its sources."""

from dataclasses import replace

from medprobe import benchmarks
from medprobe.core import places
from medprobe.core.benchmark_statistics import statistics
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.core.settings import parse_section
from medprobe.sample.files import are_invented
from medprobe.sources.publishers import compare


def build(name: str, params: Params, executor: Executor = in_this_process) -> None:
    """Build a benchmark from its sources.

    Writes `outputs/benchmarks/<name>/` (queries, candidates, further tables, statistics.csv) and
    the benchmark's metadata, `outputs/about/<name>.json`.
    """
    builder = params.builder(name)
    benchmark = benchmarks.find(builder)
    where = f"params.yaml: benchmarks.{builder}.{name}"
    settings = parse_section(benchmark.settings, params.benchmarks[builder][name], where)
    benchmarks.check_sources(benchmark, settings, where)
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
    invented = are_invented(tables, benchmark.identifiers)
    signed = {} if invented else compare(places.DATA, benchmark.metadata.sources)
    metadata = replace(benchmark.metadata, invented=invented, published=signed)
    metadata.write(places.ABOUT / f"{name}.json")
