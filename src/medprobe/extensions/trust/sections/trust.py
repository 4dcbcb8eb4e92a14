"""When an answer can be trusted: whether the surest answers are right more often."""

from typing import Final

import pandas as pd

from medprobe.extensions.trust.metrics.trust import COVERAGES, FEWEST, SIGNAL, SIGNALS
from medprobe.report.blocks import Cell, Part, Table, folded, paragraph, part
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing, without_controls, without_repeats, without_sweeps
from medprobe.report.numbers import format_value, metric_cells, metric_head
from medprobe.report.results import Results
from medprobe.report.sections import Section

TABLE_METRICS: Final = (
    *("trust_right", "trust_auroc", "right_at_50", "right_at_80", "right_at_100"),
    *("right_at_50_gain", "risk_area", "risk_area_gain"),
)
HEADLINES: Final = ("trust_auroc", "right_at_50")
CAPTION: Final = (
    "By each signal of how sure a system is; micro means with intervals. In random order the AUROC "
    "is 50, the surest queries are right as often as all of them, and the gains are 0. Systems "
    f"with fewer than {FEWEST} right or {FEWEST} wrong answers have no AUROC, and their gains have "
    "no interval. The largest gain is first."
)


def section(results: Results, benchmark: str) -> list[Part]:
    """A sentence, a table of all systems, and risk-coverage curves of each model.

    There is nothing where no table has scores that say how sure a model is.
    """
    subset = results.main_subset(benchmark)
    rows = without_controls(without_sweeps(results.rows(benchmark, relation="micro")))
    prefix = f"{subset}/{SIGNAL}:"
    rows = without_repeats(rows[rows["subset"].str.startswith(prefix)])
    if rows.empty:
        return []
    rows = rows.assign(signal=rows["subset"].str.removeprefix(prefix))
    table = _table(rows)
    drawings = [_draw(of_model, benchmark, str(name)) for name, of_model in rows.groupby("model")]
    return part(
        "When to trust an answer",
        paragraph(_summarise(rows)),
        [table, *drawings[:1]],
        folded("Others", drawings[1:]),
    )


def _summarise(rows: pd.DataFrame) -> str:
    """How many systems are right more often where they are surer, and which gains most.

    A gain counts where its interval is above 0, and a loss where it is below.
    """
    gains = rows[rows["metric"] == "right_at_50_gain"]
    helpful, harmful = gains[gains["low"] > 0], gains[gains["high"] < 0]
    total = f"{len(gains)} system{'s' if len(gains) > 1 else ''} by signal"
    verb = "is" if len(harmful) == 1 else "are"
    reverse = f" {len(harmful)} {verb} right less often." if len(harmful) else ""
    if helpful.empty:
        return (
            f"No signal helps: of {total}, none is shown to be right more often on the surest half "
            f"of its answers than on all.{reverse}"
        )
    best = helpful.loc[helpful["value"].idxmax()]
    same = (rows[["model", "method", "signal"]] == best[["model", "method", "signal"]]).all(axis=1)
    numbers = rows[same].set_index("metric")["value"]
    half, whole = (format_value(name, numbers[name]) for name in ("right_at_50", "right_at_100"))
    return (
        f"Of {total}, {len(helpful)} gain{'s' if len(helpful) == 1 else ''}: the interval of the "
        f"gain is above 0.{reverse} The largest gain is that of {best['model']} "
        f"({best['method']}) by {best['signal']}: {half} of its surest half of answers are right, "
        f"and {whole} of all."
    )


def _table(rows: pd.DataFrame) -> Table:
    body: list[list[str | Cell]] = []
    for key, system in rows.groupby(["model", "method", "signal"], sort=True):
        body.append([*map(str, key), *metric_cells(system, TABLE_METRICS)])
    body.sort(key=_gain, reverse=True)
    heads = ["model", "method", "signal", *map(metric_head, TABLE_METRICS)]
    return Table(heads, body, CAPTION)


def _gain(line: list[str | Cell]) -> float:
    """The gain at half of the queries in a line of the table."""
    gain = line[3 + TABLE_METRICS.index("right_at_50_gain")]
    return float("-inf") if isinstance(gain, str) or gain.sort is None else gain.sort


def _draw(rows: pd.DataFrame, benchmark: str, model: str) -> Drawing:
    """The share wrong by coverage, one line per method, each by its first signal."""
    by_name = {f"right_at_{coverage}": coverage for coverage in COVERAGES}
    first = rows["signal"].map(SIGNALS.index)
    points = rows[first == first.groupby(rows["method"]).transform("min")]
    points = points.assign(coverage=points["metric"].map(by_name)).dropna(subset="coverage")
    ends = {"value": "value", "low": "high", "high": "low"}
    points = points.assign(**{name: 1 - points[end] for name, end in ends.items()})
    axes = ("queries answered, the surest first, per cent", "wrong, per cent")
    plot = plots.curves(points, "coverage", "method", axes, True)
    caption = f"{model}: how many of the answers that it is surest of are wrong."
    return Drawing(f"{benchmark}-trust-{model}", plot, caption)


def headlines(rows: pd.DataFrame, main_subset: str, means: pd.DataFrame) -> dict[str, float]:
    """The AUROC and the accuracy of the surer half, by the first signal that there is."""
    sure = rows[rows["subset"].str.startswith(f"{main_subset}/{SIGNAL}:")]
    sure = sure[(sure["relation"] == "macro") & sure["metric"].isin(HEADLINES)]
    first = sure.sort_values("subset", kind="stable").drop_duplicates("metric")
    return {row.metric: row.value for row in first.itertuples()}


SECTION = Section(70, section, headlines=headlines)
