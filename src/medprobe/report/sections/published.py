"""Published numbers beside the measured ones, for models that params.yaml says are a paper's."""

from medprobe.report import html
from medprobe.report.html import Cell
from medprobe.report.papers import published
from medprobe.report.results import Results, metric_of, shown


def section(results: Results, benchmark: str) -> str:
    """A table of measured and published numbers, nothing where no model is a published one."""
    rows = results.rows(benchmark)
    rows = rows[rows["model"].isin(results.published)]
    body: list[list[str | Cell]] = []
    sources = {}
    keys = ["model", "subset", "relation", "method"]
    for (model, subset, relation, method), part in rows.groupby(keys, sort=True):
        name = results.published[model]
        for paper, number, row in published(name, benchmark, subset, relation, method):
            sources[paper.url] = f"{paper.title} ({paper.version})"
            for one in part[part["metric"].isin(row.values)].itertuples():
                scale = 100 if metric_of(one.metric).share else 1
                printed, spread = row.values[one.metric], row.std.get(one.metric)
                body.append(
                    [
                        *(f"{model} ({name})", f"{subset}, {relation}", method),
                        metric_of(one.metric).title,
                        Cell(shown(one.metric, one.value), one.value),
                        Cell(f"{printed:g}" + (f" ± {spread:g}" if spread else ""), printed),
                        Cell(f"{scale * one.value - printed:+.2f}", scale * one.value - printed),
                        f"{paper.version}, table {number}",
                    ]
                )
    if not body:
        return ""
    heads = ["model", "set", "method", "metric", "measured", "published", "difference", "source"]
    links = "".join(
        f'<li><a href="{url}">{html.escape(title)}</a></li>'
        for url, title in sorted(sources.items())
    )
    return html.section(
        "Beside the published numbers", html.table(heads, body) + f"<ul>{links}</ul>"
    )
