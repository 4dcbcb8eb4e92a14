"""The way down to single queries."""

from medprobe.core import places
from medprobe.report.blocks import Links, Part, paragraph, part
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """Return a link to the benchmark's page of queries, if it has one.

    The text says where the answers are that are not on it.
    """
    title = "Show single queries and their answers"
    links = [Links([(f"queries/{benchmark}.html", title)])] if benchmark in results.queries else []
    others = ", ".join(results.unlisted.get(benchmark, []))
    where = f"{places.PREDICTIONS}/<model>/<method>/{benchmark}.parquet"
    text = f"Methods without a page of answers: {others}. Their predictions are in {where}."
    return part("Query by query", links, paragraph(text) if others else [])
