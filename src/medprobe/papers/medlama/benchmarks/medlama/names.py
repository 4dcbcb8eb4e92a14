"""Further names of MedLAMA's subjects, from MRCONSO by term type and language.

In RxNorm a brand is a concept of its own, which MRREL ties to its ingredient. In other vocabularies
(NCI, PDQ) it is a name of the ingredient's concept. Both are read.

Sources: UMLS Reference Manual, "Abbreviations Used in Data Elements", for the term types; Gallifant
et al. 2024 (RABBITS), for the exchange of brand and ingredient.
"""

from pathlib import Path
from typing import Final

import pandas as pd
import polars as pl
from pydantic import field_validator

from medprobe.benchmarks.families import FamilySettings, NameSettings, SubjectName
from medprobe.core.errors import nearest
from medprobe.sources import rrf

TERM_TYPES: Final[dict[str, tuple[str, ...]]] = {  # of English names, by kind
    "brand": ("BN", "FBD"),
    "ingredient": ("IN", "PIN"),
    "synonym": ("SY", "SYN", "SYGB", "PTGB", "ET"),
    "abbreviation": ("AB", "ACR"),
}
PREFERRED: Final = "preferred"
KINDS: Final = (PREFERRED, *TERM_TYPES)
TRADE_NAME: Final = "tradename_of"  # from a brand's concept to its ingredient's


class SubjectNames(NameSettings):
    """Which names of the subjects are asked."""

    subjects: tuple[str, ...] = ()
    """Kinds of names, in order of preference: `preferred`, `brand`, `ingredient`, `synonym`,
    `abbreviation`, or a language of MRCONSO such as `SPA` for its preferred names. Empty: the
    subject's own name alone."""

    @field_validator("subjects")
    @classmethod
    def _check_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind not in KINDS and not _is_language(kind):
                raise ValueError(f"no kind of name '{kind}'{nearest(kind, [*KINDS])}")
        return kinds


class ConceptFamilies(FamilySettings):
    """Which families are asked of a UMLS release."""

    names: SubjectNames = SubjectNames()
    """Further names of the subjects."""


def read_names(
    umls: Path, subjects: pd.DataFrame, settings: SubjectNames
) -> tuple[dict[str, list[SubjectName]], int]:
    """Read further names of subjects.

    A name that MRCONSO also gives to another concept is ambiguous, whatever its case, and left out.
    A brand and its ingredient count as one concept.
    """
    if not settings.subjects:
        return {}, 0
    concepts = pl.DataFrame({"CUI": sorted(set(subjects["subject_id"]))})
    related = _with_trade_names(umls, concepts, settings)
    atoms = _atoms(umls, related, settings)
    ambiguous = _ambiguous(umls, atoms, related)
    rows = subjects[["query_id", "subject_id", "subject"]].merge(
        atoms.filter(~pl.col("key").is_in(ambiguous)).to_pandas(),
        left_on="subject_id",
        right_on="CUI",
    )
    rows = rows[rows["key"] != rows["subject"].str.lower()]
    # The first name of each kind, then the second of each, and so on, no name twice.
    rows["place"] = rows.groupby(["query_id", "kind"]).cumcount()
    rows["order"] = rows["kind"].map(settings.subjects.index)
    rows = rows.sort_values(["place", "order", "STR"]).drop_duplicates(["query_id", "key"])
    names = {
        str(query): [SubjectName(*pair) for pair in zip(part["kind"], part["STR"], strict=True)]
        for query, part in rows.groupby("query_id").head(settings.at_most).groupby("query_id")
    }
    return names, len(ambiguous)


def _is_language(kind: str) -> bool:
    return len(kind) == 3 and kind.isalpha() and kind.isupper()


def _with_trade_names(umls: Path, concepts: pl.DataFrame, settings: SubjectNames) -> pl.DataFrame:
    """The concepts that have names of each subject's concept `CUI`: `other, kinds`.

    `kinds` is `brand` for the trade names of an ingredient, `ingredient` for what a brand contains,
    and `own` for the concept itself.
    """
    selves = concepts.with_columns(other="CUI", kinds=pl.lit("own"))
    if not {"brand", "ingredient"} & {*settings.subjects}:
        return selves
    pairs = rrf.read_mrrel(umls, ["CUI1", "CUI2"], pl.col("SAB") == "RXNORM", [TRADE_NAME])
    pairs = pairs.rename({"CUI2": "brand", "CUI1": "ingredient"})
    further = [
        pairs.join(concepts, left_on=end, right_on="CUI", how="semi").select(
            pl.col(end).alias("CUI"), pl.col(other).alias("other"), pl.lit(other).alias("kinds")
        )
        for end, other in (("ingredient", "brand"), ("brand", "ingredient"))
    ]
    return pl.concat([selves, *further]).unique()


def _atoms(umls: Path, related: pl.DataFrame, settings: SubjectNames) -> pl.DataFrame:
    """The names of each subject's concept in use: `CUI, kind, STR, key` (whatever the case)."""
    among = related.select(CUI="other").unique()
    columns = ["CUI", "LAT", "TS", "STT", "ISPREF", "TTY", "STR"]
    rows = rrf.read_mrconso(umls, columns, pl.col("SUPPRESS") == "N", among)
    english = pl.col("LAT") == "ENG"
    is_preferred = (pl.col("TS") == "P") & (pl.col("STT") == "PF") & (pl.col("ISPREF") == "Y")
    of_kind = {
        kind: english & pl.col("TTY").is_in(TERM_TYPES[kind])
        if kind in TERM_TYPES
        else is_preferred & (english if kind == PREFERRED else pl.col("LAT") == kind)
        for kind in settings.subjects
    }
    parts = []
    for kind, condition in of_kind.items():
        concepts = related.filter(pl.col("kinds").is_in(["own", kind]))
        names = rows.filter(condition).rename({"CUI": "other"}).join(concepts, on="other")
        parts.append(names.select("CUI", "STR", kind=pl.lit(kind)))
    return (
        pl.concat(parts)
        .with_columns(key=pl.col("STR").str.to_lowercase())
        .sort("CUI", "kind", "STR")
        .unique(["CUI", "kind", "key"], keep="first", maintain_order=True)
    )


def _ambiguous(umls: Path, atoms: pl.DataFrame, related: pl.DataFrame) -> list[str]:
    """The names, in lower case, that MRCONSO gives to further concepts."""
    key = pl.col("STR").str.to_lowercase()
    holders = rrf.read_mrconso(umls, ["CUI", "STR"], key.is_in(atoms["key"].unique().to_list()))
    holders = holders.select(other="CUI", key=key).unique()
    named = atoms.select("CUI", "key").unique().join(holders, on="key")
    return named.join(related, on=["CUI", "other"], how="anti")["key"].unique().to_list()
