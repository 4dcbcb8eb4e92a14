"""Published numbers next to the measured ones, for models that params.yaml marks as a paper's."""

from medprobe.papers import published
from medprobe.report.blocks import Cell, Links, Part, Table, part
from medprobe.report.numbers import metric, with_deviation
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """A table of measured and published numbers, nothing where no model is a published one."""
    rows = results.rows(benchmark)
    rows = rows[rows["model"].isin(results.published)]
    printed_as = results.printed(benchmark)
    body: list[list[str | Cell]] = []
    sources = {}
    keys = ["model", "subset", "relation", "method"]
    for (model, subset, relation, method), group in rows.groupby(keys, sort=True):
        name = results.published[model]
        for paper, number, row in published(name, printed_as, subset, relation, method):
            sources[paper.url] = f"{paper.title} ({paper.version})"
            for score in group[group["metric"].isin(row.values)].itertuples():
                scale = 100 if metric(score.metric).share else 1
                printed, spread = row.values[score.metric], row.std.get(score.metric)
                body.append(
                    [
                        *(f"{model} ({name})", f"{subset}, {relation}", method),
                        metric(score.metric).title,
                        Cell(with_deviation(score.metric, score.value, score.std), score.value),
                        Cell(f"{printed:g}" + (f" ± {spread:g}" if spread else ""), printed),
                        Cell(
                            f"{scale * score.value - printed:+.2f}", scale * score.value - printed
                        ),
                        f"{paper.version}, table {number}",
                    ]
                )
    if not body:
        return []
    heads = ["model", "set", "method", "metric", "measured", "published", "difference", "source"]
    return part(
        "Compared with the published numbers", [Table(heads, body), Links(sorted(sources.items()))]
    )
