"""The first screen: which model knows most, by how much, and how sure that is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.figures.rows import without_sweeps
from medprobe.report.blocks import Cell, Chapter, Part, Table, paragraph
from medprobe.report.numbers import MISSING, cell, metric, shown
from medprobe.report.results import Results, without_controls
from medprobe.report.verdicts import Verdict, chance, listed, p_value, verdict

OTHERS: Final = ("relation", "distractors")  # variants that rank other names than the rest do


@dataclass(frozen=True)
class Standing:
    """One benchmark's main subset and metric: the rows of all systems, best first, and what is said
    of the best model."""

    benchmark: str
    subset: str
    name: str  # of the metric
    rows: pd.DataFrame
    next: pd.Series | None  # the best row of another model under the same method
    test: Verdict | None  # of the two

    @property
    def best(self) -> pd.Series:
        """The row of the best system."""
        return self.rows.iloc[0]

    @property
    def level(self) -> bool:
        """Has the next model the same value?"""
        return self.next is not None and bool(self.next["value"] == self.best["value"])


def leaderboard(results: Results) -> list[Chapter]:
    """The chapter that comes before all others, or nothing where no benchmark has numbers."""
    standings = list(_standings(results))
    if not standings:
        return []
    parts = [Part("By benchmark", [*paragraph(*_sentences(standings)), _best(results, standings)])]
    if len({model for one in standings for model in one.rows["model"]}) > 1:
        about = (
            "Each model by one method a benchmark, that which asks most models. Ranks are what the "
            "paired tests leave possible: a model stands behind those that are better by more than "
            "chance, and before those that are worse by more."
        )
        parts.append(Part("By model", [*paragraph(about), _ranks(results, standings)]))
    return [Chapter("leaderboard", "Which model knows most", [], parts)]


def _standings(results: Results) -> Iterator[Standing]:
    for benchmark in results.benchmarks:
        name = results.primary(benchmark)
        for subset in results.subsets(benchmark)[:1]:
            rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
            rows = without_controls(without_sweeps(rows))
            rows = rows[~rows["method"].str.partition(":")[2].isin(OTHERS)]
            if rows.empty:
                continue
            lower = metric(name).better_on(subset) == "lower"
            order = rows.sort_values("value", ascending=lower, kind="stable", ignore_index=True)
            best = order.iloc[0]
            others = order[(order["method"] == best["method"]) & (order["model"] != best["model"])]
            rival = None if others.empty else others.iloc[0]
            test = None if rival is None else _test(results, best, rival)
            yield Standing(benchmark, subset, name, order, rival, test)


def _test(results: Results, a: pd.Series, b: pd.Series) -> Verdict | None:
    """What the paired test says of two rows of the comparison."""
    tests = results.tests(a["benchmark"], a["subset"], a["metric"])
    return verdict(tests, (a["model"], a["method"]), (b["model"], b["method"]))


def _sentences(standings: list[Standing]) -> Iterator[str]:
    """How often each model leads, and how often that is more than chance; on which benchmarks none
    does."""
    contested = [one for one in standings if one.next is not None]
    level = [one.benchmark for one in contested if one.level]
    leads: dict[str, list[Standing]] = {}
    for one in contested:
        if not one.level:
            leads.setdefault(str(one.best["model"]), []).append(one)
    for model, won in sorted(leads.items(), key=lambda lead: -len(lead[1])):
        clear = [one.benchmark for one in won if one.test is not None and one.test.clear]
        sure = f"more than chance on {listed(clear)}" if clear else "on none of them beyond chance"
        yield f"{model} leads on {len(won)} of {len(contested)} benchmarks: {sure}."
    if level:
        yield f"On {listed(level)} the best two models have the same value."


def _best(results: Results, standings: list[Standing]) -> Table:
    """A row a benchmark: the best system, the next model under its method, and their test."""
    heads = ["benchmark", "metric", "best model", "method", "value", "next model", "its value"]
    return Table(
        [*heads, "difference", "chance alone"],
        [
            [
                f"{one.benchmark} ({one.subset})",
                metric(one.name).title + (", %" if metric(one.name).share else ""),
                str(one.best["model"]),
                str(one.best["method"]),
                cell(one.name, *one.best[["value", "low", "high"]]),
                *_next(one),
                _chance(results, one),
            ]
            for one in standings
        ],
    )


def _next(one: Standing) -> list[str | Cell]:
    if one.next is None:
        return [MISSING, MISSING, MISSING]
    said = p_value(one.test.p) if one.test else "not tested"
    return [str(one.next["model"]), cell(one.name, *one.next[["value", "low", "high"]]), said]


def _chance(results: Results, one: Standing) -> str:
    value = chance(results, one.benchmark, one.subset, one.name)
    return MISSING if value is None else shown(one.name, value)


def _ranks(results: Results, standings: list[Standing]) -> Table:
    """A row a model, a column a benchmark: value, interval, and the ranks that are possible."""
    columns = {one.benchmark: _column(results, one) for one in standings}
    models = sorted({model for cells in columns.values() for model in cells})
    heads = [f"{one.benchmark}, by {_method(one)}" for one in standings]
    body = [[model, *(cells.get(model, MISSING) for cells in columns.values())] for model in models]
    return Table(["model", *heads], body)


def _method(one: Standing) -> str:
    """The method that asks most models; of several the one with the best value."""
    counts = one.rows.groupby("method", sort=False)["model"].nunique()
    return str(counts.idxmax())


def _column(results: Results, one: Standing) -> dict[str, Cell]:
    rows = one.rows[one.rows["method"] == _method(one)].drop_duplicates("model")
    lower = metric(one.name).better_on(one.subset) == "lower"
    cells = {}
    for _, row in rows.iterrows():
        above = below = 0
        for _, other in rows.iterrows():
            test = _test(results, row, other)
            if test is not None and test.clear:
                worse = test.difference > 0 if lower else test.difference < 0
                above, below = above + worse, below + (not worse)
        first, last = 1 + above, len(rows) - below
        place = f"rank {first}" if first == last else f"rank {first}–{last}"
        plain = cell(one.name, *row[["value", "low", "high"]])
        cells[str(row["model"])] = Cell(f"{plain.text}  {place}", plain.sort, plain.shade)
    return cells
