"""DisKnE's tables in the paper's form: one a category and variant, diseases by models.

Source: Alghanmi et al. 2021, tables 2 to 8; their numbers stand beside models that are theirs.
"""

from medprobe.report import html
from medprobe.report.html import Cell
from medprobe.report.papers import published
from medprobe.report.results import Results, shown

MEANS = ["macro", "weighted"]


def section(results: Results, benchmark: str) -> str:
    """F1 of every disease and both means for each category; nothing for other benchmarks."""
    if benchmark != "diskne":
        return ""
    tables = [
        _table(results, category, method)
        for category in results.subsets(benchmark)
        for method in sorted(results.rows(benchmark, subset=category)["method"].unique())
    ]
    return html.section("F1 by disease and category", "".join(tables)) if any(tables) else ""


def _table(results: Results, category: str, method: str) -> str:
    rows = results.rows("diskne", subset=category, method=method, metric="f1")
    values = rows.pivot_table(index="relation", columns="model", values="value")
    order = [name for name in values.index if name not in MEANS]
    order += [name for name in MEANS if name in values.index]
    body: list[list[str | Cell]] = []
    for disease in order:
        line: list[str | Cell] = [disease]
        for model in values.columns:
            value = values.loc[disease, model]
            printed = _printed(results, model, category, disease, method)
            line.append(Cell(shown("f1", value).removesuffix(" %") + printed, value))
        body.append(line)
    title = f"{category}, {method}: F1 in per cent; a paper's own number in brackets"
    return html.folded(title, html.table(["disease", *values.columns], body, "F1, per cent"))


def _printed(results: Results, model: str, category: str, disease: str, method: str) -> str:
    """` [46 ± 3]` where the paper has this number."""
    name = results.published.get(model, "")
    for _, _, row in published(name, "diskne", category, disease, method):
        spread = f" ± {row.std['f1']:g}" if "f1" in row.std else ""
        return f" [{row.values['f1']:g}{spread}]"
    return ""
