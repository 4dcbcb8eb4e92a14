"""F1 in the form of DisKnE's tables.

These are means by category, diseases by models, training curves, and means of what needs no
threshold.

Source: Alghanmi et al. 2021, tables 2 to 8; their numbers are next to those of their models.
"""

from typing import Any, Final

import pandas as pd

from medprobe.core.papers import published
from medprobe.metrics.summary import MEANS
from medprobe.papers.diskne import losses
from medprobe.papers.diskne.layout import LAYOUT
from medprobe.report.blocks import Block, Cell, Choice, Part, Table, folded, part
from medprobe.report.figures.rows import Drawing
from medprobe.report.numbers import MISSING, metric, with_deviation
from medprobe.report.results import Results
from medprobe.report.sections import Section, SingleResult, Steps

RANKED: Final = ("top_1", "auc")
WIDE: Final = 5  # models that are columns; if there are more, they are rows


def section(results: Results, benchmark: str) -> list[Part]:
    """Return the tables of F1, or nothing if no F1 was measured.

    They have both means of every category and variant and of rare and common diseases, F1 of every
    disease, and how it was learnt.
    """
    rows = results.rows(benchmark, metric="f1")
    is_part = rows["subset"].str.contains("/", regex=False)
    parts = rows[is_part].assign(subset=rows["subset"].str.replace(r"^.*:", "", regex=True))
    rows = rows[~is_part]
    is_mean = rows["relation"].isin(MEANS)
    diseases: list[Block] = []
    for category, group in rows[~is_mean].groupby("subset", sort=True):
        table = _table(results, group, {"relation": "disease", "method": "method"})
        diseases += folded(str(category), [table])
    heads = {"subset": "category", "method": "method"}
    frequent = _means(results, parts, {"subset": "positives", "method": "method"})
    learnt = results.tables.get(f"{benchmark}-curves")
    ranked: list[Block] = []
    for name in RANKED:
        means = results.rows(benchmark, metric=name)
        means = means[means["relation"].isin(MEANS) & ~means["subset"].str.contains("/")]
        ranked += folded(f"{metric(name).title} by category", _means(results, means, heads))
    return [
        *part(
            "F1 by category",
            _means(results, rows[is_mean], heads),
            ranked,
            folded("F1 of rare and common diseases, by their positives", frequent),
        ),
        *part("F1 by disease", diseases),
        *part(
            "How the classifiers learn", [] if learnt is None else losses.draw(learnt, benchmark)
        ),
    ]


def _means(results: Results, rows: pd.DataFrame, heads: dict[str, str]) -> list[Block]:
    """The table of each mean over diseases, of which one is shown."""
    tables = {
        str(mean): _table(results, group, heads)
        for mean, group in rows.groupby("relation", sort=True)
    }
    return [Choice("Mean", tables)] if tables else []


def _table(results: Results, rows: pd.DataFrame, keys: dict[str, str]) -> Table:
    """A metric of each model, a line for each value of the columns `keys` (column: its heading)."""
    title = metric(rows["metric"].iloc[0]).title
    cells = {row.Index: _cell(results, row) for row in rows.itertuples()}
    is_printed = any("[" in number.text for number in cells.values())
    caption = f"{title}, per cent" + ("; a paper's number in brackets" if is_printed else "")
    models = sorted(rows["model"].unique())
    if len(models) > WIDE:
        listed = [
            [*(getattr(row, key) for key in ("model", *keys)), cells[row.Index]]
            for row in rows.sort_values("value", ascending=False, kind="stable").itertuples()
        ]
        return Table(["model", *keys.values(), title], listed, caption)
    body: list[list[str | Cell]] = []
    for names, group in rows.groupby(list(keys), sort=True):
        of_group = {row.model: cells[row.Index] for row in group.itertuples()}
        body.append([*names, *(of_group.get(model, MISSING) for model in models)])
    return Table([*keys.values(), *models], body, caption)


def _cell(results: Results, row: Any) -> Cell:
    """`41.2`, or `41.2 [46 ± 3]` where the paper has this number."""
    text = with_deviation(row.metric, row.value, row.std)
    name, printed_as = results.published.get(row.model), results.printed(row.benchmark)
    printed = published(name, printed_as, row.subset, row.relation, row.method) if name else []
    for _, _, paper in printed[:1]:
        if row.metric in paper.values:
            spread = f" ± {paper.std[row.metric]:g}" if row.metric in paper.std else ""
            text += f" [{paper.values[row.metric]:g}{spread}]"
    return Cell(text, row.value)


def tables(results: Results) -> dict[str, pd.DataFrame]:
    """Losses by epoch, by benchmark."""
    found = {f"{name}-curves": losses.table(results.systems(name)) for name in results.benchmarks}
    return {name: table for name, table in found.items() if len(table)}


def drawings(result: SingleResult) -> list[Drawing]:
    """How the classifiers of one result learn."""
    curves = losses.table({result.path.parent.parent.name: result.path})
    return losses.draw(curves, result.path.stem)


def series(result: SingleResult) -> dict[str, Steps]:
    """Losses by epoch, the mean over diseases and seeds: two series per variant."""
    epochs = losses.read_epochs(result.path)
    if epochs.empty:
        return {}
    means = epochs.groupby(["variant", "epoch"], sort=True)[losses.KINDS].mean()
    return {
        f"{kind} loss/{variant or 'default'}": list(
            zip(part.index.get_level_values("epoch").tolist(), part[kind].tolist(), strict=True)
        )
        for variant, part in means.groupby(level="variant")
        for kind in losses.KINDS
    }


SECTION = Section(50, section, tables=tables, draw=drawings, series=series, layout=LAYOUT)
