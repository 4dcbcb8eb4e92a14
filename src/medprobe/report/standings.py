"""The best system by one metric on one subset, and its comparisons with others and baselines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.report.baselines import Baseline, baselines
from medprobe.report.blocks import Cell, Table
from medprobe.report.figures.plots import wrapped
from medprobe.report.numbers import MISSING, cell, format_without_unit, metric
from medprobe.report.results import Results
from medprobe.report.verdicts import MARK, Verdict, difference, verdict

CAPTION: Final = (
    "Macro means with intervals. Baseline: the strongest of uniform chance, any answer of the "
    "relation, the prior (the commonest answers for other subjects) and the method's controls. "
    f"{MARK} not shown to be beaten, by the paired test or by the interval (chance that is not "
    "tested). Difference: to the next model under the "
    f"same method, with the corrected p of the paired test. {MARK} not significantly better than "
    "all other models under the same method. Systems with other methods are not tested against the "
    "best one. No interval: fewer than three units, or a value that no resample moves."
)


@dataclass(frozen=True)
class Standing:
    """The systems of a benchmark, subset and metric."""

    benchmark: str
    subset: str
    metric: str
    rows: pd.DataFrame  # of all comparable systems, best first
    rivals: list[tuple[pd.Series, Verdict | None]]  # other models, same method, best first
    baselines: list[Baseline]  # of the best system, strongest first

    @property
    def best(self) -> pd.Series:
        """The row of the best system."""
        return self.rows.iloc[0]

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return metric(self.metric).better_on(self.subset) == "lower"

    @property
    def other_models(self) -> pd.DataFrame:
        """The rows of other models, best first."""
        return self.rows[self.rows["model"] != self.best["model"]]

    @property
    def clear(self) -> bool:
        """Whether the best is significantly better than all other models under its method."""
        return bool(self.rivals) and all(test is not None and test.clear for _, test in self.rivals)


def standing(results: Results, benchmark: str, subset: str, name: str) -> Standing | None:
    """Rank the systems by a metric; None where no system has it, or it has no better direction."""
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
    rows, better = results.representatives(rows), metric(name).better_on(subset)
    if rows.empty or better == "neither":
        return None
    rows = rows.sort_values("value", ascending=better == "lower", kind="stable", ignore_index=True)
    best = rows.iloc[0]
    tests = results.tests(benchmark, subset, name)
    same_method = rows[(rows["method"] == best["method"]) & (rows["model"] != best["model"])]
    rivals = [
        (row, verdict(tests, (best["model"], best["method"]), (row["model"], row["method"])))
        for _, row in same_method.iterrows()
    ]
    if metric(name).within_kind:  # models of another kind are not compared
        rivals = [(row, test) for row, test in rivals if test]
    return Standing(benchmark, subset, name, rows, rivals, baselines(results, best))


def table(
    head: str, standings: Sequence[tuple[str | Cell, Standing]], caption: str = CAPTION
) -> Table:
    """Show one line per standing.

    Args:
        head: what the labels are.
        standings: a label and a standing for each line.
        caption: of the table.
    """
    heads = [head, "best model", "value", "baseline", "next, same method", "difference"]
    heads.append("best of other methods")
    body = [[label, *_line(entry)] for label, entry in standings]
    filled = [place for place, cells in enumerate(zip(*body, strict=True)) if {*cells} != {MISSING}]
    lines = [[line[place] for place in filled] for line in body]
    return Table([heads[place] for place in filled], lines, caption)


def _line(entry: Standing) -> list[str | Cell]:
    rival, test = entry.rivals[0] if entry.rivals else (None, None)
    under_others = entry.other_models[entry.other_models["method"] != entry.best["method"]]
    return [
        Cell(str(entry.best["model"]), note=wrapped(str(entry.best["method"]))),
        value(entry.metric, entry.best, "lower is better" if entry.lower else ""),
        _baseline(entry),
        MISSING if rival is None else _system_cell(entry.metric, rival, method=False),
        difference(entry.metric, test, clear=entry.clear),
        MISSING
        if under_others.empty
        else _system_cell(entry.metric, under_others.iloc[0], method=True),
    ]


def _system_cell(name: str, row: pd.Series, *, method: bool) -> Cell:
    """A model, below it its value, and its method too if that is asked for."""
    numbers = value(name, row)
    lines = [wrapped(str(row["method"]))] if method else []
    lines.append(f"{numbers.text} {numbers.note}")
    return Cell(str(row["model"]), note="\n".join(lines))


def _baseline(entry: Standing) -> str | Cell:
    if not entry.baselines:
        return MISSING
    strongest = entry.baselines[0]
    number = cell(entry.metric, strongest.value)
    note = f"{strongest.name}\n{strongest.evidence}".strip()
    return Cell(f"{number.text} {strongest.mark}".strip(), number.sort, note=note)


def value(name: str, row: pd.Series, note: str = "", mark: str = "") -> Cell:
    """A row's value with a mark behind it, its interval and a further note below it."""
    number = cell(name, row["value"])
    low, high = (format_without_unit(name, row[edge]) for edge in ("low", "high"))
    notes = ["no interval" if pd.isna(row["low"]) else f"[{low}, {high}]", note]
    text = f"{number.text} {mark}".strip()
    return Cell(text, number.sort, number.shade, "\n".join(filter(None, notes)))


def baseline_mark(results: Results, row: pd.Series) -> str:
    """The sign of a system that is not shown to beat its strongest baseline, or nothing."""
    strongest = next(iter(baselines(results, row)), None)
    return strongest.mark if strongest else ""
