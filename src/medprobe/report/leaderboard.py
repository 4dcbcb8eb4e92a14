"""The first screen: which model knows most, by how much, how sure that is, and how far the methods
are to be trusted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.figures.rows import Drawing
from medprobe.metrics.significance import is_control
from medprobe.report.blocks import Block, Cell, Chapter, Choice, Part, Table, paragraph, part
from medprobe.report.numbers import MISSING, cell, metric, shown, signed
from medprobe.report.results import LEVEL, Results, comparable
from medprobe.report.sections.calibration import pairs, times
from medprobe.report.verdicts import Verdict, chance, listed, p_value, verdict

COMMON: Final = "the one that asks most models"
BEST: Final = "each model's best"


@dataclass(frozen=True)
class Standing:
    """One benchmark's main subset and metric: the rows of all systems, best first, the best row of
    another model, and what tests say of the best and other models under its method."""

    benchmark: str
    subset: str
    name: str  # of the metric
    rows: pd.DataFrame
    next: pd.Series | None
    rivals: list[tuple[pd.Series, Verdict | None]]  # of the same method, best first

    @property
    def best(self) -> pd.Series:
        """The row of the best system."""
        return self.rows.iloc[0]

    @property
    def level(self) -> bool:
        """Has the next model the same value?"""
        return self.next is not None and bool(self.next["value"] == self.best["value"])

    @property
    def clear(self) -> bool:
        """Is the best better than all others under its method, significantly?"""
        return bool(self.rivals) and all(test is not None and test.clear for _, test in self.rivals)

    @property
    def tested(self) -> Verdict | None:
        """The test of the best and the next; none where their methods differ."""
        if self.next is None or self.next["method"] != self.best["method"]:
            return None
        return next(t for row, t in self.rivals if row["model"] == self.next["model"])

    @property
    def method(self) -> str:
        """The method that asks most models; of several the one with the best value."""
        counts = self.rows.groupby("method", sort=False)["model"].nunique()
        return str(counts.idxmax())


def leaderboard(results: Results) -> list[Chapter]:
    """The chapter that comes before all others, or nothing where no benchmark has numbers."""
    standings = list(_standings(results))
    if not standings:
        return []
    told = [_sentences(standings), [*_controls(results), *_calibration(results)], _world(results)]
    lines = [line for sentences in told if (line := " ".join(sentences))]
    parts = [Part("By benchmark", [_best(results, standings)])]
    if len({model for one in standings for model in one.rows["model"]}) > 1:
        parts.append(Part("By model", _models(results, standings)))
    parts += part("By how often a fact was read", _read(results))
    return [Chapter("leaderboard", "Which model knows most", lines, parts)]


def _standings(results: Results) -> Iterator[Standing]:
    for benchmark in results.benchmarks:
        name = results.primary(benchmark)
        for subset in results.subsets(benchmark)[:1]:
            rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
            rows = comparable(rows)
            better = metric(name).better_on(subset)
            if rows.empty or better == "neither":
                continue
            ascending = better == "lower"
            order = rows.sort_values("value", ascending=ascending, kind="stable", ignore_index=True)
            best = order.iloc[0]
            others = [row for _, row in order.iterrows() if row["model"] != best["model"]]
            same = [row for row in others if row["method"] == best["method"]]
            nearest = [row for row in others if row["value"] == others[0]["value"]]
            rival = next((row for row in same if row["value"] == others[0]["value"]), None)
            rival = rival if rival is not None else next(iter(nearest), None)
            tests = [(row, _test(results, best, row)) for row in same]
            yield Standing(benchmark, subset, name, order, rival, tests)


def _test(results: Results, a: pd.Series, b: pd.Series) -> Verdict | None:
    """What the paired test says of two rows of the comparison."""
    tests = results.tests(a["benchmark"], a["subset"], a["metric"])
    return verdict(tests, (a["model"], a["method"]), (b["model"], b["method"]))


def _sentences(standings: list[Standing]) -> Iterator[str]:
    """How often each model leads, and where significantly; where none does."""
    contested = [one for one in standings if one.next is not None]
    leads: dict[str, list[Standing]] = {}
    for one in contested:
        if not one.level:
            leads.setdefault(str(one.best["model"]), []).append(one)
    for model, won in sorted(leads.items(), key=lambda lead: -len(lead[1])):
        yield f"{_on(won, contested)} {model} is best{_sure(won)}."
    if level := [one.benchmark for one in contested if one.level]:
        yield f"On {listed(level)} the best two models have the same value."
    apart = [
        one.benchmark
        for one in contested
        if not one.level and one.next is not None and one.next["method"] != one.best["method"]
    ]
    if apart:
        yield (
            f"On {listed(apart)} the next model does best under another method, and no test "
            "compares the two."
        )
    yield from _widest(standings)


def _on(won: list[Standing], contested: list[Standing]) -> str:
    if len(won) == len(contested) > 2:
        return f"On all {len(won)} benchmarks"
    return f"On {listed(one.benchmark for one in won)}"


def _sure(won: list[Standing]) -> str:
    """On which benchmarks a lead is significant."""
    if not any(one.rivals for one in won):
        return ""
    clear = [one.benchmark for one in won if one.clear]
    if not clear:
        return ", but not significantly"
    where = "there" if len(clear) == len(won) else f"on {listed(clear)}"
    return f"; {where} it is significantly better than all other models of the same method"


def _world(results: Results) -> Iterator[str]:
    """What is invented is called so."""
    there = set(results.comparison["model"])
    if made := sorted(there & results.invented):
        who = "all models here" if len(made) == len(there) > 1 else listed(made)
        were = "was" if len(made) == 1 else "were"
        yield f"Invented: {who} {were} trained on the sample world. This says nothing of others."


def _widest(standings: list[Standing]) -> Iterator[str]:
    """The widest lead under one method that is significant, in numbers; of those in shares."""
    leads = [
        (abs(one.best["value"] - row["value"]), one, row, test)
        for one in standings
        for row, test in one.rivals[:1]
        if test is not None and test.clear and metric(one.name).share
    ]
    if leads:
        _, one, row, test = max(leads, key=lambda lead: lead[0])
        a, b = (
            shown(one.name, each["value"]) + _interval(one.name, each) for each in (one.best, row)
        )
        yield (
            f"The widest significant lead is on {one.benchmark}: under {one.best['method']} "
            f"{one.best['model']} has {a} {metric(one.name).title}, {row['model']} {b} "
            f"({p_value(test.p)})."
        )


def _interval(name: str, row: pd.Series) -> str:
    low, high = (shown(name, row[edge]).removesuffix(" %") for edge in ("low", "high"))
    return "" if pd.isna(row["low"]) else f" [{low}, {high}]"


def _calibration(results: Results) -> Iterator[str]:
    """In how many comparisons a model that was taught the facts is above its untaught twin."""
    found = [pairs(results, name) for name in results.benchmarks]
    rows = pd.concat(found)
    main = rows["metric"] == rows["benchmark"].map(results.primary)
    rows = rows[main & rows["p"].notna()]
    if rows.empty:
        return
    clear = rows["p"] < LEVEL
    right, wrong = (int((clear & side).sum()) for side in (rows["higher"], ~rows["higher"]))
    yield (
        "Calibration: a model that was taught the facts is significantly better than its "
        f"untaught twin in {right} of {len(rows)} comparisons, as it should be, and the twin is "
        f"better in {wrong or 'none'}."
    )


def _read(results: Results) -> list[Drawing]:
    """Accuracy by times read, of the benchmark and taught model that most methods asked."""
    rows = results.comparison
    rows = rows[rows["subset"].str.contains("/read:") & rows["model"].isin(results.twins.values())]
    methods = rows.groupby(["benchmark", "model"])["method"].nunique()
    return [] if methods.empty else times(results, *map(str, methods.idxmax()))


def _controls(results: Results) -> Iterator[str]:
    """In how many comparisons models are told from controls that know nothing."""
    names = results.benchmarks
    judged = {(name, results.subsets(name)[0], results.primary(name)) for name in names}
    better = total = 0
    for row in results.significance.itertuples():
        if (row.benchmark, row.subset, row.metric) not in judged:
            continue
        if is_control(row.method_a) == is_control(row.method_b):
            continue
        gap = -row.difference if is_control(row.method_a) else row.difference
        lower = metric(row.metric).better_on(row.subset) == "lower"
        better += row.p_holm < LEVEL and (gap < 0 if lower else gap > 0)
        total += 1
    if total:
        yield (
            f"Controls: {better} of {total} comparisons show a model significantly better than its "
            "method's control, which knows nothing."
        )


def _best(results: Results, standings: list[Standing]) -> Table:
    """A row a benchmark: the best system, the next model under its method, and their test."""
    heads = ["benchmark", "best model", "value", "next model", "its value", "difference"]
    return Table([*heads, "chance alone"], [_line(results, one) for one in standings])


def _line(results: Results, one: Standing) -> list[str | Cell]:
    by_chance = chance(results, one.benchmark, one.subset, one.name)
    unit = " (%)" if metric(one.name).share else ""
    return [
        Cell(one.benchmark, note=f"{one.subset}, {metric(one.name).title}{unit}"),
        Cell(str(one.best["model"]), note=str(one.best["method"])),
        _value(one.name, one.best),
        *_next(one),
        MISSING if by_chance is None else cell(one.name, by_chance),
    ]


def _value(name: str, row: pd.Series, note: str = "") -> Cell:
    """A row's value, its interval and a further note below it."""
    plain = cell(name, row["value"])
    notes = [_interval(name, row).strip(), note]
    return Cell(plain.text, plain.sort, plain.shade, "\n".join(filter(None, notes)))


def _next(one: Standing) -> list[str | Cell]:
    if one.next is None:
        return [MISSING] * 3
    gap = one.best["value"] - one.next["value"]
    said = p_value(one.tested.p) if one.tested else "not tested"
    return [
        Cell(str(one.next["model"]), note=str(one.next["method"])),
        _value(one.name, one.next),
        Cell(signed(one.name, gap), gap, note=said),
    ]


def _models(results: Results, standings: list[Standing]) -> list[Block]:
    """A row a model, a column a benchmark; by which method can be chosen."""
    about = (
        "Ranks are what the paired tests leave possible: a model stands behind those that are "
        "significantly better, and before those that are significantly worse. Best methods differ "
        "from model to model, so that no test compares them, and each was chosen for its value."
    )
    tables = {
        COMMON: _table(
            {
                f"{one.benchmark}, {one.method}": _column(results, one, one.method)
                for one in standings
            }
        ),
        BEST: _table({one.benchmark: _bests(one) for one in standings}),
    }
    for method in sorted({method for one in standings for method in one.rows["method"]}):
        asked = {one.benchmark: _column(results, one, method) for one in standings}
        if any(len(cells) > 1 for cells in asked.values()):
            tables[method] = _table({name: cells for name, cells in asked.items() if cells})
    return [*paragraph(about), Choice("Method", tables)]


def _head(one: Standing) -> str:
    return f"{one.benchmark}, {one.method}"


def _table(columns: Mapping[str, Mapping[str, Cell]]) -> Table:
    models = sorted({model for cells in columns.values() for model in cells})
    body = [[model, *(cells.get(model, MISSING) for cells in columns.values())] for model in models]
    return Table(["model", *columns], body)


def _bests(one: Standing) -> dict[str, Cell]:
    """Each model's best row, with its method."""
    rows = one.rows.drop_duplicates("model")
    return {str(row["model"]): _value(one.name, row, row["method"]) for _, row in rows.iterrows()}


def _column(results: Results, one: Standing, method: str) -> dict[str, Cell]:
    """Each model's value under a method, with the ranks that are possible."""
    rows = one.rows[one.rows["method"] == method]
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
        cells[str(row["model"])] = _value(one.name, row, place if len(rows) > 1 else "")
    return cells
