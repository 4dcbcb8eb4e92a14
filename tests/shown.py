"""What a reader sees of some parts of the page."""

from collections.abc import Sequence

from medprobe.report.blocks import Chapter, Part
from medprobe.report.page import render
from medprobe.report.results import Results


def html(results: Results, parts: Sequence[Part]) -> str:
    """The HTML of a chapter with these parts."""
    page = render(results, [Chapter("chapter", "Chapter", [], parts)])
    return page[page.index('<section class="chapter"') : page.index("</main>")]
