"""Calibration: does a method find what a model was taught, and only that?

Some models come in pairs of one size and training length: one has read the facts, each a known
number of times, its untaught twin (`untaught_twin_of` in params.yaml) has not. A sound method ranks
the first above the second, and facts that were read above facts that were not.

That holds of benchmarks whose identifiers are all the sample world's, and of no others.
"""

from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe import metrics
from medprobe.metrics.results import without_controls, without_sweeps
from medprobe.metrics.splits import first_number
from medprobe.report.blocks import Block, Cell, Drawing, Part, Table, paragraph, part
from medprobe.report.figures import plots
from medprobe.report.numbers import MISSING, cell, metric, metric_head
from medprobe.report.page_data import HALF, PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import MARK, verdict

RANKED: Final = ("top_1", "auc", "auroc")  # without a threshold, beside metrics that have one
NOT_COUNTED: Final = "‡"
PAIRS: Final = [
    *("benchmark", "metric", "taught", "untaught", "method"),
    *("value", "low", "high"),  # of the taught model
    *("untaught_value", "untaught_low", "untaught_high"),
    "higher",  # is the taught model better?
    "clear",  # does the interval of their difference lack 0?
]
TEXT: Final = (
    "A taught model has read half of the facts of the sample world, each a known number of times. "
    "Its untaught twin, of the same size and training length, has read none of them. A method that "
    "cannot tell the two apart does not measure what the model has read. In this world all answers "
    "are about equally frequent, and no model has read the same names in other facts."
)
CAPTION: Final = (
    f"Macro means with intervals, over facts read and not read. {MARK} the interval of "
    "the difference contains 0, or where there is none the intervals overlap. "
    f"{NOT_COUNTED} the method does not see what is asked about: a control, not counted."
)
READ: Final = (
    " Further columns: micro means of the taught model by how often it has read the fact, and of "
    "its twin on the facts that were never read."
)
REVERSED: Final = "reversed"
NEVER: Final = "0"
DOSES: Final = {NEVER: "never read", "1": "once", "2": "twice", "3-4": "3–4 times"}
TIMES: Final = "times that the taught model has read the fact"


class Counts(NamedTuple):
    """Comparisons of taught models with their twins, and who is clearly better in them."""

    comparisons: int
    taught: int
    untaught: int


def section(results: PageData, benchmark: str) -> list[Part]:
    """All pairs with their dose-response, and a drawing for each method."""
    compared = pairs(results, benchmark)
    if compared.empty:
        return []
    return part(
        "Calibration: against the truth of what was taught",
        paragraph(TEXT, _outcome(compared)),
        [_pairs(results, compared)],
        _drawings(results, benchmark, compared),
    )


def pairs(results: PageData, benchmark: str) -> pd.DataFrame:
    """Compare each taught model with its twin under each method.

    Methods are judged by the benchmark's main metric; those that do not have it, by what stands for
    their scorer; and by those of RANKED that they have.
    """
    if not results.benchmarks[benchmark].invented:
        return pd.DataFrame(columns=PAIRS)
    subset = results.main_subset(benchmark)
    every = results.rows(benchmark, subset=subset, relation="macro")
    every = without_controls(without_sweeps(every))
    having = {str(name): set(rows["method"]) for name, rows in every.groupby("metric")}
    every = every.set_index(["metric", "model", "method"])
    main = results.primary(benchmark)
    of_main = having.get(main, set())
    first = [metrics.find(scorer).METRICS[0].name for scorer in metrics.list_names()]
    others = [name for name in first if not having.get(name, of_main) & of_main]
    rows: list[tuple[Any, ...]] = []
    for name in dict.fromkeys([main, *others, *(name for name in RANKED if name in having)]):
        of_metric = every.loc[name].sort_index() if name in having else every.head(0)
        tests = results.tests(benchmark, subset, name)
        lower = metric(name).better_on(subset) == "lower"
        for untaught, taught in sorted(results.twins.items(), key=lambda twins: twins[::-1]):
            for method in (method for model, method in of_metric.index if model == taught):
                if (untaught, method) not in of_metric.index:
                    continue
                a, b = of_metric.loc[(taught, method)], of_metric.loc[(untaught, method)]
                won = bool(a["value"] < b["value"] if lower else a["value"] > b["value"])
                numbers = [row[key] for row in (a, b) for key in ("value", "low", "high")]
                test = verdict(tests, (taught, method), (untaught, method))
                apart = bool(a["low"] > b["high"] or a["high"] < b["low"])
                keys = (benchmark, name, taught, untaught, method)
                rows.append((*keys, *numbers, won, apart if test is None else test.clear))
    return pd.DataFrame(rows, columns=PAIRS)


def counts(compared: pd.DataFrame) -> Counts:
    """Count the pairs in which one model is clearly better.

    Controls are left out. Variants of a method that have the same numbers for both models are one
    result.
    """
    rows = compared[~compared["method"].str.endswith(HALF)]
    base = rows["method"].map(_base)
    rows = rows[~rows.drop(columns="clear").assign(method=base).duplicated()]
    better = [row for row in rows.itertuples() if row.clear]
    taught = sum(row.higher for row in better)
    return Counts(len(rows), taught, len(better) - taught)


def _base(method: str) -> str:
    return method.partition(":")[0]


def _outcome(compared: pd.DataFrame) -> str:
    """How many pairs are told apart, and which are told apart the wrong way."""
    number = counts(compared)
    wrong = [
        f"{row.method} of {row.taught} ({metric(row.metric).title})"
        for row in compared.itertuples()
        if row.clear and not row.higher and not row.method.endswith(HALF)
    ]
    names = f" {REVERSED.capitalize()}: {', '.join(wrong)}." if wrong else ""
    return (
        f"Of {number.comparisons} different results, the taught model is better in "
        f"{number.taught} and the untaught one in {number.untaught}, with an interval of the "
        f"difference that lacks 0.{names}"
    )


def _pairs(results: PageData, compared: pd.DataFrame) -> Table:
    """All pairs; the columns by times read only where the benchmark counts these."""
    body: list[list[str | Cell]] = []
    doses = [_doses(results, row) for row in compared.itertuples()]
    is_read = any(dose.sort is not None for line in doses for dose in line)
    for row, line in zip(compared.itertuples(), doses, strict=True):
        mark = f" {NOT_COUNTED}" if row.method.endswith(HALF) else ""
        system = [f"{row.taught} / {row.untaught}", row.method + mark]
        taught = cell(row.metric, row.value, row.low, row.high)
        untaught = cell(row.metric, row.untaught_value, row.untaught_low, row.untaught_high)
        numbers = [taught, untaught, _better(row), *(line if is_read else [])]
        body.append([metric_head(row.metric), *system, *numbers])
    heads = ["metric", "models", "method", "taught", "untaught", "better"]
    if not is_read:
        return Table(heads, body, CAPTION)
    heads += [*DOSES.values(), "never read, untaught"]
    return Table(heads, body, CAPTION + READ)


def _better(row: Any) -> Cell:
    if row.value == row.untaught_value:
        return Cell("equal")
    who = "taught" if row.higher else f"untaught: {REVERSED}"
    return Cell(who if row.clear else f"{who.partition(':')[0]} {MARK}")


def _doses(results: PageData, row: Any) -> list[Cell]:
    """Return the taught model's value by how often it has read the fact.

    The result has its twin's too, for facts that it has not read.
    """
    read = _by_times(results, row.benchmark, row.metric, [row.taught, row.untaught])
    read = read[read["method"] == row.method].set_index(["model", "times"])

    def dose(model: str, times: str) -> Cell:
        if (model, times) not in read.index:
            return Cell(MISSING)
        numbers = read.loc[(model, times)]
        return cell(row.metric, numbers["value"], numbers["low"], numbers["high"])

    return [
        *(dose(row.taught, times) for times in DOSES),
        dose(row.untaught, NEVER),
    ]


def _by_times(results: PageData, benchmark: str, name: str, models: list[str]) -> pd.DataFrame:
    """Rows of a metric over the first subset by `times` that the fact was read, in this order."""
    subset = results.main_subset(benchmark)
    rows = results.rows(benchmark, relation="micro", metric=name)
    rows = rows[rows["model"].isin(models) & rows["subset"].str.startswith(f"{subset}/read:")]
    rows = without_sweeps(rows).assign(times=lambda table: table["subset"].str.split(":").str[-1])
    return rows.sort_values("times", key=lambda names: names.map(first_number), kind="stable")


def _drawings(results: PageData, benchmark: str, compared: pd.DataFrame) -> list[Block]:
    """Of each method's first variant: taught models and their twins by times read."""
    name = results.primary(benchmark)
    of_metric = compared[compared["metric"] == name]
    blocks: list[Block] = []
    for method, rows in of_metric.groupby(of_metric["method"].map(_base)):
        models = [*dict.fromkeys([*rows["taught"], *rows["untaught"]])]
        read = _by_times(results, benchmark, name, models)
        read = read[read["method"] == rows["method"].iloc[0]]
        if read["times"].nunique() > 1:
            axes = (TIMES, plots.label(name))
            plot = plots.curves(read, "times", "model", axes, metric(name).share)
            caption = (
                f"{metric(name).title} of {rows['method'].iloc[0]} on {benchmark} by how often the "
                "taught model has read the fact."
            )
            blocks.append(Drawing(f"{benchmark}-{method}-calibration", plot, caption))
    return blocks


SECTION = Section(80, section)
