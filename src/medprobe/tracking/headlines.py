"""The few numbers of a result that are MLflow's metrics, and the note that says what a run is.

MLflow orders metrics by the alphabet: `main …`, the benchmark's main metric, stands before
`more …`, others on the same subset, and before `series/…`, by step. All else is in scores.csv.
"""

from typing import Final

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.metrics import catalog
from medprobe.metrics.results import primary, subsets, sweep, where

MAIN: Final = "main "
MORE: Final = "more "
MOST: Final = 10  # metrics of a run
EDGES: Final = ("low", "high")
TIED: Final = "_tied"  # ends the names of accuracies with ties shared, a check


def main_variant(rows: pd.DataFrame) -> str:
    """The method or `<method>:<variant>` that stands for a result: the main variant, or where there
    is none the first that is no value of a sweep."""
    names = sorted(rows["method"].unique(), key=lambda name: (sweep(name) is not None, name))
    return str(names[0])


def headlines(rows: pd.DataFrame, metadata: Metadata, *, edges: bool) -> dict[str, float]:
    """At most MOST numbers of a variant's rows of the comparison, the most important first.

    `main <metric>` is the mean over relations on the main subset, with `.low` and `.high` where
    `edges` are wanted, `main <metric>.<subset>` that on another, `more <metric>` another metric on
    the main one.
    """
    means = _means(rows)
    if means.empty:
        return {}
    name = primary(means, metadata)
    first, *others = subsets(means, metadata)
    on_first = where(means, subset=first).set_index("metric")
    by_subset = where(means, metric=name).set_index("subset")["value"]
    main = f"{MAIN}{name}"
    found = {main: on_first.loc[name, "value"]}
    if edges:
        found |= {f"{main}.{edge}": on_first.loc[name, edge] for edge in EDGES}
    found |= {f"{main}.{subset}": by_subset[subset] for subset in others if subset in by_subset}
    for other in catalog():
        if other in on_first.index and other != name and not other.endswith(TIED):
            found[f"{MORE}{other}"] = on_first.loc[other, "value"]
    listed = [(key, float(value)) for key, value in found.items() if pd.notna(value)]
    return {legal(key): value for key, value in listed[:MOST]}


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """The means over relations, or where there are none over queries; subsets as a whole."""
    whole = rows[~rows["subset"].str.contains("/")]
    macro = where(whole, relation="macro")
    return where(whole, relation="micro") if macro.empty else macro


def by_step(rows: pd.DataFrame, metadata: Metadata) -> dict[str, list[tuple[int, float]]]:
    """The main metric of variants that sweep over a setting in whole numbers, such as `step-40`, by
    step: `series/by <setting>/<subset>`."""
    means = _means(rows)
    series: dict[str, list[tuple[int, float]]] = {}
    if len(means):
        for row in where(means, metric=primary(means, metadata)).to_dict("records"):
            at = sweep(row["method"])
            if at and at[1] == int(at[1]):
                name = legal(f"series/by {at[0]}/{row['subset']}")
                series.setdefault(name, []).append((int(at[1]), row["value"]))
    return {name: sorted(steps) for name, steps in series.items()}


def note(rows: pd.DataFrame, metadata: Metadata, told: dict[str, str]) -> str:
    """What a run is, in Markdown: who was asked what and how, the main number, and what `told`
    says of its making."""
    first = rows.iloc[0]
    means = _means(rows[rows["method"] == main_variant(rows)])
    text = f"The model **{first['model']}**, asked by **{main_variant(rows)}** about "
    text += f"**{first['benchmark']}**: {metadata.description}."
    if len(means):
        subset, name = subsets(means, metadata)[0], primary(means, metadata)
        row = where(means, subset=subset, metric=name).iloc[0]
        interval = "" if pd.isna(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"
        title = catalog()[name].title
        text += f"\n\n{title} on {subset}: **{row['value']:.3f}**{interval}. "
        text += "All numbers are in the artefact scores.csv."
    made = "\n".join(f"- {name}: {value}" for name, value in told.items())
    return f"{text}\n\n{made}\n" if made else f"{text}\n"


def legal(name: str) -> str:
    """A metric's name with the characters that MLflow takes."""
    return "".join(c if c.isalnum() or c in "_-.:/ " else "_" for c in name)
