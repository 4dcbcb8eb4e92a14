"""Context variance of a project that has notes, and no articles."""

from dataclasses import replace

from medprobe.benchmarks import Benchmark
from medprobe.papers.context.benchmarks import context

METADATA = replace(
    context.METADATA,
    licence="UMLS Metathesaurus licence; MIMIC-III's data use agreement",
    sources=(*context.UMLS, "notes"),
)
BENCHMARK = Benchmark(
    METADATA,
    context.Settings,
    context.build,
    many_files=True,
    gate_sources=context.UMLS[1:2],
    tables=context.TABLES,
)
