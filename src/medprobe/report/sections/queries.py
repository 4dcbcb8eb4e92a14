"""The way down to single queries."""

from medprobe.report.blocks import Links, Part, part
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """A link to the benchmark's page of queries, where it has one."""
    if benchmark not in results.queries:
        return []
    said = "Which facts did one model answer and another not? What was answered to a query?"
    return part("Query by query", [Links([(f"queries/{benchmark}.html", said)])])
