"""The way down to single queries."""

from medprobe.core import places
from medprobe.report.blocks import Links, Part, paragraph, part
from medprobe.report.results import Results
from medprobe.report.verdicts import listed


def section(results: Results, benchmark: str) -> list[Part]:
    """A link to the benchmark's page of queries, where it has one, and where the numbers are that
    are not on it."""
    said = "Which facts did one model answer and another not? What was answered to a query?"
    links = [Links([(f"queries/{benchmark}.html", said)])] if benchmark in results.queries else []
    others = results.unlisted.get(benchmark, [])
    told = (
        f"What {listed(others)} gave query by query stands in the project's tables "
        f"{places.PREDICTIONS}/<model>/<method>/{benchmark}.parquet."
        if others
        else ""
    )
    return part("Query by query", links, paragraph(told))
