"""The way down to single queries."""

from medprobe.core import places
from medprobe.report.blocks import Links, Part, paragraph, part
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section


def section(results: PageData, benchmark: str) -> list[Part]:
    """Return a link to the benchmark's page of queries, if it has one.

    The text says where the answers are that are not on it.
    """
    title = "Show single queries and their answers"
    page = results.query_pages.get(benchmark)
    links = [Links([(f"queries/{benchmark}.html", title)])] if page and page.exists else []
    others = ", ".join(page.unlisted) if page else ""
    where = f"{places.PREDICTIONS}/<model>/<method>/{benchmark}.parquet"
    text = f"Methods without a page of answers: {others}. Their predictions are in {where}."
    return part("Query by query", links, paragraph(text) if others else [])


SECTION = Section(30, section)
