"""Models and methods side by side, with intervals; by relation, and by parts of the queries."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from medprobe.core.benchmark_statistics import FEWEST, weak_relations
from medprobe.core.tables import Metadata
from medprobe.metrics import catalog
from medprobe.metrics.results import (
    by_value,
    comparable,
    main_variants,
    primary_metric,
    select,
    select_systems,
    subsets,
    without_controls,
    without_repeats,
    without_sweeps,
)
from medprobe.metrics.splits import first_number
from medprobe.metrics.summary import MEANS
from medprobe.report.blocks import Block, Cell, Choice, Drawing, Part, Table, folded, part
from medprobe.report.figures import plots
from medprobe.report.numbers import (
    MISSING,
    cell,
    count,
    format_difference,
    format_value,
    metric,
    metric_cells,
    metric_head,
)
from medprobe.report.page_data import HALF, PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import (
    SLIGHT,
    Control,
    baselines,
    chance,
    control,
    difference_interval,
    letters,
)

BLIND: Final = "letters:blind"  # the part of a subset whose answers are not near by their letters
TITLES: Final = {"read": "times read"}  # what a part of subsets is by, where its name says it not


def breakdowns(results: PageData, benchmark: str, subset: str) -> dict[str, Table]:
    """Return tables by what they are broken down by, such as "relation" or "answer length".

    There are none for fewer than two parts, or for more relations than can be read.
    """
    name = results.primary(benchmark)
    rows = without_sweeps(results.rows(benchmark, metric=name)).dropna(subset="value")
    whole, _, part = (rows["subset"].str.partition("/")[place] for place in range(3))
    rows = rows.assign(by=part.str.partition(":")[0], part=part.str.partition(":")[2])
    rows = rows[whole == subset]
    is_mean, is_part = rows["relation"].isin(MEANS), rows["by"] != ""
    relations = rows[~is_mean & ~is_part].assign(by="relation", part=rows["relation"])
    if results.benchmarks[benchmark].many_relations:
        relations = relations.head(0)
    parts = pd.concat([relations, rows[is_part & (rows["relation"] == "micro")]])
    better = metric(name).better_on(subset)
    captions = {"relation": _weak(results, benchmark, subset)}
    return {
        TITLES.get(by, by.replace("-", " ")): _breakdown(
            rows_of_part, name, better == "lower", captions.get(by, "")
        )
        for by, rows_of_part in parts.groupby("by", sort=False)
        if rows_of_part["part"].nunique() > 1
    }


def _weak(results: PageData, benchmark: str, subset: str) -> str:
    """A sentence about the relations with too few answers to show anything by themselves."""
    statistics = results.statistics.get(benchmark)
    if statistics is None or "effective_answers" not in statistics:
        return ""
    names = [name.replace("_", " ") for name in weak_relations(statistics, subset)]
    if not names:
        return ""
    return (
        f". Relations with fewer than {FEWEST} effective answers, which alone can show nothing "
        f"of a relation: {', '.join(names)}"
    )


def _breakdown(rows: pd.DataFrame, name: str, ascending: bool, addition: str) -> Table:
    """A row per system, the best first by the mean of its parts, and a column per part."""
    sizes = rows.groupby("part")["n"].max()
    columns = sorted(sizes.index, key=lambda part: (first_number(part), part))
    order = rows.groupby(["model", "method"])["value"].mean()
    cells = {
        (row.model, row.method, row.part): cell(name, row.value, row.low, row.high)
        for row in rows.itertuples()
    }
    body: list[list[str | Cell]] = [
        [*system, *(cells.get((*system, part), MISSING) for part in columns)]
        for system in order.sort_values(ascending=ascending, kind="stable").index
    ]
    heads = [f"{column.replace('_', ' ')} ({sizes[column]:,.0f})" for column in columns]
    title = metric(name).title + (", per cent" if metric(name).share else "")
    caption = f"{title}; the number of queries in parentheses{addition}"
    return Table(["model", "method", *heads], body, caption)


BY: Final = "answer length"  # what these drawings, and a table of `breakdowns`, are by
FEWEST_QUERIES: Final = 5  # queries: a bin with fewer says nothing and is not drawn


def draw_lengths(results: PageData, benchmark: str) -> list[Drawing]:
    """The main results over the bins of answer length; the table beside it has all others."""
    name, subset = results.primary(benchmark), results.main_subset(benchmark)
    rows = select_systems(
        results.rows(benchmark, relation="micro", metric=name), results.main_systems(benchmark)
    )
    inside = rows["subset"].str.startswith(f"{subset}/answer-length:")
    rows = rows[inside & (rows["n"] >= FEWEST_QUERIES)]
    rows = rows.assign(length=rows["subset"].str.split(":").str[-1])
    rows = rows.sort_values("length", key=lambda names: names.map(first_number), kind="stable")
    if rows["length"].nunique() < 2:
        return []
    axes = ("characters of the answer", plots.label(name))
    share = metric(name).share
    plot = plots.curves(rows, "length", "model", axes, share, order=results.models)
    caption = f"{metric(name).title} by answer length, main results ({benchmark})."
    return [Drawing(f"{benchmark}-lengths", plot, caption)]


def draw_relations(
    rows: pd.DataFrame, metadata: Metadata, models: Sequence[str] = ()
) -> list[Drawing]:
    """Draw relations by models, under the best method that ranks the benchmark's own names.

    It is in the main metric, on the main subset. Variants that do not represent their method are
    left out, as in the tables of the best models. `models` are all models. Nothing is drawn if
    relations are too many to be read at a glance, or fewer than two.
    """
    subset, name = subsets(rows, metadata)[0], primary_metric(rows, metadata)
    judged = without_sweeps(select(rows, subset=subset, metric=name))
    relations = judged[~judged["relation"].isin(MEANS)]
    macro = comparable(select_systems(select(judged, relation="macro"), main_variants(rows)))
    if metadata.many_relations or relations["relation"].nunique() < 2 or macro.empty:
        return []
    metric = catalog()[name]
    lower = metric.better == "lower"
    best = macro.sort_values("value", ascending=lower, kind="stable").iloc[0]
    benchmark, method = best["benchmark"], best["method"]
    points = select(relations, method=method).sort_values(["relation", "model"])
    points = by_value(points, "relation", lower=lower)
    points = points.assign(relation=points["relation"].str.replace("_", " "))
    label = plots.label(name)
    plot = plots.intervals(points, "relation", "model", label, metric.share, order=models)
    caption = f"{metric.title} by relation under {method} ({benchmark}, {subset})."
    return [Drawing(f"{benchmark}-relations", plot, caption)]


TIED: Final = "_tied"  # ends the names of accuracies with ties shared
OTHER: Final = "‡"
CAPTION: Final = (
    f"Means with intervals. {OTHER} a control, or a variant that ranks other names than the "
    "rest: not compared with them. Names of equal score are ranked in alphabetical order, upper "
    "case first; “ties shared” is the expected value in random order, shown where it differs."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """Return the main results with their tests, a drawing of all, and what each subset has.

    A subset has the drawings, the table of all metrics, and the main metric taken apart.
    """
    every, about = results.rows(benchmark), results.benchmarks[benchmark]
    blocks = _main_results(results, benchmark)
    for place, subset in enumerate(results.subsets(benchmark)):
        rows = without_sweeps(results.rows(benchmark, subset=subset, relation="macro"))
        name = _main(results, benchmark, rows)
        inside: list[Block] = []
        if place == 0:
            blocks += _draw_models(results, benchmark, rows, subset, name)
            inside += draw_relations(every, about, results.models)
        inside += _all_metrics(results, benchmark, subset)
        for by, broken_down in breakdowns(results, benchmark, subset).items():
            drawings = draw_lengths(results, benchmark) if not place and by == BY else []
            inside += folded(f"By {by}, {subset}", [broken_down, *drawings])
        blocks += folded(f"All numbers on {subset}", inside)
    return part("Models side by side", blocks)


def _main_results(results: PageData, benchmark: str) -> list[Block]:
    """Each model's main result beside its control, with the tests, and by letters."""
    rows = results.main_rows(benchmark)
    if rows.empty:
        return []
    subset, name = results.main_subset(benchmark), results.primary(benchmark)
    blind = results.rows(benchmark, subset=f"{subset}/{BLIND}", relation="macro", metric=name)
    found = {(row.model, row.method): row for row in blind.itertuples()}
    systems = [row for _, row in rows.iterrows()]
    controls = [control(results, row) for row in systems]
    body = [
        [
            row["model"],
            row["method"],
            cell(name, row["value"], row["low"], row["high"], row["std"]),
            *_against(name, own),
            *_against(name, letters(results, row))[:2],
            MISSING if one is None else cell(name, one.value, one.low, one.high),
        ]
        for row, own in zip(systems, controls, strict=True)
        for one in [found.get((row["model"], row["method"]))]
    ]
    names = {own.name for own in controls if own}
    of_control = f"control: {names.pop()}" if len(names) == 1 else "control"
    heads = ["model", "method", metric_head(name), of_control, "above it", "corrected p"]
    heads += ["letters", "above them", "where letters do not find it"]
    filled = [at for at, cells in enumerate(zip(*body, strict=True)) if {*cells} != {MISSING}]
    of_others = [
        f"{title} {format_value(name, value)}"
        for title, value in baselines(results, rows.iloc[0]).items()
    ]
    caption = f"Main results on {subset}, the best first; macro means with intervals"
    caption += f". For orientation, not tested: {', '.join(of_others)}" if of_others else ""
    return [
        Table([heads[at] for at in filled], [[line[at] for at in filled] for line in body], caption)
    ]


def _against(name: str, other: Control | None) -> list[str | Cell]:
    """A control's value, the difference to it with its interval, and its p."""
    if other is None:
        return [MISSING, MISSING, MISSING]
    value, test = cell(name, other.value), other.test
    gap = f"{format_difference(name, test.difference)}  {difference_interval(name, test)}".rstrip()
    return [
        Cell(value.text, value.sort),
        Cell(gap, test.difference),
        Cell(test.evidence.removeprefix("p ").removeprefix("= "), test.p),
    ]


def _names(rows: pd.DataFrame) -> list[str]:
    """Return the metrics that are shown, in the order of their scorers.

    Those with ties shared are shown only if that matters.
    """
    measured = set(rows["metric"])
    return [name for name in catalog() if name in measured and _matters(rows, name)]


def _matters(rows: pd.DataFrame, name: str) -> bool:
    """Whether a metric is a check of no other, or differs from that other for some system."""
    checked = name.removesuffix(TIED)
    if checked == name:
        return True
    values = rows.pivot_table(index=["model", "method"], columns="metric", values="value")
    return bool((values[name] - values[checked]).abs().max() >= SLIGHT)


def _main(results: PageData, benchmark: str, rows: pd.DataFrame) -> str:
    """The benchmark's main metric, or the first of the metrics that these rows have."""
    primary = results.primary(benchmark)
    return primary if primary in set(rows["metric"]) else next(iter(_names(rows)), "")


def _draw_models(
    results: PageData, benchmark: str, rows: pd.DataFrame, subset: str, name: str
) -> list[Drawing]:
    if not name:
        return []
    by_chance = chance(results, benchmark, subset, name)
    by_chance = None if by_chance is None or by_chance < SLIGHT else by_chance
    lower = metric(name).better_on(subset) == "lower"
    rows = without_controls(rows[rows["metric"] == name])  # a table has those
    distinct = without_repeats(rows)
    shown = {*zip(distinct["model"], distinct["method"], strict=True)}
    if shown <= results.main_systems(benchmark):
        return []  # nothing, or what the table of main results has
    plot = plots.intervals(
        by_value(distinct, "method", lower=lower),
        "method",
        "model",
        plots.label(name, "macro"),
        metric(name).share,
        order=results.models,
        chance=by_chance,
    )
    caption = (
        f"{metric(name).title} on {benchmark} ({subset}) with "
        f"{100 * results.confidence:.0f} % intervals"
        + ("" if by_chance is None else "; the dotted line is chance")
        + "."
        + _repeats(rows, distinct)
    )
    return [Drawing(f"{benchmark}-{subset}-models", plot, caption)]


def _all_metrics(results: PageData, benchmark: str, subset: str) -> list[Block]:
    """Tables of the systems with the same metrics, for each mean; the best is first."""
    rows = without_sweeps(results.rows(benchmark, subset=subset))
    blocks: list[Block] = []
    rows = rows[rows["relation"].isin(MEANS)]
    for names in _groups(rows):
        shown = rows[rows["metric"].isin(names)]
        distinct = without_repeats(shown)
        caption = ("" if blocks else CAPTION) + _repeats(shown, distinct)
        tables = {
            mean: _table(results, of_mean, names, caption)
            for mean in MEANS
            if len(of_mean := distinct[distinct["relation"] == mean])
        }
        blocks.append(Choice("Mean", tables))
    return blocks


def _repeats(rows: pd.DataFrame, distinct: pd.DataFrame) -> str:
    methods = sorted(set(rows["method"]) - set(distinct["method"]))
    text = f" Not shown, as digit for digit the same as another variant: {', '.join(methods)}."
    return text if methods else ""


def _groups(rows: pd.DataFrame) -> list[list[str]]:
    """The metrics in groups, so that no system has metrics of two groups."""
    groups: list[set[str]] = []
    for names in rows.groupby(["model", "method"])["metric"].agg(set):
        alike = [group for group in groups if group & names]
        groups = [group for group in groups if group not in alike] + [names.union(*alike)]
    order = _names(rows)
    lists = [[name for name in order if name in group] for group in groups]
    return sorted(filter(None, lists), key=lambda names: order.index(names[0]))


def _table(results: PageData, rows: pd.DataFrame, names: list[str], caption: str) -> Table:
    """A row per system that has these metrics, and one for chance."""
    names = [name for name in names if name in set(rows["metric"])]
    benchmark, subset = rows["benchmark"].iloc[0], rows["subset"].iloc[0]
    lower = metric(names[0]).better_on(subset) == "lower"
    first = rows[rows["metric"] == names[0]].set_index(["model", "method"])["value"]
    rank = (first if lower else -first).to_dict()
    others = set(rows["method"]) - set(comparable(rows)["method"])
    others |= {name for name in rows["method"] if name.endswith(HALF)}
    body: list[list[str | Cell]] = []
    systems = {
        (str(model), str(method)): system
        for (model, method), system in rows.groupby(["model", "method"], sort=True)
    }
    for model, method in sorted(
        systems, key=lambda key: (key[1] in others, rank.get(key, float("inf")))
    ):
        system = systems[model, method]
        cells = metric_cells(system, names, "std")
        mark = f" {OTHER}" if method in others else ""
        body.append([model, method + mark, *cells, count(system["n"].max())])
    by_chance = [chance(results, benchmark, subset, name) for name in names]
    if any(value is not None and value >= SLIGHT for value in by_chance):
        pairs = zip(names, by_chance, strict=True)
        cells = [MISSING if value is None else cell(name, value) for name, value in pairs]
        body.append(["uniform chance", MISSING, *cells, MISSING])
    return Table(["model", "method", *map(metric_head, names), "n"], body, caption)


SECTION = Section(10, section, draw=lambda result: draw_relations(result.rows, result.metadata))
