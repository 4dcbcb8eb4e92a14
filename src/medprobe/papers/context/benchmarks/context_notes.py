"""Context variance of a project that has notes, and no articles."""

from dataclasses import replace

from medprobe.papers.context.benchmarks import context

METADATA = replace(
    context.METADATA,
    licence="UMLS Metathesaurus licence; MIMIC-III's data use agreement",
    sources=(*context.UMLS, "notes"),
)
BENCHMARK = replace(context.BENCHMARK, metadata=METADATA)
