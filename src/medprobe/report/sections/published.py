"""Published numbers next to the measured ones, for models that params.yaml marks as a paper's."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, Final

import pandas as pd

from medprobe.core.papers import MEAN, Paper, PublishedTable, place, published
from medprobe.metrics.summary import MEANS
from medprobe.report.blocks import Cell, Links, Part, Table, paragraph, part
from medprobe.report.numbers import MISSING, metric
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section

DATA: Final = "the paper's data?"  # heads what `data_note` says
TITLE: Final = "Compared with the published numbers"
INVENTED: Final = "no: invented facts"
ONE_REPLICATE: Final = "no: 1 replicate here; a mean over several there"
CAPTION: Final = (
    "Shares in per cent, measured on the queries here and as printed. A difference is compared "
    "with the deviation that the paper prints, where the data are the paper's: the number is over "
    "as many queries and relations as the paper's own, or as its released files give."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """A table of measured and published numbers; empty if no model is a published one."""
    rows = results.rows(benchmark)
    rows = rows[rows["model"].isin(results.published)]
    printed_as = results.printed(benchmark)
    body: list[list[str | Cell]] = []
    sources: dict[str, str] = {}
    notes: dict[str, None] = {}
    keys = ["model", "subset", "relation", "method"]
    for (model, subset, relation, method), group in rows.groupby(keys, sort=True):
        name = results.published[model]
        for paper, number, row in published(name, printed_as, subset, relation, method):
            sources[paper.url] = f"{paper.title} ({paper.version})"
            notes |= dict.fromkeys(paper.tables[number].notes)
            for score in group[group["metric"].isin(row.values)].itertuples():
                data = data_note(results, score, paper, paper.tables[number])
                spread = row.std.get(score.metric)
                if spread and pd.isna(score.std) and data.startswith("yes"):
                    data = ONE_REPLICATE
                system = [f"{model} ({name})", f"{subset}, {relation}", method]
                numbers = _numbers(score, row.values[score.metric], spread, data)
                body.append([*system, *numbers, data, f"{paper.version}, {place(number)}"])
    if not body:
        return []
    heads = ["model", "set", "method", "metric", "measured", "published", "difference"]
    heads += ["in deviations", DATA, "source"]
    table, links = Table(heads, body, CAPTION), Links(sorted(sources.items()))
    return part(TITLE, [table], paragraph(*notes), [links])


def _numbers(score: Any, printed: float, spread: float | None, data: str) -> list[str | Cell]:
    """The metric, both numbers, their difference, and the verdict on it."""
    is_share = metric(score.metric).share
    scale = 100 if is_share else 1
    difference = scale * score.value - printed
    verdict: str | Cell = MISSING
    if spread and not data.startswith("no"):
        verdict = Cell(
            "within one" if abs(difference) <= spread else f"{abs(difference) / spread:.1f}",
            abs(difference) / spread,
        )
    numbers = [scale * number for number in (score.value, score.std) if pd.notna(number)]
    measured = " ± ".join(f"{number:.2f}" for number in numbers)  # as papers print them
    return [
        metric(score.metric).title + (", %" if is_share else ""),
        Cell(measured, score.value),
        Cell(f"{printed:g}" + (f" ± {spread:g}" if spread else ""), printed),
        Cell(f"{difference:+.2f}", difference),
        verdict,
    ]


def data_note(
    results: PageData, number: Any, paper: Paper, table: PublishedTable, models: Sequence[str] = ()
) -> str:
    """Say whether a number is over what the paper's is: as many queries, and the same relations."""
    if results.benchmarks[number.benchmark].invented:
        return INVENTED
    keys = {name: getattr(number, name) for name in ("model", "subset", "method", "metric")}
    rows = results.rows(number.benchmark, **keys)
    is_mean = number.relation in MEANS
    rows = rows[~rows["relation"].isin(MEANS) if is_mean else rows["relation"] == number.relation]
    printed = results.printed(number.benchmark)
    subset = number.subset if is_mean else f"{number.subset}/{number.relation}"
    counts = {
        name: count
        for known in (paper.sizes, paper.released)
        for name, count in known.get(printed, {}).get(subset, {}).items()
        if name in ("queries", "relations")
    }
    here: dict[str, Collection[str] | float] = {"queries": float(rows["n"].sum())}
    there: dict[str, Collection[str] | float] = dict(counts)
    if is_mean:
        here["relations"] = {*rows["relation"]}
        name = MEAN if models else _printed_name(results, number.model)
        if relations := _printed_relations(table, (name, printed, *_parts(number))):
            there["relations"] = relations
    if models:
        here["models"] = {_printed_name(results, model) for model in models}
        there["models"] = {name for name, m in paper.models.items() if m.counts_in(number.subset)}
    said = _compare({name: here[name] for name in there if name in here}, there)
    signed = results.benchmarks[number.benchmark].published.items()  # what publishers signed
    known = [f"{source} {verdict}" for source, verdict in signed if verdict != "unsigned"]
    return "; ".join([said, *known])


def _printed_name(results: PageData, model: str) -> str:
    """What the papers call a model, or its own name."""
    return results.published.get(model, model).rpartition("/")[2]


def _parts(number: Any) -> tuple[str, str, str]:
    """The subset, of which a mean can be over a part, the method and its variant."""
    method, _, variant = number.method.partition(":")
    return number.subset.partition("/")[0], method, variant


def _printed_relations(table: PublishedTable, key: tuple[str, ...]) -> set[str]:
    """The relations of which a table prints numbers, for a model under a method on a subset."""
    return {
        row.relation
        for row in table.rows
        if (row.model, row.benchmark, row.subset, row.method, row.variant) == key
        and row.relation not in MEANS
    }


def _compare(
    here: Mapping[str, Collection[str] | float], there: Mapping[str, Collection[str] | float]
) -> str:
    """Compare what two numbers are over: the names or the number of queries, relations, models."""
    if not there:
        return "not counted by the paper"
    sizes = [{what: _size(over) for what, over in side.items()} for side in (here, there)]
    if sizes[0] != sizes[1]:
        ours, theirs = (
            ", ".join(f"{count:,.0f} {what}" for what, count in side.items()) for side in sizes
        )
        return f"no: {ours} here; {theirs} there"
    for what, names in here.items():
        others = there[what]
        if isinstance(names, Set) and isinstance(others, Set) and names != others:
            return f"no: other {what}, {min(names - others)} here, {min(others - names)} there"
    counted = [what for what in there if what != "models"]
    if not counted:  # the models are the paper's, of the data nothing is known
        return "not counted by the paper"
    return "yes" if "queries" in counted else f"yes, by its {' and '.join(there)}"


def _size(over: Collection[str] | float) -> float:
    return over if isinstance(over, int | float) else len(over)


SECTION = Section(120, section)
