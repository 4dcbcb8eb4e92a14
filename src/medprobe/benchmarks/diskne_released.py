"""DisKnE from the annotation files that its authors released, positives and negatives.

`medprobe import annotation FOLDER` checks these files and brings them into `data/diskne`.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from medprobe.benchmarks import Benchmark, counts, diskne
from medprobe.benchmarks.diskne.examples import UMLS, Choices, read_pairs, tables, with_texts
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.sources import annotation
from medprobe.sources.hierarchy import Hierarchy

METADATA = replace(diskne.METADATA, sources=("mednli", "mediqa", *UMLS, "diskne"))


def build(data: Path, settings: Choices, seed: int) -> BenchmarkTables:
    """Build the examples, and a split for each disease that has enough positives. Raises BadInput
    for sources that are missing or amiss."""
    pairs, read = read_pairs(data)
    rows = _annotated(data / "diskne")
    read += counts.by_name("diskne", "annotations", rows["kind"])
    dropped: Counter[str] = Counter()
    rows = with_texts(rows, pairs, settings.unknown_pairs, "diskne", dropped)
    hierarchy = Hierarchy.read(data / "umls", settings.vocabulary)
    positives = rows[rows["label"] == 1].reset_index(drop=True)
    return tables(
        data,
        settings,
        seed,
        positives=positives,
        negatives=_placed(rows[rows["label"] == 0], positives),
        hierarchy=hierarchy,
        dropped=dropped,
        read=read,
    )


def _annotated(folder: Path) -> pd.DataFrame:
    """The rows of all released files; `kind` is positive, similar or random."""
    found = sorted(folder.glob("DisknE_*_annotation.csv"))
    if not found:
        remedy = "run `medprobe import annotation FOLDER`"
        raise BadInput(folder, "no DisknE_*_annotation.csv in it", remedy)
    tables = []
    for path in found:
        kind = "random" if "_random_" in path.name else "similar"
        table = annotation.read_released(path)
        table["kind"] = np.where(table["label"] == 1, "positive", kind)
        if path.with_name(path.name.replace("_random_", "_similar_")) in set(found) - {path}:
            table = table[table["label"] == 0]  # its positives stand in the other file too
        tables.append(table)
    return pd.concat(tables, ignore_index=True).assign(origin="released")


def _placed(given: pd.DataFrame, positives: pd.DataFrame) -> pd.DataFrame:
    """The negatives of released files: `position` (of their positive), `kind, original_cui, cui`.

    Where no positive has their pair, category and disease, theirs is the one of pair and category.
    """
    exact, loose = ["pair_id", "category", "original_cui"], ["pair_id", "category"]
    found = pd.Series(np.nan, index=given.index)
    for keys in (exact, loose):
        place = positives.drop_duplicates(keys).reset_index(names="position")[[*keys, "position"]]
        found = found.fillna(
            given.merge(place, on=keys, how="left").set_index(given.index)["position"]
        )
    for row in given[found.isna()].head(1).itertuples():
        raise BadInput("diskne", f"negative {row.cui} of pair {row.pair_id} has no positive")
    placed = given[["kind", "original_cui", "cui"]].assign(position=found.astype(int))
    return placed.sort_values("position", kind="stable").reset_index(drop=True)


BENCHMARK = Benchmark(METADATA, Choices, build)
