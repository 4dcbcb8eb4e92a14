"""The report: one page that explains itself and works without a network."""

from html import escape
from pathlib import Path
from string import Template

from medprobe.report import html
from medprobe.report.results import Results, metric_of
from medprobe.report.sections import OF_ONE, TOGETHER

TEMPLATE = Path(__file__).with_name("page.html")


def render(results: Results) -> str:
    """The whole page. Drawings made on the way are left in `results.figures`."""
    together = "".join(section(results) for section in TOGETHER)
    chapters = "".join(_chapter(results, benchmark) for benchmark in results.benchmarks)
    links = "".join(f'<a href="#{name}">{name}</a>' for name in results.benchmarks)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        links=links,
        summary=_summary(results),
        confidence=f"{100 * results.confidence:.0f}",
        metrics=_metrics(results),
        together=together,
        chapters=chapters,
    )


def _chapter(results: Results, benchmark: str) -> str:
    about = results.benchmarks[benchmark]
    body = "".join(section(results, benchmark) for section in OF_ONE)
    return (
        f'<section class="chapter" id="{benchmark}"><h2>{benchmark}</h2>'
        f'<p class="about">{escape(about.description)}.<br>{escape(about.citation)}</p>'
        f"{body}</section>"
    )


def _summary(results: Results) -> str:
    table = results.comparison
    counts = [
        (table["model"].nunique(), "model"),
        (table["method"].str.partition(":")[0].nunique(), "method"),
        (table["benchmark"].nunique(), "benchmark"),
        (len(table), "number"),
    ]
    return "".join(
        f"<div><b>{count:,}</b> {noun}{'s' if count != 1 else ''}</div>" for count, noun in counts
    )


def _metrics(results: Results) -> str:
    names = sorted(results.comparison["metric"].unique(), key=lambda name: metric_of(name).title)
    rows = []
    for name in names:
        one = metric_of(name)
        unit = "per cent" if one.share else f"from {one.low:g}".replace("from -inf", "any number")
        rows.append([one.title, f"{one.better} is better", unit, one.source])
    rows = [[a, b.replace("neither is better", "a diagnostic"), c, d] for a, b, c, d in rows]
    return html.table(["metric", "direction", "unit", "source"], rows)
