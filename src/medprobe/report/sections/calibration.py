"""Calibration: does a method find what a model was taught, and only that?

Some models come in pairs of one size and training length: one has read the facts, each a known
number of times, its untaught twin (`untaught_twin_of` in params.yaml) has not. A sound method ranks
the first above the second, and facts that were read above facts that were not.

`calibration.csv` beside this file says how every method did on other seeds of the sample world
(`python -m bench.calibration` writes it).
"""

from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import metrics
from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.report.blocks import Block, Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import cell, metric, shown
from medprobe.report.results import LEVEL, Results, overlap, without_controls
from medprobe.report.verdicts import listed, p_value, verdict

SEEDS: Final = Path(__file__).parent / "calibration.csv"
RANKED: Final = ("top_1", "auc", "auroc")  # without a threshold, beside metrics that have one
HALF: Final = "hypothesis-only"  # variants that do not show what is asked about: controls too
PAIRS: Final = [
    *("benchmark", "metric", "taught", "untaught", "method"),
    *("value", "low", "high"),  # of the taught model
    *("untaught_value", "untaught_low", "untaught_high"),
    *("higher", "apart"),  # is the taught model better, and do the intervals share nothing?
    "p",  # of the paired test, corrected; missing where there is none
]


def section(results: Results, benchmark: str) -> list[Part]:
    """A table of pairs with a verdict for each method, what fine-tuning tells apart, other seeds,
    and accuracy by times read."""
    found = pairs(results, benchmark)
    if found.empty:
        return []
    blocks = [_pairs(results, rows) for _, rows in found.groupby("metric", sort=False)]
    return part(
        "Calibration: against the truth of what was taught",
        paragraph(
            "These models were trained here, so what they can know is no guess: a taught model has "
            "read the facts, its untaught twin has not. A method that cannot tell the two apart "
            "measures something else."
        ),
        *blocks,
        _fine_tuning(results, found),
        _seeds(benchmark, found),
        *(times(results, benchmark, taught) for taught in found["taught"].unique()),
    )


def pairs(results: Results, benchmark: str) -> pd.DataFrame:
    """How each method did on each pair of twins: a table with columns PAIRS, macro means over the
    benchmark's first subset. Methods are judged by the benchmark's main metric; those that do not
    have it, by what stands for their family; and by those of RANKED that they have.
    """
    subset = next(iter(results.subsets(benchmark)), "")
    every = results.rows(benchmark, subset=subset, relation="macro")
    every = without_controls(without_sweeps(every))
    having = {str(name): set(some["method"]) for name, some in every.groupby("metric")}
    every = every.set_index(["metric", "model", "method"])
    main = results.primary(benchmark)
    known = having.get(main, set())
    first = [metrics.find(family).METRICS[0].name for family in metrics.names()]
    others = [name for name in first if not having.get(name, known) & known]
    rows: list[tuple[Any, ...]] = []
    for name in dict.fromkeys([main, *others, *(name for name in RANKED if name in having)]):
        of_metric = every.loc[name].sort_index() if name in having else every.head(0)
        for untaught, taught in sorted(results.twins.items(), key=lambda twins: twins[::-1]):
            for method in (method for model, method in of_metric.index if model == taught):
                if (untaught, method) not in of_metric.index:
                    continue
                a, b = of_metric.loc[(taught, method)], of_metric.loc[(untaught, method)]
                lower = metric(name).better_on(subset) == "lower"
                won = bool(a["value"] < b["value"] if lower else a["value"] > b["value"])
                numbers = [one[key] for one in (a, b) for key in ("value", "low", "high")]
                keys = (benchmark, name, taught, untaught, method)
                tests = results.tests(benchmark, subset, name)
                test = verdict(tests, (taught, method), (untaught, method))
                p = float("nan") if test is None else test.p
                rows.append((*keys, *numbers, won, won and not overlap(a, b), p))
    return pd.DataFrame(rows, columns=PAIRS)


def _pairs(results: Results, rows: pd.DataFrame) -> list[Block]:
    """The table of one metric. What hides the question is shown, and not counted."""
    title = metric(rows["metric"].iloc[0]).title
    counted = [row for row in rows.itertuples() if not row.method.endswith(HALF)]
    body: list[list[str | Cell]] = [
        [f"{row.taught} / {row.untaught}", row.method, *_cells(row), _better(row)]
        for row in rows.itertuples()
    ]
    level = f"{100 * results.confidence:.0f} %"
    how = (
        "significantly so by paired tests (corrected)"
        if rows["p"].notna().any()
        else f"with {level} intervals that do not overlap (there is no test)"
    )
    told = sum(map(_tells, counted))
    return [
        *paragraph(
            f"By {title}, taught models are better than untaught ones, {how}, in {told} of "
            f"{len(counted)} comparisons."
            if counted
            else ""
        ),
        Table(["models", "method", f"taught, {title}", f"untaught, {title}", "better"], body),
    ]


def _tells(row: Any) -> bool:
    """Is the taught model significantly better? Of what is not tested: are the intervals
    apart?"""
    return bool(row.higher and row.p < LEVEL) if not pd.isna(row.p) else bool(row.apart)


def _better(row: Any) -> str:
    """Who is better, and how sure that is."""
    if row.value == row.untaught_value:
        return "equal"
    sure = "intervals apart" if row.apart else "not tested"
    said = sure if pd.isna(row.p) else p_value(row.p)
    return f"{'taught' if row.higher else 'untaught'}, {said}"


def _both(row: Any) -> list[tuple[float, float, float]]:
    """`value, low, high` of the taught model and of its twin."""
    untaught = (row.untaught_value, row.untaught_low, row.untaught_high)
    return [(row.value, row.low, row.high), untaught]


def _cells(row: Any) -> list[Cell]:
    return [cell(row.metric, *numbers) for numbers in _both(row)]


def _said(row: Any) -> str:
    """Both in a sentence."""
    intervals = [
        "" if pd.isna(low) else f" [{shown(row.metric, low)}, {shown(row.metric, high)}]"
        for _, low, high in _both(row)
    ]
    a, b = (shown(row.metric, value) for value, _, _ in _both(row))
    return f"{a}{intervals[0]} for {row.taught} and {b}{intervals[1]} for {row.untaught}"


def _fine_tuning(results: Results, found: pd.DataFrame) -> list[Block]:
    """What the paper's recipe of fine-tuning tells apart, and what the control without a premise
    shows, by top-1; nothing where there is none."""
    rows = found[found["metric"] == "top_1"]
    control = rows["method"].str.endswith(HALF)
    plain = rows["method"] == "classifier"
    sentences = []
    for row in rows[plain].itertuples():
        tells = "tells" if _tells(row) else "does not tell"
        sentences.append(
            "The paper's plain recipe, which fine-tunes all weights under a new head (classifier), "
            f"{tells} taught from untaught: top-1 is {_said(row)}{_chance(results, row)}."
        )
    others = [row.method for row in rows[~plain & ~control].itertuples() if _tells(row)]
    if apart := ", ".join(dict.fromkeys(others)):
        sentences.append(f"What tells them apart: {apart}.")
    for row in rows[control].itertuples():
        where = f"Without the premise ({row.method})"
        sentences.append(f"{where} top-1 is {_said(row)}{_chance(results, row)}.")
    return paragraph(*sentences)


def _chance(results: Results, row: Any) -> str:
    """What a control that says the same of everything gets, ties shared."""
    method = f"{row.method.partition(':')[0]}:always-true"
    where = {"relation": "macro", "metric": row.metric, "model": row.taught, "method": method}
    subset = results.subsets(row.benchmark)[0]
    control = results.rows(row.benchmark, subset=subset, **where)["value"]
    return f"; chance is {shown(row.metric, control.iloc[0])}" if len(control) else ""


def _seeds(benchmark: str, found: pd.DataFrame) -> list[Block]:
    """How typical this world is: every method on the seeds that `calibration.csv` holds, and how
    far `found`, the pairs of this page, is like them."""
    if not SEEDS.is_file():
        return []
    table = pd.read_csv(SEEDS, keep_default_na=False, na_values=[""])
    table = table[table["benchmark"] == benchmark]
    body: list[list[str | Cell]] = [
        [*map(str, (row.seed, row.method)), metric(row.metric).title, *_cells(row),
         "apart" if row.apart else "not apart"]
        for row in table.itertuples()
    ]  # fmt: skip
    if not body:
        return []
    seeds = ", ".join(map(str, sorted(table["seed"].unique())))
    heads = ["seed", "method", "metric", "taught", "untaught", "intervals"]
    return [
        *paragraph(_typical(table, found)),
        *folded(
            f"The sample world made with the seeds {seeds}",
            [*paragraph("Measured once, by bench/calibration.py."), Table(heads, body)],
        ),
    ]


def _typical(table: pd.DataFrame, found: pd.DataFrame) -> str:
    """Of comparisons that were made on several seeds: on how many of these intervals are apart, and
    where that is otherwise on this page."""
    keys = ["method", "metric", "taught"]
    seeds = table.groupby(keys)["apart"].agg(["sum", "size"])
    asked = found[~found["method"].str.endswith(HALF)].set_index(keys)
    both = asked[["apart"]].join(seeds[seeds["size"] > 1], how="inner")
    if both.empty:
        return ""
    always, never = int((both["sum"] == both["size"]).sum()), int((both["sum"] == 0).sum())
    other = both.index[both["apart"] != (both["sum"] > both["size"] / 2)]
    named = [f"{method} by {metric(name).title}" for method, name, _ in other]
    here = f"differs from most of them in {listed(named)}" if named else "agrees with most of them"
    return (
        f"How typical is this? {len(both)} of {len(asked)} comparisons were also made on sample "
        f"worlds of other seeds: taught and untaught have intervals apart under every seed in "
        f"{always}, under some in {len(both) - always - never}, under none in {never}; this page "
        f"{here}."
    )


def times(results: Results, benchmark: str, model: str) -> list[Drawing]:
    """Accuracy by how often a taught model has read the fact, a line a method."""
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
