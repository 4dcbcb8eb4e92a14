"""DisKnE: does this premise entail that the patient has this disease? Binary, per disease.

Source: Alghanmi et al. 2021, "Probing Pre-Trained Language Models for Disease Knowledge". Positives
are pairs of MedNLI and MEDIQA-NLI whose hypothesis gives the patient a disease, as annotated by
hand; negatives put a similar disease in its place. For each disease, nothing that mentions it is
trained on. `diskne_released` builds from the annotation that the authors released.
"""

from collections import Counter
from pathlib import Path
from typing import Final

import pandas as pd
import polars as pl
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.diskne import annotation, concepts
from medprobe.papers.diskne.benchmarks.diskne.examples import (
    PAIRS,
    TABLES,
    UMLS,
    DiskneSettings,
    read_pairs,
    tables,
    with_texts,
)
from medprobe.papers.diskne.benchmarks.diskne.negatives import choose, replaceable
from medprobe.papers.diskne.concepts import Hierarchy
from medprobe.sources import rrf
from medprobe.sources.mentions import Mentions

# Disease or Syndrome and its kin: neoplasms, mental disorders, injuries, anomalies and others.
DISEASES: Final = ("T047", "T191", "T048", "T046", "T037", "T019", "T020", "T190")
# What in a premise suggests a category, by semantic type.
SIGNS: Final = {
    "T184": "symptoms",  # Sign or Symptom
    "T033": "symptoms",  # Finding
    "T121": "treatments",  # Pharmacologic Substance
    "T200": "treatments",  # Clinical Drug
    "T034": "tests",  # Laboratory or Test Result
    "T059": "tests",  # Laboratory Procedure
    "T060": "tests",  # Diagnostic Procedure
    "T061": "procedures",  # Therapeutic or Preventive Procedure
}


def candidates(pairs: pd.DataFrame, umls: Path, diseases: tuple[str, ...]) -> pd.DataFrame:
    """Find the diseases that entailed hypotheses mention, one per row, with the columns of a sheet.

    `diseases` are the semantic types (TUI) that count. `end` is exclusive. The category is a
    suggestion: terminological where the premise names the disease too, else what kind of concept
    the premise mentions most.
    """
    finder = Mentions(_names(umls, diseases, "CUI"))
    signs = Mentions(_names(umls, tuple(SIGNS), "TUI"))
    rows = []
    for pair in pairs[pairs["label"] == "entailment"].itertuples():
        for mention in finder.find(pair.hypothesis):
            disease = pair.hypothesis[mention.start : mention.end]
            category = _suggest(pair.premise, mention.id, finder, signs)
            span = (mention.id, mention.start, mention.end)
            rows.append((pair.pair_id, pair.premise, pair.hypothesis, disease, *span, category))
    return pd.DataFrame(rows, columns=annotation.SHEET)


def _suggest(premise: str, disease: str, finder: Mentions, signs: Mentions) -> str:
    if any(disease in mention.ids for mention in finder.every(premise)):
        return "terminological"
    counts = Counter(SIGNS[mention.id] for mention in signs.find(premise))
    return min(counts, key=lambda category: (-counts[category], category), default="symptoms")


def _names(umls: Path, types: tuple[str, ...], key: str) -> list[tuple[str, str]]:
    """Read all English names of concepts of these types, each with its CUI or TUI."""
    kinds = rrf.read_mrsty(umls, ["CUI", "TUI"], pl.col("TUI").is_in(types))
    named = rrf.read_english_names(umls, kinds.select("CUI").unique())
    return named.join(kinds, on="CUI").select("STR", key).unique().sort("STR", key).rows()


VECTORS: Final = "cui2vec/cui2vec_pretrained.csv"
SHEET: Final = "diskne/annotation.csv"
ENTAILMENT: Final = "entailment"
TO_FILL_IN: Final = Path("outputs/annotation/diskne.csv")
METADATA = Metadata(
    description="Does a clinical sentence entail that the patient has a disease?",
    citation="Alghanmi, Espinosa-Anke and Schockaert, Findings of ACL 2021",
    licence="MedNLI and MEDIQA-NLI: PhysioNet credentialed; UMLS licence",
    terms="physionet",
    sources=("mednli", "mediqa", *UMLS, VECTORS, SHEET),
    primary_metric="f1",
    cluster="target",  # the disease
    many_relations=True,  # a disease each
)


class Settings(DiskneSettings):
    """Which diseases are annotated, and how many negatives each positive has."""

    diseases: tuple[str, ...] = Field(DISEASES, min_length=1)
    """UMLS semantic types that count as diseases."""
    negatives: int = Field(10, gt=0)
    """Negative examples of each kind per positive example."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the examples, and a split for each disease that has enough positives."""
    pairs, read = read_pairs(data)
    if not (data / SHEET).is_file():
        sheet = candidates(pairs, data / "umls", settings.diseases)
        annotation.write_sheet(sheet, TO_FILL_IN)
        remedy = f"fill in {TO_FILL_IN} and save it there, or build by diskne_released"
        raise BadInput(data / SHEET, "nobody has annotated yet", remedy)
    rows = annotation.read_sheet(data / SHEET).assign(kind="positive", origin="built")
    rows = rows[rows["category"].isin(settings.categories)]
    _check_labels(rows, pairs)
    read += counts.by_name(SHEET, "annotations", rows["category"])
    dropped: Counter[str] = Counter()
    positives = with_texts(rows, pairs, settings.unknown_pairs, SHEET, dropped)
    hierarchy = Hierarchy.read(data / "umls", settings.vocabulary)
    vectors = concepts.read(data / VECTORS, places.PARTS)
    read.append((VECTORS, "vectors", Path(VECTORS).name, len(vectors.rows)))
    unranked = positives.loc[~positives["cui"].isin(vectors.rows), "category"]
    read += counts.by_name(VECTORS, "annotations without a vector", unranked)
    positives = replaceable(positives, hierarchy, vectors, settings.negatives, dropped)
    negatives = choose(positives, hierarchy, vectors, settings.negatives, seed)
    return tables(
        data,
        settings,
        seed,
        positives=positives.assign(row=positives.index),
        negatives=negatives.assign(row=negatives["position"]),
        hierarchy=hierarchy,
        dropped=dropped,
        read=read,
    )


def _check_labels(rows: pd.DataFrame, pairs: pd.DataFrame) -> None:
    """Raise BadInput for a positive whose pair is not an entailment: the labels are exchanged."""
    labels = rows["pair_id"].map(dict(zip(pairs["pair_id"], pairs["label"], strict=True)))
    is_other = labels.notna() & (labels != ENTAILMENT)
    for pair, label in zip(rows.loc[is_other, "pair_id"], labels[is_other], strict=True):
        problem = f"pair {pair} is annotated as a positive, but MedNLI's label is {label}"
        raise BadInput(SHEET, problem, "download MedNLI again, or take the pair out")


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    files=lambda settings: PAIRS,
    gate_sources=(UMLS[0], VECTORS),
    tables=TABLES,
)
