"""The best system of each benchmark at a glance: questions, answers, and what to try next."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from medprobe.core.papers import papers, place, strongest
from medprobe.core.tables import BASELINE
from medprobe.metrics.accuracy import WITHOUT
from medprobe.metrics.subset_tests import contrast_name
from medprobe.metrics.summary import MEANS
from medprobe.report import standings
from medprobe.report.baselines import baselines
from medprobe.report.blocks import Block, Cell, Choice, Table
from medprobe.report.figures.rows import comparable
from medprobe.report.numbers import MISSING, cell, format_difference, format_value, metric
from medprobe.report.results import Results
from medprobe.report.sections.published import data_note
from medprobe.report.standings import Standing
from medprobe.report.verdicts import MARK, SLIGHT, difference, verdict

HARD: Final = "hard"
ECHO: Final = "subject_at_1"
CARRIED: Final = 0.8  # of all right answers: the relations that have so many carry a result
MOST: Final = 3  # relations, and variants, that are listed
CAPTION: Final = (
    f"Differences are to the value in the first row, in points for shares. {MARK} not significant "
    "by the paired test, or for the hard set by a test that draws whole clusters of both sets; a "
    "baseline: not shown to be beaten."
)

Line = list[str | Cell]


def tables(results: Results, rankings: Sequence[Standing]) -> list[Block]:
    """A table for the best system of each benchmark, of which one is shown."""
    return [Choice("Benchmark", {entry.benchmark: _table(results, entry) for entry in rankings})]


def _table(results: Results, entry: Standing) -> Table:
    lines = [
        _value(results, entry),
        *_baseline(results, entry),
        *_published(results, entry),
        *_echo(results, entry),
        *_without_echo(results, entry),
        *_hard(results, entry),
        *_variants(results, entry),
        *_relations(results, entry),
    ]
    model, method = _system(entry)
    caption = f"{model}, {method}, on {entry.benchmark} ({entry.subset}). {CAPTION}"
    return Table(["question", "answer", "difference", "what to try next"], lines, caption)


def _system(entry: Standing) -> tuple[str, str]:
    return str(entry.best["model"]), str(entry.best["method"])


def _value(results: Results, entry: Standing) -> Line:
    queries = f"{entry.best['n']:,.0f} queries"
    unit = " (%)" if metric(entry.metric).share else ""
    question = Cell("How good is it?", note=f"{metric(entry.metric).title}{unit}, macro")
    number = standings.value(entry.metric, entry.best, queries)
    command = f"medprobe export {entry.benchmark} --format markdown"
    return [question, number, MISSING, command]


def _baseline(results: Results, entry: Standing) -> Iterator[Line]:
    """The strongest baseline, which needs no knowledge."""
    if strongest_baseline := next(iter(baselines(results, entry.best)), None):
        gap = float(entry.best["value"] - strongest_baseline.value)
        difference_text = format_difference(entry.metric, gap)
        yield [
            Cell("Is it knowledge?", note=f"strongest baseline: {strongest_baseline.name}"),
            cell(entry.metric, strongest_baseline.value),
            Cell(
                f"{difference_text} {strongest_baseline.mark}".strip(),
                gap,
                note=strongest_baseline.evidence or "by the interval",
            ),
            _against(results, entry, strongest_baseline.name),
        ]


def _against(results: Results, entry: Standing, baseline: str) -> str:
    """The command that lists the queries on which the system and a baseline differ."""
    model, method = _system(entry)
    if baseline.partition(":")[0] == method.partition(":")[0]:
        other = f"{model}/{baseline}"
    elif entry.benchmark in set(results.priors["benchmark"]):
        other = f"{BASELINE}/prior"
    else:
        return f"medprobe export {entry.benchmark} --format markdown"
    return f"medprobe diff {entry.benchmark} {model}/{method} {other}"


def _published(results: Results, entry: Standing) -> Iterator[Line]:
    """The best published model, where the benchmark is a paper's."""
    printed_as = results.printed(entry.benchmark)
    best = strongest(printed_as, entry.subset, entry.metric, lower=entry.lower)
    if best is None or results.benchmarks[entry.benchmark].invented:
        return
    name, number, row = best
    paper, scale = papers()[name], 100 if metric(entry.metric).share else 1
    printed, spread = row.values[entry.metric], row.std.get(entry.metric)
    same = data_note(results, entry.benchmark, entry.subset, paper)
    gap = entry.best["value"] - printed / scale
    notes = [f"{row.model}, {row.method}", f"{paper.version}, {place(number)}"]
    text = f"{printed:g}" + (f" ± {spread:g}" if spread else "")
    yield [
        Cell("How good are published models?", note=f"the paper's data? {same}"),
        Cell(text, printed / scale, printed / scale if scale > 1 else None, "\n".join(notes)),
        Cell(format_difference(entry.metric, gap), gap, note="not tested"),
        f"medprobe adopt {name}",
    ]


def _echo(results: Results, entry: Standing) -> Iterator[Line]:
    """How often the subject itself is ranked first, as that is no knowledge."""
    model, method = _system(entry)
    page = results.query_pages.get(entry.benchmark)
    query = page.first_query if page else ""
    keys = {"subset": entry.subset, "relation": "micro", "model": model, "method": method}
    for _, row in results.rows(entry.benchmark, metric=ECHO, **keys).iterrows():
        yield [
            Cell("What is ranked first instead?", note="the query's own subject (%), micro"),
            standings.value(ECHO, row),
            MISSING,
            f"medprobe show {entry.benchmark} {shlex.quote(query)}" if query else MISSING,
        ]


def _without_echo(results: Results, entry: Standing) -> Iterator[Line]:
    """The value and the strongest baseline where the query's own subject is not ranked."""
    model, method = _system(entry)
    keys = {"subset": entry.subset, "relation": "macro", "model": model, "method": method}
    name = f"{entry.metric}{WITHOUT}"
    for _, row in results.rows(entry.benchmark, metric=name, **keys).iterrows():
        strongest_baseline = next(iter(baselines(results, row)), None)
        if strongest_baseline is None or abs(row["value"] - entry.best["value"]) < SLIGHT:
            continue
        gap = float(row["value"] - strongest_baseline.value)
        baseline = f"{strongest_baseline.name} {format_value(name, strongest_baseline.value)}"
        note = f"own subject not ranked;\nstrongest baseline: {baseline}"
        yield [
            Cell("Is it knowledge, without that?", note=note),
            standings.value(name, row),
            Cell(
                f"{format_difference(name, gap)} {strongest_baseline.mark}".strip(),
                gap,
                note=strongest_baseline.evidence or "by the interval",
            ),
            f"medprobe export {entry.benchmark} --metric {name} --format markdown",
        ]


def _hard(results: Results, entry: Standing) -> Iterator[Line]:
    """The hard set, and the test of its queries against the rest."""
    model, method = _system(entry)
    rows = results.rows(entry.benchmark, metric=entry.metric, model=model, method=method)
    hard = rows[(rows["subset"] == HARD) & (rows["relation"] == "macro")]
    if hard.empty or entry.subset == HARD:
        return
    tests = results.tests(entry.benchmark, contrast_name(HARD, entry.subset), entry.metric)
    test = verdict(tests, (model, method), (model, method))
    gap = float(hard["value"].iloc[0] - entry.best["value"])
    untested = Cell(format_difference(entry.metric, gap), gap, note="not tested")
    yield [
        Cell(
            "Does the hard set change it?",
            note="queries that do not reveal the answer,\nranked among their own names",
        ),
        standings.value(entry.metric, hard.iloc[0], f"{hard['n'].iloc[0]:,.0f} queries"),
        difference(entry.metric, test) if test else untested,
        f"medprobe export {entry.benchmark}/{HARD} --format markdown",
    ]


def _variants(results: Results, entry: Standing) -> Iterator[Line]:
    """Other variants of the method, such as the model before rewiring, with the paired test."""
    model, method = _system(entry)
    rows = results.rows(
        entry.benchmark, subset=entry.subset, relation="macro", metric=entry.metric, model=model
    )
    rows = comparable(rows)
    base = method.partition(":")[0]
    others = rows[(rows["method"].str.partition(":")[0] == base) & (rows["method"] != method)]
    others = others.sort_values("value", ascending=entry.lower, kind="stable")
    tests = results.tests(entry.benchmark, entry.subset, entry.metric)
    for _, row in others.head(MOST).iterrows():
        variant = str(row["method"]).partition(":")[2] or base
        change = "rewiring" if variant == "original" else "the method's setting"
        yield [
            Cell(f"Does {change} change it?", note=variant),
            standings.value(entry.metric, row),
            difference(entry.metric, verdict(tests, (model, str(row["method"])), (model, method))),
            f"medprobe diff {entry.benchmark} {model}/{method} {model}/{row['method']}",
        ]


def _relations(results: Results, entry: Standing) -> Iterator[Line]:
    """The relations with most of the right answers."""
    about, (model, method) = results.benchmarks[entry.benchmark], _system(entry)
    rows = results.rows(
        entry.benchmark, subset=entry.subset, metric=entry.metric, model=model, method=method
    )
    rows = rows[~rows["relation"].isin(MEANS)]
    hits = rows["value"] * rows["n"]
    if about.many_relations or not about.ranks_answers or len(rows) < 2 or not hits.sum() > 0:
        return
    rows = rows.assign(share=hits / hits.sum()).sort_values("share", ascending=False, kind="stable")
    needed = 1 + int((rows["share"].cumsum() < CARRIED - 1e-9).sum())
    listed = rows.head(min(needed, MOST))
    names = [
        f"{row.relation.replace('_', ' ')}: {format_value(entry.metric, row.value)}"
        for row in listed.itertuples()
    ]
    share = 100 * listed["share"].sum()
    yield [
        Cell("Which relations carry it?", note=f"{share:.0f} % of the right answers"),
        Cell(names[0], note="\n".join(names[1:])),
        MISSING,
        f"medprobe run {model} --method {method.partition(':')[0]} --benchmark {entry.benchmark} "
        "--limit 200 --all",
    ]
