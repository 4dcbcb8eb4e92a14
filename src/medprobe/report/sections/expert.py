"""What experts say: accuracy by their ratings, how far they agree, ratings against answers."""

from typing import Final

import pandas as pd

from medprobe.metrics.expert import RATED, Evaluation, Expert
from medprobe.papers import published
from medprobe.report.blocks import Block, Cell, Part, Table, Tag, folded, part
from medprobe.report.numbers import MISSING, cell, count, metric
from medprobe.report.results import Results

SHOWN: Final = ("acc_at_1", "acc_at_10", *(one.name for one in Expert.METRICS))
ASKED: Final = {  # what raters are asked about
    "predictions": "Raters were not told which model a prediction is of.",
    "prompts": "Raters were asked whether each prompt states a fact.",
}
SCORES: Final = (
    "A prediction is right where more than half of its raters say so. A system is scored on the "
    "queries whose first predictions are all rated. Corrected accuracy is that of all queries, "
    "moved by how far experts and answers differ on those rated. Hits and predictions rated right "
    "are shares of the first ten predictions. Rows with a source are a paper's own numbers."
)


def section(results: Results, benchmark: str) -> list[Part]:
    """For each evaluation: who rated how much, the systems' scores, agreement, confusion tables."""
    blocks = (
        [
            Tag(one.name),
            _progress(one),
            _facts(one.rated) if one.target == "prompts" else _scores(results, benchmark, one),
            *_agreement(one),
            *_confusion(table),
        ]
        for one, table in results.expert.get(benchmark, [])
    )
    return part("By experts", *blocks)


def _progress(one: Evaluation) -> Table:
    """Who rated how many of the items."""
    body: list[list[str | Cell]] = [
        [str(rater), count(rows["rated"].sum()), count(rows["items"].sum())]
        for rater, rows in one.rated.groupby("rater", sort=True)
    ]
    size = f"{len(one.items):,} {one.target}"
    if one.target == "predictions":
        size += f" of {len(one.queries):,} queries"
    return Table(["rater", "rated", "given"], body, f"{size}. {ASKED[one.target]}")


def _scores(results: Results, benchmark: str, one: Evaluation) -> Table:
    """The scores of each system, and what the papers print of models that are theirs."""
    rows = results.rows(benchmark, subset=f"{one.subset}/{RATED}:{one.name}", relation="micro")
    body: list[list[str | Cell]] = []
    for (model, method), some in rows.groupby(["model", "method"], sort=True):
        numbers = some.set_index("metric")[["value", "low", "high", "n"]]
        cells = [
            cell(name, *numbers.loc[name, ["value", "low", "high"]])
            if name in numbers.index
            else MISSING
            for name in SHOWN
        ]
        body.append([str(model), str(method), *cells, count(numbers["n"].min()), MISSING])
    if body:
        body += _published(results, benchmark, one.subset)
    heads = ["model", "method", *(f"{metric(name).title}, %" for name in SHOWN), "queries"]
    return Table([*heads, "source"], body, SCORES)


def _published(results: Results, benchmark: str, subset: str) -> list[list[str | Cell]]:
    lines: list[list[str | Cell]] = []
    for name in sorted({*results.published.values()}):
        where = (name, results.printed(benchmark), f"{subset}/{RATED}", "micro", "contrastive")
        for paper, _, row in published(*where):
            cells = [
                Cell(f"{row.values[one]:g}", row.values[one] / 100)
                if one in row.values
                else MISSING
                for one in SHOWN
            ]
            lines.append([row.model, "contrastive", *cells, MISSING, paper.version])
    return lines


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
