"""By relation: which kind of fact is known to which model."""

from medprobe.report import figures, html
from medprobe.report.html import Cell
from medprobe.report.results import Results, metric_of, shown, without_sweeps

MEANS = ["macro", "micro", "weighted"]


def section(results: Results, benchmark: str) -> str:
    """A table of relations against models and methods, and a drawing for the leading method;
    nothing where relations are too many to be read at a glance."""
    if results.benchmarks[benchmark].many_relations:
        return ""
    subset, metric = results.subsets(benchmark)[0], results.primary(benchmark)
    rows = without_sweeps(results.rows(benchmark, subset=subset, metric=metric))
    single = rows[~rows["relation"].isin(MEANS)]
    macro = rows[rows["relation"] == "macro"].sort_values("value", kind="stable")
    if single["relation"].nunique() < 2 or macro.empty:
        return ""
    look = metric_of(metric)
    method = macro.iloc[0 if look.better == "lower" else -1]["method"]
    drawn = single[single["method"] == method].sort_values(["relation", "model"])
    label = look.title + (", per cent" if look.share else "")
    svg = figures.intervals(drawn, "relation", "model", label, look.share)
    results.figures[f"{benchmark}-relations"] = svg
    table = single.pivot_table(index="relation", columns=["method", "model"], values="value")
    body = [
        [str(relation).replace("_", " ")]
        + [Cell(shown(metric, v).removesuffix(" %"), v, v if look.share else None) for v in line]
        for relation, line in zip(table.index, table.to_numpy(), strict=True)
    ]
    heads = [f"{model} · {method}" for method, model in table.columns]
    return html.section(
        "By relation",
        html.figure(svg, f"{look.title} by relation under {method} ({benchmark}, {subset}).")
        + html.folded(
            "All methods, as a table",
            html.table(["relation", *heads], body, f"{look.title}, per cent" if look.share else ""),
        ),
    )
