"""What methods say of models whose reading is known, over several sample worlds.

`python -m bench.calibration` measures it and writes `calibration.csv`. A taught model has
read half of the facts; its untaught twin none of them; its shuffled twin the same names in the same
sentences, with the objects of other subjects. So a method that puts the taught model above the
shuffled one has found facts, and not names.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.metrics.significance import LEVEL
from medprobe.report.blocks import Cell, Table
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing
from medprobe.report.numbers import MISSING, cell, format_difference, metric
from medprobe.report.sections.calibration import DOSES, NEVER
from medprobe.report.verdicts import MARK, p_value

RESULT: Final = Path(__file__).with_name("calibration.csv")
SYSTEM: Final = ["benchmark", "metric", "taught", "method"]
NUMBERS: Final = ["value", "low", "high", "n", "p", "p_holm"]
COLUMNS: Final = [
    *SYSTEM,
    "same",  # further variants with the same result for each query, separated by blanks
    "number",  # a corpus: the value of the model that read it; `taught - untaught`; `power against`
    "read",  # how often the facts were read: 0, 1, 2, 3-4; or `read`, at least once; empty: all
    "world",  # a seed, or all
    *NUMBERS,
]
TWINS: Final = ("untaught", "shuffled")
READ: Final = "read"
ALL: Final = "all"
POWER: Final = (40, 160)  # queries, of the numbers that were measured
CAPTION: Final = (
    "The columns by number of readings have values of the taught model, and of its twins on facts "
    "that it has never read. Values are micro means with intervals. Against a twin: the paired "
    "difference on the facts that the taught model has read; for perplexity, the factor between "
    f"geometric means. {MARK} not significant: p is {LEVEL:g} or more after Holm's correction for "
    "all rows. Power: how often, in per cent, a sample of so many queries shows the taught model "
    "to be better than its untaught and than its shuffled twin. Half of these queries are about "
    "facts that were never read."
)


@dataclass(frozen=True)
class TaughtSystem:
    """All that was measured of a taught model under a variant of a method on a benchmark."""

    benchmark: str
    metric: str
    taught: str
    method: str
    same: str = ""  # further variants, whose results are the same
    numbers: dict[tuple[str, str, str], Any] = field(default_factory=dict)

    def get(self, number: str, read: str, world: str = ALL) -> Any:
        """The row of a number, or None where it was not measured."""
        return self.numbers.get((number, read, world))

    def cell(self, number: str, read: str) -> Cell:
        """The value of a model on facts that were read so often."""
        row = self.get(number, read)
        return Cell(MISSING) if row is None else cell(self.metric, row.value, row.low, row.high)

    def favours(self, row: Any) -> bool | None:
        """Does a test favour the taught model? None where it is not significant."""
        if row is None or not row.p_holm < LEVEL:
            return None
        return bool(row.value < 0 if metric(self.metric).better == "lower" else row.value > 0)

    def against(self, twin: str) -> Cell:
        """The difference between the taught model and a twin on facts that it has read."""
        row = self.get(f"taught - {twin}", READ)
        if row is None:
            return Cell(MISSING)
        mark = f" {MARK}" if self.favours(row) is None else ""
        if metric(self.metric).logarithmic:
            text = f"× {math.exp(row.value):.3g}"
        else:
            text = format_difference(self.metric, row.value)
        return Cell(text + mark, row.value, note=p_value(row.p_holm))

    def power(self, queries: int) -> str:
        """How often so many queries show the taught model above its twins, in per cent."""
        rows = (self.numbers.get((f"power against {twin}", str(queries), ALL)) for twin in TWINS)
        return " / ".join(MISSING if row is None else f"{100 * row.value:.0f}" for row in rows)

    @property
    def reversals(self) -> list[str]:
        """Return the twins that are significantly above the taught model on facts it has read.

        Each comes with the world, unless it is above in all worlds together.
        """
        worse = [
            (number.rpartition(" ")[2], world)
            for (number, read, world), row in self.numbers.items()
            if read == READ and self.favours(row) is False
        ]
        pooled = [twin for twin, world in worse if world == ALL]
        single = [f"{twin} in world {world}" for twin, world in worse if twin not in pooled]
        return [*pooled, *single]

    @property
    def finding(self) -> str:
        """What the tests say, in words."""
        untaught, shuffled = (self.favours(self.get(f"taught - {twin}", READ)) for twin in TWINS)
        if untaught and shuffled:
            words = "finds facts"
        elif untaught:
            words = "finds names, no facts shown"
        elif shuffled:
            words = "above shuffled alone"
        else:
            words = "nothing shown"
        if self.reversals:
            words += f"; reversed: {', '.join(self.reversals)}"
        if self.favours(self.get("taught - untaught", NEVER)):
            words += "; above untaught on facts never read, too"
        return words


def read_table() -> pd.DataFrame:
    """The table with COLUMNS, or an empty one where nothing was measured."""
    if not RESULT.is_file():
        return pd.DataFrame(columns=COLUMNS)
    texts = dict.fromkeys(COLUMNS[: -len(NUMBERS)], str)
    missing = {name: [""] for name in NUMBERS}
    return pd.read_csv(RESULT, dtype=texts, keep_default_na=False, na_values=missing)


def evidence(table: pd.DataFrame) -> list[TaughtSystem]:
    """The rows of a table with COLUMNS, system by system, in the order of the rows."""
    systems = []
    for keys, rows in table.groupby([*SYSTEM, "same"], sort=False):
        numbers = {(row.number, _read(row), row.world): row for row in rows.itertuples()}
        benchmark, name, taught, method, same = map(str, keys)
        systems.append(TaughtSystem(benchmark, name, taught, method, same, numbers))
    return systems


def _read(row: Any) -> str:
    """What tells the rows of a number apart: how often facts were read, or of power the queries."""
    return str(row.read) if row.read else f"{row.n:.0f}"


def seeds(table: pd.DataFrame) -> list[str]:
    """The worlds that were measured."""
    return sorted(set(table["world"]) - {ALL})


def evidence_table(systems: Sequence[TaughtSystem]) -> Table:
    """One row per system."""
    heads = [
        *("benchmark", "method", "model", "metric", *DOSES.values()),
        *(f"never read, {twin}" for twin in TWINS),
        *(f"against {twin}" for twin in TWINS),
        *(f"power, {queries} queries" for queries in POWER),
        "finding",
    ]
    body: list[list[str | Cell]] = [
        [
            system.benchmark,
            Cell(system.method, note=f"the same: {system.same}" if system.same else ""),
            *(system.taught, metric(system.metric).title),
            *(system.cell("taught", read) for read in DOSES),
            *(system.cell(twin, NEVER) for twin in TWINS),
            *(system.against(twin) for twin in TWINS),
            *(system.power(queries) for queries in POWER),
            system.finding,
        ]
        for system in systems
    ]
    return Table(heads, body, CAPTION)


def by_method(systems: Iterable[TaughtSystem]) -> dict[str, list[TaughtSystem]]:
    """Systems by their method, whatever the variant, in alphabetical order."""
    methods: dict[str, list[TaughtSystem]] = {}
    for system in sorted(systems, key=lambda system: system.method.partition(":")[0]):
        methods.setdefault(system.method.partition(":")[0], []).append(system)
    return methods


def drawing(method: str, systems: Sequence[TaughtSystem]) -> Drawing:
    """Draw the value of taught models and their twins by how often a fact was read.

    The drawing is of a method's first variant, on the benchmark with the most queries.
    """
    queries = {system.benchmark: _queries(system) for system in reversed(systems)}
    benchmark = max(queries, key=lambda name: queries[name])
    first: dict[str, TaughtSystem] = {}
    for system in systems:
        if system.benchmark == benchmark:
            first.setdefault(system.taught, system)
    points = []
    for system in first.values():
        for corpus in ("taught", *TWINS):
            model = system.taught.replace("taught", corpus, 1)
            for dose, words in DOSES.items():
                row = system.get(corpus, dose)
                if row is not None:
                    points.append((model, words, row.value, row.low, row.high))
    table = pd.DataFrame(points, columns=["model", "times", "value", "low", "high"])
    example = next(iter(first.values()))
    axes = ("times that the taught model has read the fact", plots.label(example.metric))
    plot = plots.curves(table, "times", "model", axes, metric(example.metric).share)
    caption = (
        f"{metric(example.metric).title} of {example.method} on {benchmark} by how often the "
        "taught model has read the fact."
    )
    return Drawing(f"worlds-{method}", plot, caption)


def _queries(system: TaughtSystem) -> float:
    return float(sum(row.n for read in DOSES if (row := system.get("taught", read)) is not None))
