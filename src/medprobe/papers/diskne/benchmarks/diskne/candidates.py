"""What DisKnE's annotators look at: entailed hypotheses that name a disease, with a first guess.

Source: Alghanmi et al. 2021, section 3.1; names of UMLS replace MetaMap.
"""

from collections import Counter
from pathlib import Path
from typing import Final

import pandas as pd
import polars as pl

from medprobe.papers.diskne.annotation import SHEET
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
    """Find the diseases that entailed hypotheses mention, one per row, with the columns of SHEET.

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
    return pd.DataFrame(rows, columns=SHEET)


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
