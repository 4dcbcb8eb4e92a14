"""Context variance of a project that has articles, and no notes."""

from dataclasses import replace

from medprobe.papers.context.benchmarks import context

METADATA = replace(
    context.METADATA,
    licence="UMLS Metathesaurus licence; the articles' own",
    terms="umls",
    sources=(*context.UMLS, "articles"),
)
BENCHMARK = replace(context.BENCHMARK, metadata=METADATA)
