"""The first screen: what is known of each benchmark, by which model, and how sure that is.

A benchmark has one sentence and one drawing. A table has the numbers of all of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

import pandas as pd

from medprobe.metrics.baselines import MAJORITY
from medprobe.report.blocks import Answer, Bar, Block, Cell, Chapter, Part, Table, folded, paragraph
from medprobe.report.figures.plots import wrapped
from medprobe.report.numbers import (
    MISSING,
    cell,
    format_difference,
    format_interval,
    format_without_unit,
    metric,
    metric_head,
)
from medprobe.report.page_data import PageData
from medprobe.report.verdicts import (
    MARK,
    TITLES,
    Control,
    Verdict,
    baselines,
    control,
    difference,
    verdict,
)

STEP: Final = 20  # an axis of shares ends at a multiple of one in so many
LEGEND: Final = (
    "Values are means over relations (macro), with intervals in brackets; no interval is given for "
    "fewer than three units, or if resampling changes nothing. The control of a ranking is the "
    "model's own answers to other subjects of the relation, whose names end in another word. The "
    "difference is what the subject contributes. Other metrics have controls of their own, such as "
    "always saying true. The majority baseline is each relation's best constant list of "
    "answers. It has seen the labels, which the model has not, so a model below it may still know "
    "facts; it is not tested. Differences are those of the tests, in points for shares, with the "
    f"corrected p. {MARK} not significant. Models are tested against each other under one method. "
    "Each model is shown under its best method among those significantly above their control, "
    "which favours models with many methods."
)
HEADS: Final = (
    "model",
    "value",
    "control",
    "above it",
    "majority baseline",
    "above the next model",
)


@dataclass(frozen=True)
class Standing:
    """The systems of a benchmark, subset and metric."""

    results: PageData
    benchmark: str
    subset: str
    metric: str
    rows: pd.DataFrame  # of all comparable systems, best first

    @property
    def best(self) -> pd.Series:
        """The row of the best system."""
        return self.rows.iloc[0]

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return metric(self.metric).better_on(self.subset) == "lower"

    @property
    def better(self) -> str:
        """What a sentence calls a better system."""
        return "better than" if self.lower else "above"

    def test(self, a: pd.Series, b: pd.Series) -> Verdict | None:
        """The paired test of two systems; None where they are not compared."""
        tests = self.results.tests(self.benchmark, self.subset, self.metric)
        return verdict(tests, (a["model"], a["method"]), (b["model"], b["method"]))

    def rival(self, system: pd.Series) -> tuple[pd.Series, Verdict | None] | None:
        """The best of the other models under the system's method that are not better, if any."""
        later = self.rows[self.rows.index > system.name]
        later = later[(later["method"] == system["method"]) & (later["model"] != system["model"])]
        for _, row in later.iterrows():
            test = self.test(system, row)
            if test or not metric(self.metric).within_kind:  # another kind is not compared
                return row, test
        return None


def standing(results: PageData, benchmark: str, subset: str, name: str) -> Standing | None:
    """Rank the systems by a metric; None where no system has it, or it has no better direction."""
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=name)
    rows, better = results.representatives(rows), metric(name).better_on(subset)
    if rows.empty or better == "neither":
        return None
    rows = rows.sort_values("value", ascending=better == "lower", kind="stable", ignore_index=True)
    return Standing(results, benchmark, subset, name, rows)


def leaderboard(results: PageData) -> list[Chapter]:
    """The chapter before all others; empty if no benchmark has numbers."""
    rankings = [
        ranking for name in results.benchmarks if (ranking := _first_standing(results, name))
    ]
    if not rankings:
        return []
    firsts = {ranking.benchmark: _first_by_model(ranking) for ranking in rankings}
    rankings.sort(key=lambda ranking: _sort_key(firsts[ranking.benchmark][0]), reverse=True)
    lines = [
        (Cell(ranking.benchmark, note=f"{ranking.subset}, {metric_head(ranking.metric)}"), *pair)
        for ranking in rankings
        for pair in ((ranking, row) for row, _ in firsts[ranking.benchmark])
    ]
    parts = [
        Part("", [_answer(ranking, firsts[ranking.benchmark]) for ranking in rankings]),
        Part("All of these numbers", [table("benchmark", lines), *legend()]),
    ]
    return [Chapter("leaderboard", _title(firsts), [*_synthetic(results)], parts)]


def _title(firsts: Mapping[str, list["First"]]) -> str:
    """The answer to the page's question: the model that is above its control most often."""
    above = Counter(
        str(first[0]["model"]) for of in firsts.values() for first in of if _known(first)
    )
    if not above:
        return "No model is significantly above its control"
    [(model, most), *others] = above.most_common()
    count = f"{most} of {len(firsts)} benchmarks" if len(firsts) > 1 else next(iter(firsts))
    also = [name for name, number in others if number == most]
    names = f"{model} and {also[0]}" if len(also) == 1 else f"{len(also) + 1} models"
    if also:
        return f"{names} are significantly above their control on {count}"
    return f"{model} is significantly above its control on {count}"


def answer(results: PageData, benchmark: str) -> list[Block]:
    """The sentence and the drawing of a benchmark; empty if it has no numbers."""
    ranking = _first_standing(results, benchmark)
    return [_answer(ranking, _first_by_model(ranking)), *legend()] if ranking else []


def legend() -> list[Block]:
    """What sentences, drawings and tables mean, which opens by a click."""
    return folded("What the numbers and marks mean", paragraph(LEGEND))


def table(head: str, lines: Iterable[tuple[str | Cell, Standing, pd.Series]]) -> Table:
    """Show systems beside their controls, the majority baseline and the next models.

    Args:
        head: what the labels are.
        lines: a label, and a system of a standing, for each line.
    """
    body = [[label, *_line(ranking, row)] for label, ranking, row in lines]
    filled = [place for place, cells in enumerate(zip(*body, strict=True)) if {*cells} != {MISSING}]
    heads = [head, *HEADS]
    return Table([heads[at] for at in filled], [[line[at] for at in filled] for line in body])


def _line(ranking: Standing, row: pd.Series) -> list[str | Cell]:
    own, majority = control(ranking.results, row), _majority(ranking, row)
    rival = ranking.rival(row)
    return [
        Cell(str(row["model"]), note=wrapped(str(row["method"]))),
        _value(ranking, row),
        *([MISSING, MISSING] if own is None else _control(ranking, own)),
        MISSING if majority is None else cell(ranking.metric, majority),
        _next(ranking, *rival) if rival else MISSING,
    ]


def _value(ranking: Standing, row: pd.Series) -> Cell:
    number = cell(ranking.metric, row["value"])
    notes = [
        format_interval(ranking.metric, row["low"], row["high"]) or "no interval",
        "lower is better" if ranking.lower else "",
    ]
    return Cell(number.text, number.sort, number.shade, "\n".join(filter(None, notes)))


def _majority(ranking: Standing, row: pd.Series) -> float | None:
    return baselines(ranking.results, row).get(TITLES[MAJORITY])


def _control(ranking: Standing, own: Control) -> list[str | Cell]:
    number = cell(ranking.metric, own.value)
    gap = format_difference(ranking.metric, own.difference)
    return [
        Cell(number.text, number.sort, note=wrapped(own.name)),
        Cell(f"{gap} {own.mark}".strip(), own.difference, note=own.evidence),
    ]


def _next(ranking: Standing, rival: pd.Series, test: Verdict | None) -> Cell:
    """The difference to the next model, which is named below it."""
    name = f"{rival['model']} {format_without_unit(ranking.metric, rival['value'])}"
    gap = difference(ranking.metric, test)
    if not isinstance(gap, Cell):
        return Cell(MISSING, note=f"{name}\nnot tested")
    return Cell(gap.text, gap.sort, note=f"{name}\n{gap.note}")


def _first_standing(results: PageData, benchmark: str) -> Standing | None:
    subset, name = results.main_subset(benchmark), results.primary(benchmark)
    return standing(results, benchmark, subset, name)


First = tuple[pd.Series, Control | None]
"""A model under its best method, and its control."""


def _first_by_model(ranking: Standing) -> list[First]:
    """Each model's best system: those that are shown to beat their control first, then others."""
    pairs = [(row, control(ranking.results, row)) for _, row in ranking.rows.iterrows()]
    pairs.sort(key=lambda pair: not _known(pair))
    firsts: dict[str, First] = {}
    for row, own in pairs:
        firsts.setdefault(str(row["model"]), (row, own))
    return [*firsts.values()]


def _known(first: First) -> bool:
    return first[1] is not None and first[1].beaten


def _sort_key(first: First) -> tuple[bool, float]:
    """Whether a system is shown to beat its control, and by how much."""
    return _known(first), abs(first[1].difference) if first[1] else 0.0


def _answer(ranking: Standing, firsts: list[First]) -> Answer:
    left, right = _ends(ranking, firsts)
    share, best = metric(ranking.metric).share, ranking.best
    return Answer(
        ranking.benchmark,
        f"{ranking.subset}, {metric(ranking.metric).title}, {best['n']:,.0f} queries",
        f"{100 * left:.0f} %" if share else f"{left:.3g}",
        f"{100 * right:.0f} %" if share else f"{right:.3g}",
        [
            _bar(ranking, first, firsts[place + 1 :], left, right)
            for place, first in enumerate(firsts)
        ],
    )


def _ends(ranking: Standing, firsts: list[First]) -> tuple[float, float]:
    """The numbers at the ends of the axis."""
    numbers = [row[name] for row, _ in firsts for name in ("value", "low", "high")]
    numbers += [own.value for _, own in firsts if own]
    numbers += [_majority(ranking, row) or 0 for row, _ in firsts]
    numbers = [number for number in numbers if not pd.isna(number)]
    right = max(*numbers, 1 / STEP)
    is_share = metric(ranking.metric).share
    return min(0.0, *numbers), ceil(STEP * right) / STEP if is_share else right


def _bar(ranking: Standing, first: First, others: list[First], left: float, right: float) -> Bar:
    row, own = first
    numbers = {name: row[name] for name in ("value", "low", "high")}
    number = format_without_unit(ranking.metric, row["value"])
    interval = format_interval(ranking.metric, row["low"], row["high"])
    about = f"{row['method']}: {number} {interval}".rstrip()
    if own:
        numbers["control"] = own.value
        about += f", {own.name} {format_without_unit(ranking.metric, own.value)}"
    for title, value in baselines(ranking.results, row).items():
        about += f", {title} {format_without_unit(ranking.metric, value)}"
        if title == TITLES[MAJORITY]:
            numbers["majority"] = value
    return Bar(
        model=str(row["model"]),
        number=number,
        evidence=own.evidence if own else "no control",
        about=about,
        known=_known(first),
        places={
            name: 100 * (place - left) / (right - left)
            for name, place in numbers.items()
            if not pd.isna(place)
        },
        says=_sentence_start(ranking, row, own),
        after=f"; the next model is `{row['model']}`, by `{row['method']}`, not tested against it",
        beside=_beside(ranking, first, others),
    )


def _sentence_start(ranking: Standing, row: pd.Series, own: Control | None) -> str:
    """Where a system stands next to its control; the drawing has the numbers."""
    model, place = f"`{row['model']}`", f"on `{ranking.benchmark}`, by `{row['method']}`"
    if own is None or own.clear is None:
        return f"{model} is not tested against {own.name if own else 'a control'} {place}"
    if own.clear and not own.beaten:
        worse = "worse than" if ranking.lower else "below"
        return f"{model} is significantly {worse} {own.name} {place}"
    verb = "is significantly" if own.beaten else "is not significantly"
    return f"{model} {verb} {ranking.better} {own.name} {place}"


def _beside(ranking: Standing, first: First, others: list[First]) -> dict[str, str]:
    """What else is said of the models that come after the first one: of many, few are compared."""
    own = first[1]
    if own and own.clear is not None and not own.beaten:
        return {"": f"; no other of these models is significantly {ranking.better} its control"}
    ends = {str(other[0]["model"]): _sentence_end(ranking, first, other) for other in others}
    return {model: end for model, end in ends.items() if end}


def _sentence_end(ranking: Standing, first: First, other: First) -> str:
    (best, _), (row, _) = first, other
    if row["value"] == best["value"]:
        return f"; `{row['model']}` has the same"
    if (row["value"] < best["value"]) == ranking.lower:
        name, verb = row["model"], "scores better, but is not significantly"
        return f"; `{name}` {verb} {ranking.better} its control"
    test = ranking.test(best, row)
    if test is None:
        return ""
    gap = "" if test.clear else ", not significantly different"
    return f"; the next model is `{row['model']}`{gap}"


def _synthetic(results: PageData) -> list[str]:
    models = sorted({*results.models} & results.invented)
    names = "all models" if models == results.models else ", ".join(models)
    text = f"Trained on the synthetic sample world: {names}. This says nothing about real models."
    return [text] if models else []
