"""The numbers of a result as MLflow's metrics, and the note that describes a run.

A metric has its name of the catalogue; one on another subset than the main has the subset before
it, as in `hard/acc_at_1`.
"""

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.core.variants import curve
from medprobe.metrics import catalog
from medprobe.metrics.results import (
    main_variants,
    primary_metric,
    select,
    select_main,
    subsets,
)


def main_variant(rows: pd.DataFrame) -> str:
    """Return the method or `<method>:<variant>` that represents a result (`main_variants`)."""
    [(_, name)] = main_variants(rows)
    return name


def headlines(rows: pd.DataFrame, metadata: Metadata, *, edges: bool) -> dict[str, float]:
    """A variant's metrics over whole subsets; with `edges`, their intervals too."""
    means = select_means(rows)
    main_subset = next(iter(subsets(means, metadata)), None)
    values: dict[str, float] = {}
    for row in means.to_dict("records"):
        name = row["metric"] if row["subset"] == main_subset else f"{row['subset']}/{row['metric']}"
        values[name] = row["value"]
        if edges:
            values |= {f"{name}_low": row["low"], f"{name}_high": row["high"]}
    return {legal(name): float(value) for name, value in values.items() if pd.notna(value)}


def select_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Select each metric's means over relations, otherwise over queries, on whole subsets."""
    means = rows[~rows["subset"].str.contains("/") & rows["relation"].isin(["macro", "micro"])]
    means = means.sort_values("relation", kind="stable")  # macro before micro
    return means.drop_duplicates(["method", "subset", "metric"]).sort_index()


def by_step(rows: pd.DataFrame, metadata: Metadata) -> dict[str, list[tuple[int, float]]]:
    """Collect the main metric by step, for sweeps over whole numbers such as `step-40`.

    Returns:
        `series/by <setting>/<subset>` -> pairs (step, value).
    """
    means = select_means(rows)
    series: dict[str, list[tuple[int, float]]] = {}
    if len(means):
        for row in select(means, metric=primary_metric(means, metadata)).to_dict("records"):
            point = curve(row["method"].partition(":")[2])
            if point and point[1].is_integer():
                name = legal(f"series/by {point[0]}/{row['subset']}")
                series.setdefault(name, []).append((int(point[1]), row["value"]))
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


def legal(name: str) -> str:
    """Replace the characters of a metric's name that MLflow does not accept."""
    return "".join(c if c.isalnum() or c in "_-.:/ " else "_" for c in name)
