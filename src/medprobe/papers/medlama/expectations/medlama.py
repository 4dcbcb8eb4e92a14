"""MedLAMA's expectations: facts that UMLS has, read again from its own files.

This module shares nothing with the readers of `sources`, so that a mistake of theirs cannot hide
itself. Source: UMLS Reference Manual, tables MRREL, MRCONSO and MRSTY.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from medprobe.core import places
from medprobe.gate.checks import row_check, says
from medprobe.sources.reread import (
    AUI,
    CUI,
    MRCONSO,
    MRSTY,
    PREFERRED,
    STR,
    read_lines,
    read_names,
    read_types,
)

MRREL = places.DATA / "umls/MRREL.RRF"
CUI1, AUI1, CUI2, AUI2, RELA, SAB, SUPPRESS = 0, 1, 4, 5, 7, 10, 14  # CUI2 has RELA to CUI1
IN_USE: Final = "N"  # in SUPPRESS
WHY: Final = "the gate reads a sample of facts again"
SUBSTANCES: Final = ("A1.4", "A1.3.3")  # and clinical drugs
GENES: Final = ("A1.2.3.5",)
ANATOMY: Final = ("A1.2", "A2.1.4.1", "A2.1.5.1", "A2.1.5.2")
DISEASES: Final = ("B2.2.1.2", "B2.3", "A1.2.2")  # and injuries and anomalies
FINDINGS: Final = ("A2.2",)
PROCESSES: Final = ("B2",)  # of the body, sound or ill

# What the subjects and the answers of a relation are, as numbers in the tree of the UMLS's semantic
# types (STN of MRSTY.RRF): these types and those below them. Two ends of one kind, as in
# associated_morphology_of, have no entry. The answers of gene_product_has_biochemical_function are
# proteins as often as functions.
ENDS: Final = {
    "gene_product_plays_role_in_biological_process": (SUBSTANCES, PROCESSES),
    "gene_product_encoded_by_gene": (SUBSTANCES, GENES),
    "gene_product_has_associated_anatomy": (SUBSTANCES, ANATOMY),
    "gene_associated_with_disease": (GENES, DISEASES),
    "disease_has_abnormal_cell": (DISEASES, ANATOMY),
    "disease_may_have_molecular_abnormality": (("B2.2.1.2.1",), ("B2.2.1.2.2", "B2.2.1.1")),
    "disease_has_associated_anatomic_site": (DISEASES, ANATOMY),
    "disease_has_normal_tissue_origin": (DISEASES, ANATOMY),
    "gene_encodes_gene_product": (GENES, SUBSTANCES),
    "has_physiologic_effect": (SUBSTANCES, (*PROCESSES, *FINDINGS)),
    "may_treat": (SUBSTANCES, (*PROCESSES, *FINDINGS, "A1.2.2")),
    "disease_mapped_to_gene": (DISEASES, GENES),
    "may_prevent": (SUBSTANCES, (*PROCESSES, *FINDINGS, "A1.2.2")),
    "disease_may_have_finding": (DISEASES, FINDINGS),
    "disease_has_normal_cell_origin": (DISEASES, ANATOMY),
}


@row_check
@says("the source has no such fact")
def expect_facts_to_be_in_umls(
    rows: pd.DataFrame, sample: int, *, obsolete: bool = False
) -> pd.Series:
    """Every fact of a sample of rows is in MRREL.RRF.

    Columns `relation, subject_id, answer_ids`. The sample has this many rows, or all; the same
    table has the same sample. A fact that its vocabulary has withdrawn counts with `obsolete` only.
    """
    relation, subject, _ = rows.columns
    drawn = rows.sample(min(sample, len(rows)), random_state=0)
    facts = _facts(MRREL, set(drawn[relation]), set(drawn[subject]), obsolete)
    pairs = {(fact.relation, fact.subject, fact.answer) for fact in facts}
    accepted = pd.Series(True, index=rows.index)
    for row, name, cui, answer_ids in drawn.itertuples(name=None):
        accepted[row] = all((name, cui, answer) in pairs for answer in answer_ids)
    return accepted


@row_check
@says("a right answer of the source is missing")
def expect_answers_to_be_complete(
    rows: pd.DataFrame,
    *,
    vocabularies: Sequence[str],
    names: str,
    sample: int,
    obsolete: bool = False,
) -> pd.Series:
    """Every right answer of a sample of rows is there: a query of too many is dropped, not cut.

    Columns `relation, subject_id, subject, answers`. Right are the names of all tails that these
    vocabularies give the subject, under its name, in MRREL.RRF: the names of the rows' own atoms,
    or with `names` "preferred" the concepts' preferred English ones. Facts that their vocabulary
    has withdrawn count with `obsolete` only. The sample has this many rows, or all.
    """
    relation, subject_id, *_ = rows.columns
    drawn = rows.sample(min(sample, len(rows)), random_state=0)
    facts = _facts(MRREL, set(drawn[relation]), set(drawn[subject_id]), obsolete)
    facts = [fact for fact in facts if fact.vocabulary in vocabularies]
    cuis = {cui for fact in facts for cui in (fact.subject, fact.answer)}
    name_of = _preferred_names(cuis) if names == "preferred" else _names_of_atoms(cuis)
    right: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for fact in facts:
        subject, answer = (
            name_of.get(cui if names == "preferred" else atom, name_of.get(cui, ""))
            for cui, atom in ((fact.subject, fact.subject_atom), (fact.answer, fact.answer_atom))
        )
        if answer:
            right[fact.relation, fact.subject, subject].add(answer)
    accepted = pd.Series(True, index=rows.index)
    for row, name, cui, subject, answers in drawn.itertuples(name=None):
        accepted[row] = right[name, cui, subject] <= {*answers}
    return accepted


@row_check
@says("subject and answers are exchanged")
def expect_relations_to_point_forward(rows: pd.DataFrame, share: float) -> list[bool]:
    """Subjects and answers are of the semantic types of their relation's ends, not exchanged.

    Columns `relation, subject_id, answer_ids`, types of MRSTY.RRF, ends of `ENDS`. A few facts can
    be odd: those that only fit turned round fail where more than this share of the relation's facts
    are such, of all facts that fit either way.
    """
    relation, subject, ids = rows.columns
    facts = rows[rows[relation].isin(ENDS)].explode(ids)
    types = read_types(MRSTY, {*facts[subject], *facts[ids]}, "the gate reads semantic types again")

    def fit(name: str, first: str, second: str) -> bool:
        pairs = zip(ENDS[name], (first, second), strict=True)
        return all(_is_below(types.get(cui, ()), kinds) for kinds, cui in pairs)

    forward, turned = Counter[str](), Counter[str]()
    exchanged = []
    for row, name, first, second in facts.itertuples(name=None):
        forward[name] += (straight := fit(name, first, second))
        if not straight and fit(name, second, first):
            turned[name] += 1
            exchanged.append((row, name))
    failing = {row for row, of in exchanged if turned[of] > share * (turned[of] + forward[of])}
    return [row not in failing for row in rows.index]


def _is_below(types: Collection[str], kinds: Sequence[str]) -> bool:
    """Whether a type is one of these kinds, or below one in the tree."""
    return any(f"{of}.".startswith(f"{kind}.") for of in types for kind in kinds)


class UmlsFact(NamedTuple):
    """A row of MRREL: `subject` has the relation to `answer`, by CUI, and both by AUI."""

    relation: str
    subject: str
    subject_atom: str
    answer: str
    answer_atom: str
    vocabulary: str


def _facts(path: Path, relations: set[str], subjects: set[str], obsolete: bool) -> list[UmlsFact]:
    facts = []
    for line in read_lines(path, WHY):
        fields = line.split("|")
        if fields[CUI2] not in subjects or fields[RELA] not in relations:
            continue
        if obsolete or len(fields) <= SUPPRESS or fields[SUPPRESS] == IN_USE:
            vocabulary = fields[SAB] if len(fields) > SAB else ""
            fact = (fields[RELA], fields[CUI2], fields[AUI2], fields[CUI1], fields[AUI1])
            facts.append(UmlsFact(*fact, vocabulary))
    return facts


def _names_of_atoms(cuis: set[str]) -> dict[str, str]:
    """The names of these concepts' atoms by AUI, and the last name of each concept by its CUI.

    The last one is so in a release, which sorts its rows by their first fields.
    """
    names = {}
    for fields in sorted(read_names(MRCONSO, cuis, {}, WHY), key=lambda row: row[: AUI + 1]):
        names[fields[AUI]] = names[fields[CUI]] = fields[STR]
    return names


def _preferred_names(cuis: set[str]) -> dict[str, str]:
    """The first preferred English name of each concept."""
    names: dict[str, str] = {}
    for fields in read_names(MRCONSO, cuis, PREFERRED, WHY):
        names.setdefault(fields[CUI], fields[STR])
    return names
