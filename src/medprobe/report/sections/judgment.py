"""True or false? Who judges right, and is as sure as it may be."""

from medprobe.figures import reliability
from medprobe.report.blocks import Part, folded, part
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """Reliability diagrams, one a model; nothing where nothing was judged."""
    bins = results.judged.get(benchmark)
    drawings = [] if bins is None else reliability.drawn(bins, benchmark)
    return part("True or false", drawings[:1], folded("Other models", drawings[1:]))
