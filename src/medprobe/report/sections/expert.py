"""What experts say: accuracy by their ratings, how far they agree, ratings against answers."""

import pandas as pd

from medprobe.metrics.expert import RATED, Evaluation, Expert
from medprobe.papers import published
from medprobe.report.blocks import Block, Cell, Part, Table, Tag, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric
from medprobe.report.results import Results

SHOWN = ("acc_at_1", "acc_at_10", *(one.name for one in Expert.METRICS))


def section(results: Results, benchmark: str) -> list[Part]:
    """For each evaluation: who rated how much, the systems' scores, agreement, confusion tables."""
    blocks = (
        [Tag(one.name), *_scores(results, benchmark, one), *_agreement(one), *_confusion(table)]
        for one, table in results.expert.get(benchmark, [])
    )
    return part("By experts", *blocks)


def _progress(one: Evaluation) -> list[Block]:
    """Who rated how many of the items."""
    said = [
        f"{rater}: {rows['rated'].sum():,} of {rows['items'].sum():,}"
        for rater, rows in one.rated.groupby("rater", sort=True)
    ]
    return list(
        paragraph(
            f"{len(one.items):,} {one.asked} of {len(one.queries):,} queries were given to "
            f"{len(said)} rater{'s' if len(said) > 1 else ''}, without saying which model they are "
            f"of. Rated so far: {'; '.join(said)}."
            if one.asked == "predictions"
            else f"{len(one.items):,} prompts were given to {len(said)} raters: does it state a "
            f"fact? Rated so far: {'; '.join(said)}."
        )
    )


def _scores(results: Results, benchmark: str, one: Evaluation) -> list[Block]:
    if one.asked == "prompts":
        return [*_progress(one), _facts(one.rated)]
    rows = results.rows(benchmark, subset=f"{one.subset}/{RATED}:{one.name}", relation="micro")
    body: list[list[str | Cell]] = []
    for (model, method), some in rows.groupby(["model", "method"], sort=True):
        numbers = some.set_index("metric")[["value", "low", "high", "n"]]
        cells: list[str | Cell] = [
            cell(name, *numbers.loc[name, ["value", "low", "high"]])
            if name in numbers.index
            else MISSING
            for name in SHOWN
        ]
        body.append([str(model), str(method), *cells, count(numbers["n"].min())])
    if not body:
        text = "No system has a query whose first predictions are all rated."
        return [*_progress(one), *paragraph(text)]
    heads = ["model", "method", *(f"{metric(name).title}, %" for name in SHOWN), "queries"]
    about = (
        "A prediction is right where more than half of its raters say so. Corrected accuracy is "
        "that of all queries, moved by how far experts and answers differ on those rated. Hits and "
        "predictions rated right are shares of the first ten predictions."
    )
    printed = _published(results, benchmark, one.subset)
    return [*_progress(one), *paragraph(about), Table(heads, body), *paragraph(*printed)]


def _published(results: Results, benchmark: str, subset: str) -> list[str]:
    """What the papers print of the models here that are theirs."""
    return [
        f"Published of {row.model} ({paper.version}): "
        + ", ".join(f"{metric(name).title} {value:g} %" for name, value in row.values.items())
        + "."
        for name in sorted({*results.published.values()})
        for paper, _, row in published(
            name, results.printed(benchmark), f"{subset}/{RATED}", "micro", "contrastive"
        )
    ]


def _facts(rated: pd.DataFrame) -> Table:
    """The share of prompts that state a fact, by rater and in the mean."""
    body: list[list[str | Cell]] = []
    for subset, rows in rated.groupby("subset", sort=True):
        shares = (100 * rows["right"] / rows["rated"]).tolist()
        named = [*zip(rows["rater"], shares, strict=True), ("mean", sum(shares) / len(shares))]
        body += [[str(subset), rater, Cell(f"{share:.1f}", share)] for rater, share in named]
    return Table(["subset", "rater", "states a fact, %"], body)


def _agreement(one: Evaluation) -> list[Block]:
    if one.agreement.empty:
        return []
    body = [
        [
            *(row.of, row.measure, row.raters, count(row.items)),
            Cell(MISSING if pd.isna(row.value) else f"{row.value:.3f}", row.value),
        ]
        for row in one.agreement.itertuples()
    ]
    heads = ["of", "measure", "raters", "items", "value"]
    return [Table(heads, body, "How far the raters agree")]


def _confusion(table: pd.DataFrame) -> list[Block]:
    """Ratings against answers, a table a system and k; the main variant's."""
    tables: list[Block] = []
    for (model, method, k), rows in table.groupby(["model", "method", "k"], sort=True):
        counts = rows.pivot_table(index="rating", columns="gold", values="count", fill_value=0)
        counts = counts.reindex(columns=[True, False], fill_value=0)
        total = counts.to_numpy().sum()
        body: list[list[str | Cell]] = [
            [str(rating), *(_share(number, total) for number in (*line, line.sum()))]
            for rating, line in counts.sort_index(ascending=False).iterrows()
        ]
        body.append(["all", *(_share(n, total) for n in (*counts.sum(), total))])
        heads = ["rating", "an answer", "no answer", "all"]
        tables.append(Table(heads, body, f"{model}, {method}: first {k}"))
    return folded("Ratings against the benchmark's answers", tables)


def _share(number: float, total: float) -> Cell:
    return Cell(f"{number:,.0f}  ({100 * number / total:.1f} %)", number)
