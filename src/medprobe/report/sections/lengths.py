"""By answer length in characters."""

from medprobe.report import figures, html
from medprobe.report.results import Results, metric_of, without_sweeps

ORDER = ["1-10", "11-20", "21-30", "31-40", "over-40"]
FEWEST = 5  # queries: a bin with fewer says nothing and is not drawn


def section(results: Results, benchmark: str) -> str:
    """For each method a drawing of its models over the bins of answer length."""
    metric, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    look = metric_of(metric)
    rows = without_sweeps(results.rows(benchmark, relation="micro", metric=metric))
    inside = rows["subset"].str.startswith(f"{subset}/answer-length:")
    rows = rows[inside & (rows["n"] >= FEWEST)]
    rows = rows.assign(length=rows["subset"].str.split(":").str[-1])
    rows = rows.sort_values("length", key=lambda names: names.map(ORDER.index), kind="stable")
    label = look.title + (", per cent" if look.share else "")
    parts = []
    for method, part in rows.groupby("method", sort=True):
        if part["length"].nunique() < 2:
            continue
        axes = ("characters of the answer", label)
        svg = figures.curves(part, "length", "model", axes, look.share)
        results.figures[f"{benchmark}-{method}-lengths".replace(":", "-")] = svg
        parts.append(html.figure(svg, f"{look.title} by answer length, {method} ({benchmark})."))
    first, rest = "".join(parts[:1]), "".join(parts[1:])
    return html.section(
        "By answer length", first + (html.folded("Other methods", rest) if rest else "")
    )
