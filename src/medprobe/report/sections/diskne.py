"""DisKnE's tables in the paper's form: means by category, diseases by models, training curves.

Source: Alghanmi et al. 2021, tables 2 to 8; their numbers stand beside models that are theirs.
"""

from typing import Any

import pandas as pd

from medprobe.report import figures, html
from medprobe.report.diskne import BENCHMARK
from medprobe.report.html import Cell
from medprobe.report.papers import published
from medprobe.report.results import Results, shown

MEANS = ["macro", "weighted"]


def section(results: Results, benchmark: str) -> str:
    """Both means of every category and variant, F1 of every disease, and how it was learnt; nothing
    for other benchmarks."""
    if benchmark != BENCHMARK:
        return ""
    rows = results.rows(benchmark, metric="f1")
    is_mean = rows["relation"].isin(MEANS)
    keys = ["subset", "method"]
    diseases = [
        html.folded(f"{category}, {method}", _table(results, part, {"relation": "disease"}))
        for (category, method), part in rows[~is_mean].groupby(keys, sort=True)
    ]
    heads = {"subset": "category", "method": "method", "relation": "mean"}
    means = _table(results, rows[is_mean], heads)
    return (
        html.section("F1 by category", means)
        + html.section("F1 by disease", "".join(diseases))
        + html.section("How the classifiers learn", _curves(results))
    )


def _table(results: Results, rows: pd.DataFrame, keys: dict[str, str]) -> str:
    """F1 of each model, a line for each value of the columns `keys` (column: its heading)."""
    if rows.empty:
        return ""
    models = sorted(rows["model"].unique())
    body: list[list[str | Cell]] = []
    for names, part in rows.groupby(list(keys), sort=True):
        found = {row.model: _cell(results, row) for row in part.itertuples()}
        body.append([*names, *(found.get(model, "–") for model in models)])
    caption = "F1, per cent; a paper's own number in brackets"
    return html.table([*keys.values(), *models], body, caption)


def _cell(results: Results, row: Any) -> Cell:
    """`41.2`, or `41.2 [46 ± 3]` where the paper has this number."""
    text = shown("f1", row.value).removesuffix(" %")
    name = results.published.get(row.model)
    there = published(name, BENCHMARK, row.subset, row.relation, row.method) if name else []
    for _, _, paper in there[:1]:
        spread = f" ± {paper.std['f1']:g}" if "f1" in paper.std else ""
        text += f" [{paper.values['f1']:g}{spread}]"
    return Cell(text, row.value)


def _curves(results: Results) -> str:
    """The losses of each model by epoch, a line a variant."""
    table = results.analyses.get("diskne-curves")
    if table is None or table.empty:
        return ""
    parts = []
    for model, rows in table.groupby("model", sort=True):
        named = rows.assign(name=rows["variant"].replace("", "default") + ", " + rows["loss"])
        svg = figures.curves(named, "epoch", "name", ("epoch", "cross-entropy"), False)
        results.figures[f"diskne-curves-{model}"] = svg
        caption = f"{model}: loss by epoch, median and quartiles over diseases and seeds."
        parts.append(html.figure(svg, caption))
    return "".join(parts)
