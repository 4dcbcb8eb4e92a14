"""What it took to make the results, and with which device and libraries."""

from medprobe.report.blocks import Part, folded, part
from medprobe.report.numbers import table_of
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """A row a result of which this is known, as it was when this page was made; what is the same
    for all of them stands in the caption."""
    made = results.made.get(benchmark)
    if made is None or made.empty:
        return []
    caption = "A stage that was stopped tells of its last run only"
    return part("What it took", folded("Show", [table_of(made, caption)]))
