"""DisKnE from the annotation files that its authors released, positives and negatives.

`medprobe import annotation FOLDER` checks these files and brings them into `data/diskne`. Their
concepts are those of UMLS 2020AA. What the paper's numbers leave out of them is left out: positives
without negatives, rows that stand twice, and negatives of another disease than their positive's.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, counts, diskne
from medprobe.benchmarks.diskne.examples import UMLS, Choices, read_pairs, tables, with_texts
from medprobe.benchmarks.diskne.negatives import KINDS
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.sources import annotation
from medprobe.sources.annotation import OF_POSITIVE
from medprobe.sources.hierarchy import Hierarchy

METADATA = replace(diskne.METADATA, sources=("mednli", "mediqa", *UMLS, "diskne"))
LOOSE: Final = ["pair_id", "category"]
Way = Literal["drop", "keep"]
Kind = Literal["similar", "random"]


class Settings(Choices):
    """Which released files are read, and what is done with what is odd in them."""

    kinds: tuple[Kind, ...] = Field(KINDS, min_length=1)
    """Kinds of negatives to read. Kinds without a file are skipped."""
    without_negatives: Way = "drop"
    """Positives that have no negatives. The paper's counts leave them out."""
    duplicates: Way = "drop"
    """Rows that repeat an earlier row."""
    orphans: Way = "drop"
    """Negatives whose disease differs from that of their pair."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the examples, and a split for each disease that has enough positives.

    Raises:
        BadInput: sources that are missing or amiss.
    """
    pairs, read = read_pairs(data)
    rows = _annotated(data / "diskne", settings)
    read += counts.by_name("diskne", "annotations", rows["kind"])
    dropped: Counter[str] = Counter()
    rows = with_texts(rows, pairs, settings.unknown_pairs, "diskne", dropped)
    positives, negatives = _paired(rows, settings, dropped)
    return tables(
        data,
        settings,
        seed,
        positives=positives,
        negatives=negatives,
        hierarchy=Hierarchy.read(data / "umls", settings.vocabulary),
        dropped=dropped,
        read=read,
    )


def _annotated(folder: Path, settings: Settings) -> pd.DataFrame:
    """The rows of the released files that are asked for, in their order.

    `kind` is positive, similar or random.
    """
    found = [
        (kind, path)
        for kind in KINDS
        if kind in settings.kinds
        for path in sorted(folder.glob(f"DisknE_*_{kind}_annotation.csv"))
    ]
    if not found:
        problem = f"no DisknE_*_annotation.csv in it with {' or '.join(settings.kinds)} negatives"
        raise BadInput(folder, problem, "run `medprobe import annotation FOLDER`")
    rows: list[pd.DataFrame] = []
    for kind, path in found:
        table = annotation.read_released(path)
        table["kind"] = np.where(table["label"] == 1, "positive", kind)
        if kind == "random" and ("similar", _of_kind(path, "similar")) in found:
            table = table[table["label"] == 0]  # its positives stand in the other file too
        rows.append(table[table["category"].isin(settings.categories)])
    every = pd.concat(rows, ignore_index=True)
    if every.empty:
        raise BadInput(folder, f"no row of {', '.join(settings.categories)}")
    return every.assign(origin="released", row=every.index)


def _of_kind(path: Path, kind: str) -> Path:
    return path.with_name(path.name.replace("_random_", f"_{kind}_"))


def _paired(
    rows: pd.DataFrame, settings: Settings, dropped: Counter[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Positives, and the negatives with the `position` of the positive that each was made from."""
    if settings.duplicates == "drop":
        twice = rows.duplicated([*OF_POSITIVE, "kind", "cui"])
        dropped["row: stands there twice"] += int(twice.sum())
        rows = rows[~twice]
    positives, negatives = rows[rows["label"] == 1], rows[rows["label"] == 0]
    if settings.orphans == "drop":
        own = _key(negatives).isin(_key(positives))
        dropped["negative: of another disease than its pair's"] += int((~own).sum())
        negatives = negatives[own]
    if settings.without_negatives == "drop":
        alone = np.zeros(len(positives), dtype=bool)
        for _, some in negatives.groupby("kind"):
            expected = positives["category"].isin(some["category"]).to_numpy()
            alone |= expected & ~_key(positives).isin(_key(some))
        dropped["positive: without negatives"] += int(alone.sum())
        negatives = negatives[~_key(negatives).isin(_key(positives[alone]))]
        positives = positives[~alone]
    positives = positives.reset_index(drop=True)
    return positives, _placed(negatives, positives)


def _key(rows: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(rows[OF_POSITIVE])


def _placed(given: pd.DataFrame, positives: pd.DataFrame) -> pd.DataFrame:
    """The negatives: `position` (of their positive), `kind, original_cui, cui, row`.

    Where no positive has their pair, category and disease, theirs is the one of pair and category.
    """
    found = pd.Series(np.nan, index=given.index)
    for keys in (OF_POSITIVE, LOOSE):
        place = positives.drop_duplicates(keys).reset_index(names="position")[[*keys, "position"]]
        found = found.fillna(
            given.merge(place, on=keys, how="left").set_index(given.index)["position"]
        )
    for row in given[found.isna()].head(1).itertuples():
        raise BadInput("diskne", f"negative {row.cui} of pair {row.pair_id} has no positive")
    placed = given[["kind", "original_cui", "cui", "row"]].assign(position=found.astype(int))
    return placed.sort_values("position", kind="stable").reset_index(drop=True)


BENCHMARK = Benchmark(METADATA, Settings, build, gate_sources=UMLS[:1])
