"""A warning where a system leaves many queries unanswered, at the start of a chapter."""

from medprobe.core.answers import WARNED
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section


def notes(results: PageData, benchmark: str) -> list[str]:
    """Warn of each system that leaves more than WARNED of a benchmark's queries unanswered."""
    rows = results.rows(benchmark, metric="unanswered", relation="micro")
    rows = rows[(rows["value"] > WARNED) & ~rows["subset"].str.contains("/")]
    return [
        f"Warning: {row.model} under {row.method} leaves {100 * row.value:.0f} % of the queries of "
        f"{row.subset} unanswered: its texts are cut or empty, or have no name or several. They "
        "count as wrong."
        for row in rows.itertuples()
    ]


SECTION = Section(160, notes=notes)
