"""DisKnE from the annotation files that its authors released, positives and negatives.

`medprobe import annotation FOLDER` checks these files and brings them into `data/diskne`. Their
concepts are those of UMLS 2020AA. What the paper's numbers leave out of them is left out: positives
without negatives, repeated rows, and negatives of another disease than their positive's. Negatives
that the UMLS has above or below their positive's disease today are theirs, and stay.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, counts
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.diskne import annotation
from medprobe.papers.diskne.annotation import OF_POSITIVE
from medprobe.papers.diskne.benchmarks import diskne
from medprobe.papers.diskne.benchmarks.diskne.examples import (
    PAIRS,
    TABLES,
    UMLS,
    DiskneSettings,
    read_pairs,
    tables,
    with_texts,
)
from medprobe.papers.diskne.benchmarks.diskne.negatives import KINDS
from medprobe.papers.diskne.concepts import Hierarchy

METADATA = replace(diskne.METADATA, sources=("mednli", "mediqa", *UMLS, "diskne"))
LOOSE: Final = ["pair_id", "category"]
RowRule = Literal["drop", "keep"]
NegativeKind = Literal["similar", "random"]


class Settings(DiskneSettings):
    """Which released files are read, and what is done with what is odd in them."""

    kinds: tuple[NegativeKind, ...] = Field(KINDS, min_length=1)
    """Kinds of negatives to read. Kinds without a file are skipped."""
    without_negatives: RowRule = "drop"
    """Positives that have no negatives. The paper's counts leave them out."""
    duplicates: RowRule = "drop"
    """Rows that repeat an earlier row."""
    orphans: RowRule = "drop"
    """Negatives whose disease differs from that of their pair."""
    related: RowRule = "keep"
    """Negatives above or below their pair's disease in the `vocabulary`. The release has what its
    authors took for none, and the paper's numbers count it; the gate warns of them."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the examples, and a split for each disease that has enough positives."""
    pairs, read = read_pairs(data)
    rows = _annotated(data / "diskne", settings)
    read += counts.by_name("diskne", "annotations", rows["kind"])
    dropped: Counter[str] = Counter()
    rows = with_texts(rows, pairs, settings.unknown_pairs, "diskne", dropped)
    hierarchy = Hierarchy.read(data / "umls", settings.vocabulary)
    positives, negatives = _paired(rows, settings, hierarchy, dropped)
    return tables(
        data,
        settings,
        seed,
        positives=positives,
        negatives=negatives,
        hierarchy=hierarchy,
        dropped=dropped,
        read=read,
    )


def _annotated(folder: Path, settings: Settings) -> pd.DataFrame:
    """Read the rows of the released files that the settings name, in their order.

    `kind` is positive, similar or random.
    """
    files = [
        (kind, path)
        for kind in KINDS
        if kind in settings.kinds
        for path in sorted(folder.glob(f"DisknE_*_{kind}_annotation.csv"))
    ]
    if not files:
        problem = f"no DisknE_*_annotation.csv in it with {' or '.join(settings.kinds)} negatives"
        raise BadInput(folder, problem, "run `medprobe import annotation FOLDER`")
    rows: list[pd.DataFrame] = []
    for kind, path in files:
        table = annotation.read_released(path)
        table["kind"] = np.where(table["label"] == 1, "positive", kind)
        similar = path.with_name(path.name.replace("_random_", "_similar_"))
        if kind == "random" and ("similar", similar) in files:
            table = table[table["label"] == 0]  # its positives stand in the other file too
        rows.append(table[table["category"].isin(settings.categories)])
    every = pd.concat(rows, ignore_index=True)
    if every.empty:
        raise BadInput(folder, f"no row of {', '.join(settings.categories)}")
    return every.assign(origin="released", row=every.index)


def _paired(
    rows: pd.DataFrame, settings: Settings, hierarchy: Hierarchy, dropped: Counter[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return positives, and negatives with the `position` of the positive of each."""
    if settings.duplicates == "drop":
        twice = rows.duplicated([*OF_POSITIVE, "kind", "cui"])
        dropped["row: repeated"] += int(twice.sum())
        rows = rows[~twice]
    positives, negatives = rows[rows["label"] == 1], rows[rows["label"] == 0]
    if settings.orphans == "drop":
        matches = _key(negatives).isin(_key(positives))
        dropped["negative: of another disease than its pair's"] += int((~matches).sum())
        negatives = negatives[matches]
    if settings.related == "drop":
        pairs = [*zip(negatives["original_cui"], negatives["cui"], strict=True)]
        related = {cui: hierarchy.related(cui) for cui, _ in pairs}
        is_related = np.array([other in related[cui] for cui, other in pairs], dtype=bool)
        dropped["negative: above or below its pair's disease"] += int(is_related.sum())
        negatives = negatives[~is_related]
    if settings.without_negatives == "drop":
        alone = np.zeros(len(positives), dtype=bool)
        for _, kind_negatives in negatives.groupby("kind"):
            expected = positives["category"].isin(kind_negatives["category"]).to_numpy()
            alone |= expected & ~_key(positives).isin(_key(kind_negatives))
        dropped["positive: without negatives"] += int(alone.sum())
        negatives = negatives[~_key(negatives).isin(_key(positives[alone]))]
        positives = positives[~alone]
    positives = positives.reset_index(drop=True)
    return positives, _placed(negatives, positives)


def _key(rows: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(rows[OF_POSITIVE])


def _placed(negatives: pd.DataFrame, positives: pd.DataFrame) -> pd.DataFrame:
    """Return the negatives with the position of their positive.

    The columns are `kind, original_cui, cui, row, position`. Where no positive has their pair,
    category and disease, theirs is the one of pair and category.
    """
    position = pd.Series(np.nan, index=negatives.index)
    for keys in (OF_POSITIVE, LOOSE):
        place = positives.drop_duplicates(keys).reset_index(names="position")[[*keys, "position"]]
        position = position.fillna(
            negatives.merge(place, on=keys, how="left").set_index(negatives.index)["position"]
        )
    for row in negatives[position.isna()].head(1).itertuples():
        raise BadInput("diskne", f"negative {row.cui} of pair {row.pair_id} has no positive")
    placed = negatives[["kind", "original_cui", "cui", "row"]].assign(position=position.astype(int))
    return placed.sort_values("position", kind="stable").reset_index(drop=True)


FILES: Final = (*PAIRS, "diskne/DisknE_*_annotation.csv")
BENCHMARK = Benchmark(
    METADATA, Settings, build, lambda _: FILES, gate_sources=UMLS[:1], tables=TABLES
)
