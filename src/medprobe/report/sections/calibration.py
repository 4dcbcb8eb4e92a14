"""Calibration: does a method find what a model was taught, and only that?

Some models come in pairs of one size and training length: one has read the facts, each a known
number of times, its untaught twin (`untaught_twin_of` in params.yaml) has not. A sound method ranks
the first above the second, and facts that were read above facts that were not.

`calibration.csv` beside this file says how every method did on other seeds of the sample world
(`python -m bench.calibration` writes it).
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe import metrics
from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics.significance import LEVEL
from medprobe.report.blocks import Block, Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric
from medprobe.report.results import Results, overlap, without_controls
from medprobe.report.verdicts import MARK, p_value, verdict

SEEDS: Final = Path(__file__).parent / "calibration.csv"
RANKED: Final = ("top_1", "auc", "auroc")  # without a threshold, beside metrics that have one
HALF: Final = "hypothesis-only"  # variants that do not show what is asked about: controls too
NOT_COUNTED: Final = "‡"
PAIRS: Final = [
    *("benchmark", "metric", "taught", "untaught", "method"),
    *("value", "low", "high"),  # of the taught model
    *("untaught_value", "untaught_low", "untaught_high"),
    *("higher", "apart"),  # is the taught model better, and do the intervals share nothing?
    "p",  # of the paired test, corrected; missing where there is none
]
TEXT: Final = (
    "A taught model has read the facts of the sample world. Its untaught twin, of the same size "
    "and training length, has not. A method that cannot tell the two apart does not measure what "
    "the model has read."
)
CAPTION: Final = (
    f"Macro means with intervals. {MARK} not significant: the paired test's corrected p is "
    f"{LEVEL:g} or more, or where there is no test the intervals overlap. {NOT_COUNTED} the method "
    "does not see what is asked about: a control, not counted above. By seed: in how many of the "
    "sample worlds below the taught model is better and the intervals do not overlap. Always true: "
    "what the same answer to everything reaches."
)


class Counts(NamedTuple):
    """Comparisons of taught models with their twins, and who is significantly better in them."""

    comparisons: int
    taught: int
    untaught: int


def section(results: Results, benchmark: str) -> list[Part]:
    """Counts by metric, all pairs, the same in other sample worlds, and accuracy by times read."""
    found = pairs(results, benchmark)
    if found.empty:
        return []
    seeds = _read_seeds(benchmark)
    body: list[list[str | Cell]] = [
        [metric(str(name)).title, *map(count, counts(rows))]
        for name, rows in found.groupby("metric", sort=False)
    ]
    heads = ["metric", "comparisons", "taught better", "untaught better"]
    by_metric = Table(heads, body, "How often one of the two is significantly better")
    return part(
        "Calibration: against the truth of what was taught",
        paragraph(TEXT),
        [by_metric, _pairs(results, found, seeds)],
        _worlds(seeds),
        *(times(results, benchmark, taught) for taught in found["taught"].unique()),
    )


def pairs(results: Results, benchmark: str) -> pd.DataFrame:
    """Compare each taught model with its twin under each method.

    Methods are judged by the benchmark's main metric; those that do not have it, by what stands for
    their family; and by those of RANKED that they have.

    Returns:
        A table with columns PAIRS, of macro means over the benchmark's first subset.
    """
    subset = next(iter(results.subsets(benchmark)), "")
    every = results.rows(benchmark, subset=subset, relation="macro")
    every = without_controls(without_sweeps(every))
    having = {str(name): set(some["method"]) for name, some in every.groupby("metric")}
    every = every.set_index(["metric", "model", "method"])
    main = results.primary(benchmark)
    known = having.get(main, set())
    first = [metrics.find(family).METRICS[0].name for family in metrics.list_names()]
    others = [name for name in first if not having.get(name, known) & known]
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
                numbers = [one[key] for one in (a, b) for key in ("value", "low", "high")]
                test = verdict(tests, (taught, method), (untaught, method))
                p = float("nan") if test is None else test.p
                keys = (benchmark, name, taught, untaught, method)
                rows.append((*keys, *numbers, won, won and not overlap(a, b), p))
    return pd.DataFrame(rows, columns=PAIRS)


def counts(found: pd.DataFrame) -> Counts:
    """Count the pairs in which one model is significantly better, controls left out."""
    rows = [row for row in found.itertuples() if not row.method.endswith(HALF)]
    better = [row for row in rows if _is_clear(row)]
    taught = sum(row.higher for row in better)
    return Counts(len(rows), taught, len(better) - taught)


def main_counts(results: Results) -> Counts:
    """Count over all benchmarks, by the main metric of each."""
    found = pd.concat([pairs(results, name) for name in results.benchmarks])
    return counts(found[found["metric"] == found["benchmark"].map(results.primary)])


def _is_clear(row: Any) -> bool:
    """Whether the test, or where there is none the intervals, tell the two models apart."""
    if not pd.isna(row.p):
        return bool(row.p < LEVEL)
    return bool(row.low > row.untaught_high or row.high < row.untaught_low)


def _pairs(results: Results, found: pd.DataFrame, seeds: pd.DataFrame) -> Table:
    body: list[list[str | Cell]] = []
    for row in found.itertuples():
        mark = f" {NOT_COUNTED}" if row.method.endswith(HALF) else ""
        system = [f"{row.taught} / {row.untaught}", row.method + mark]
        judged = [_better(row), _by_seed(seeds, row), _always_true(results, row)]
        body.append([metric(row.metric).title, *system, *_cells(row), *judged])
    heads = ["metric", "models", "method", "taught", "untaught", "better", "by seed", "always true"]
    return Table(heads, body, CAPTION)


def _cells(row: Any) -> list[Cell]:
    untaught = (row.untaught_value, row.untaught_low, row.untaught_high)
    return [cell(row.metric, row.value, row.low, row.high), cell(row.metric, *untaught)]


def _better(row: Any) -> Cell:
    """Which of the two is better, and how sure that is."""
    if row.value == row.untaught_value:
        return Cell("equal")
    who = "taught" if row.higher else "untaught"
    evidence = "intervals" if pd.isna(row.p) else p_value(row.p)
    return Cell(who if _is_clear(row) else f"{who} {MARK}", note=evidence)


def _always_true(results: Results, row: Any) -> str | Cell:
    """The value of a control that says the same of everything, ties shared."""
    method = f"{row.method.partition(':')[0]}:always-true"
    where = {"relation": "macro", "metric": row.metric, "model": row.taught, "method": method}
    control = results.rows(row.benchmark, subset=results.subsets(row.benchmark)[0], **where)
    return cell(row.metric, control["value"].iloc[0]) if len(control) else MISSING


def _read_seeds(benchmark: str) -> pd.DataFrame:
    """The benchmark's comparisons in sample worlds: `seed` and PAIRS without p."""
    if not SEEDS.is_file():
        return pd.DataFrame(columns=["seed", *PAIRS])
    table = pd.read_csv(SEEDS, keep_default_na=False, na_values=[""])
    return table[table["benchmark"] == benchmark]


def _by_seed(seeds: pd.DataFrame, row: Any) -> str | Cell:
    same = (seeds["method"] == row.method) & (seeds["metric"] == row.metric)
    apart = seeds.loc[same & (seeds["taught"] == row.taught), "apart"]
    return Cell(f"{apart.sum()} of {len(apart)}", apart.mean()) if len(apart) else MISSING


def _worlds(seeds: pd.DataFrame) -> list[Block]:
    """Every comparison in each sample world, folded."""
    body: list[list[str | Cell]] = [
        [str(row.seed), row.method, metric(row.metric).title, *_cells(row),
         "apart" if row.apart else "not apart"]
        for row in seeds.itertuples()
    ]  # fmt: skip
    names = ", ".join(map(str, sorted(seeds["seed"].unique())))
    heads = ["seed", "method", "metric", "taught", "untaught", "intervals"]
    table = Table(heads, body, "Measured once, by bench/calibration.py")
    return folded(f"The sample world made with the seeds {names}", [table] if body else [])


def times(results: Results, benchmark: str, model: str) -> list[Drawing]:
    """Accuracy by how often a taught model has read the fact, a line per method."""
    name, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    rows = results.rows(benchmark, relation="micro", metric=name, model=model)
    rows = without_sweeps(rows[rows["subset"].str.startswith(f"{subset}/read:")])
    rows = rows.assign(times=rows["subset"].str.split(":").str[-1])
    if rows["times"].nunique() < 2:
        return []
    rows = rows.sort_values("times", key=lambda names: names.map(_first), kind="stable")
    axes = ("times that the fact was read in training", plots.label(name))
    plot = plots.curves(rows, "times", "method", axes, metric(name).share)
    caption = f"{metric(name).title} of {model} on {benchmark} by how often it has read the fact."
    return [Drawing(f"{benchmark}-{model}-calibration", plot, caption)]


def _first(times: str) -> int:
    return int(times.removeprefix("over-").partition("-")[0]) + times.startswith("over")
