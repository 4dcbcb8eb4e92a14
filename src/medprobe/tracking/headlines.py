"""The few numbers of a result that become MLflow metrics, and the note that describes a run.

MLflow sorts metrics by name: first `main_…`, the benchmark's main metric, then `more_…`, other
numbers, then `series/…`, the metric by step. All numbers are in scores.csv. Names of headlines are
words of one piece, so that a search needs no quotes, and differ in what a column's head shows.
"""

import re
from typing import Final

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.metrics import catalog
from medprobe.metrics.results import (
    main_variants,
    primary_metric,
    select,
    select_main,
    subsets,
    sweep,
)
from medprobe.report.sections import find_sections

MAIN: Final = "main_"
MORE: Final = "more_"
LIMIT: Final = 10  # metrics of a run
WIDTH: Final = 12  # characters of a name that a column's head shows
CHECKS: Final = ("_tied", "_by_answer")  # end accuracies counted otherwise


def main_variant(rows: pd.DataFrame) -> str:
    """Return the method or `<method>:<variant>` that represents a result (`main_variants`)."""
    [(_, name)] = main_variants(rows)
    return name


def headlines(rows: pd.DataFrame, metadata: Metadata, *, edges: bool) -> dict[str, float]:
    """Select at most LIMIT numbers of a variant's rows, the most important first.

    With `edges`, the main number has its interval, from `more_low` to `more_high`. A name that a
    column's head shows as one before it is left out.

    Returns:
        `main_<metric>`, the mean over relations on the main subset; `more_on_<subset>`, the same on
        other subsets; `more_<name>`, the headlines of sections, such as `more_trust_auroc`;
        `more_<metric>`, other metrics on the main subset; acc@k is `more_at_<k>`.
    """
    means = select_means(rows)
    if means.empty:
        return {}
    metric = primary_metric(means, metadata)
    main_subset, *other_subsets = subsets(means, metadata)
    on_main = select(means, subset=main_subset).set_index("metric")
    by_subset = select(means, metric=metric).set_index("subset")["value"]
    main = f"{MAIN}{metric}"
    values = {main: on_main.loc[metric, "value"]}
    if edges:
        values |= {f"{MORE}{edge}": on_main.loc[metric, edge] for edge in ("low", "high")}
    values |= {
        f"{MORE}on_{subset}": by_subset[subset] for subset in other_subsets if subset in by_subset
    }
    for section in find_sections():
        numbers = section.headlines(rows, main_subset, means)
        values |= {f"{MORE}{name}": value for name, value in numbers.items()}
    for name in catalog():
        if name in on_main.index and name != metric and not name.endswith(CHECKS):
            values[f"{MORE}{name.removeprefix('acc_')}"] = on_main.loc[name, "value"]
    shown: dict[str, tuple[str, float]] = {}  # by what a column's head shows
    for key, value in values.items():
        if pd.notna(value):
            name = word(key)
            shown.setdefault(name[:WIDTH], (name, float(value)))
    return dict([*shown.values()][:LIMIT])


def select_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the means over relations, otherwise over queries, on whole subsets."""
    on_whole = rows[~rows["subset"].str.contains("/")]
    macro = select(on_whole, relation="macro")
    return select(on_whole, relation="micro") if macro.empty else macro


def by_step(rows: pd.DataFrame, metadata: Metadata) -> dict[str, list[tuple[int, float]]]:
    """Collect the main metric by step, for sweeps over whole numbers such as `step-40`.

    Returns:
        `series/by <setting>/<subset>` -> pairs (step, value).
    """
    means = select_means(rows)
    series: dict[str, list[tuple[int, float]]] = {}
    if len(means):
        for row in select(means, metric=primary_metric(means, metadata)).to_dict("records"):
            setting = sweep(row["method"])
            if setting and setting[1] == int(setting[1]):
                name = legal(f"series/by {setting[0]}/{row['subset']}")
                series.setdefault(name, []).append((int(setting[1]), row["value"]))
    return {name: sorted(steps) for name, steps in series.items()}


def note(rows: pd.DataFrame, metadata: Metadata, provenance: dict[str, str]) -> str:
    """Describe a run in Markdown: model, method, benchmark, main number, and its provenance."""
    system = rows.iloc[0]
    means = select_means(rows[rows["method"] == main_variant(rows)])
    text = f"The model **{system['model']}**, probed by **{main_variant(rows)}** on "
    text += f"**{system['benchmark']}**: {metadata.description}."
    if len(means):
        row = select_main(means, metadata).iloc[0]
        interval = "" if pd.isna(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"
        title = catalog()[row["metric"]].title
        text += f"\n\n{title} on {row['subset']}: **{row['value']:.3f}**{interval}. "
        text += "All numbers are in the artefact scores.csv."
    listing = "\n".join(f"- {name}: {value}" for name, value in provenance.items())
    return f"{text}\n\n{listing}\n"


def word(name: str) -> str:
    """Make a name a word of one piece, which a search needs no quotes for."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def legal(name: str) -> str:
    """Replace the characters of a metric's name that MLflow does not accept."""
    return "".join(c if c.isalnum() or c in "_-.:/ " else "_" for c in name)
