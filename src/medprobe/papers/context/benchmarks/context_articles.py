"""Context variance of a project that has articles, and no notes."""

from dataclasses import replace

from medprobe.benchmarks import Benchmark
from medprobe.papers.context.benchmarks import context

METADATA = replace(
    context.METADATA,
    licence="UMLS Metathesaurus licence; the articles' own",
    terms="umls",
    sources=(*context.UMLS, "articles"),
)
BENCHMARK = Benchmark(
    METADATA,
    context.Settings,
    context.build,
    many_files=True,
    gate_sources=context.UMLS[1:2],
    tables=context.TABLES,
)
