"""UMLS release files of the sample world: MRCONSO, MRREL, MRSTY, with what real ones hold.

That is names in several languages, suppressed ones, quotes and accents inside fields, a drug that
is called `NA`, facts both ways round, relations and vocabularies that a benchmark leaves out, a
drug with more answers than a query may have, and relations whose atoms have no name.
"""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from medprobe.sample.files import write_lines
from medprobe.sample.world import Entity, Fact, World

VOCABULARIES = {
    "drug": "MED-RT",
    "disease": "SNOMEDCT_US",
    "gene": "NCI",
    "gene product": "NCI",
    "physiologic effect": "MED-RT",
    "finding": "SNOMEDCT_US",
    "test": "SNOMEDCT_US",
    "procedure": "SNOMEDCT_US",
}
SEMANTIC_TYPES = {  # TUI, STN and STY of each
    "drug": ("T121", "A1.4.1.1.1", "Pharmacologic Substance"),
    "disease": ("T047", "B2.2.1.2.1", "Disease or Syndrome"),
    "neoplasm": ("T191", "B2.2.1.2.1.2", "Neoplastic Process"),
    "gene": ("T028", "A1.2.3.5", "Gene or Genome"),
    "gene product": ("T116", "A1.4.1.2.1.7", "Amino Acid, Peptide, or Protein"),
    "physiologic effect": ("T039", "B2.2.1.1", "Physiologic Function"),
    "finding": ("T184", "A2.2.2", "Sign or Symptom"),
    "test": ("T059", "B1.3.1.1", "Laboratory Procedure"),
    "procedure": ("T061", "B1.3.1.3", "Therapeutic or Preventive Procedure"),
}
INVERSES = {  # relation of MedLAMA: its name from object to subject, "" where MedLAMA has it too
    "may_treat": "may_be_treated_by",
    "may_prevent": "may_be_prevented_by",
    "has_physiologic_effect": "physiologic_effect_of",
    "disease_mapped_to_gene": "gene_mapped_to_disease",
    "gene_encodes_gene_product": "",
    "disease_may_have_finding": "is_finding_of_disease",
}
SPANISH = {"disease": "síndrome «{}»", "finding": "señal de {}", "drug": "{} clorhidrato año 1"}
# drugs that no text mentions
ODD = [
    Entity(f"C98{number:05d}", name, "drug")
    for number, name in enumerate(("NA", 'so-called "vortrel" extract', "Ménadrel-β"))
]
BUSY = Entity("C9800099", "panacetrol", "drug")
MANY = 12  # answers of BUSY: more than a query may have
UNNAMED = 40  # every so many rows of MRREL has an atom that MRCONSO lacks


def write(world: World, data: Path, seed: int) -> None:
    """Write `umls/MRCONSO.RRF`, `MRREL.RRF` and `MRSTY.RRF` below `data`."""
    rng = random.Random(f"{seed} umls")
    entities = [entity for entity in world.entities if entity.type in VOCABULARIES]
    entities += [*ODD, BUSY]
    folder = data / "umls"
    names = [row for entity in entities for row in _names(entity, rng)]
    relations = _numbered([*_relations(world, rng), *_hierarchy(world)])
    types = map(_semantic_type, entities)
    for name, rows in (("MRCONSO", names), ("MRREL", relations), ("MRSTY", types)):
        write_lines(folder / f"{name}.RRF", ("|".join([*row, ""]) for row in rows))


def atom(entity: Entity) -> str:
    """Return the AUI of an entity's preferred name."""
    return f"A{entity.cui[1:]}00"


def _names(entity: Entity, rng: random.Random) -> Iterator[list[str]]:
    """An entity's rows of MRCONSO.

    The preferred name is not always the first, and often not the last: the order says nothing.
    """
    vocabulary = VOCABULARIES[entity.type]
    rows = [("ENG", "P", "PF", "Y", vocabulary, "PT", entity.name, "N")]
    for synonym in entity.synonyms:
        source, type = ("NCI", "BN") if synonym == entity.brand else (vocabulary, "SY")
        rows.append(("ENG", "S", "PF", "Y", source, type, synonym, "N"))
    if rng.random() < 0.3:
        rows.append(("ENG", "P", "PF", "N", "MSH", "MH", entity.name, "N"))
    if rng.random() < 0.1:
        rows.append(("ENG", "S", "VO", "Y", "MSH", "PEP", f'"{entity.name}", old name', "O"))
    if entity.type in SPANISH and rng.random() < 0.2:
        name = SPANISH[entity.type].format(entity.name.split(" ")[0].lower())
        rows.append(("SPA", "P", "PF", "Y", "SCTSPA", "PT", name, "N"))
    numbered = list(enumerate(rows))
    rng.shuffle(numbered)
    for number, (language, status, form, preferred, source, type, name, suppressed) in numbered:
        serial = f"{entity.cui[1:]}{number:02d}"
        names = [f"L{serial}", form, f"S{serial}", preferred, f"A{serial}"]
        code = f"99{serial}"
        yield [
            *(entity.cui, language, status, *names, "", code, ""),
            *(source, type, code, name, "0", suppressed, ""),
        ]


def _relations(world: World, rng: random.Random) -> Iterator[list[str]]:
    """Yield the facts as rows of MRREL without RUI, and rows that a builder must leave out."""
    medical = [fact for fact in world.facts if fact.relation in INVERSES]
    diseases = world.list_entities("disease")
    extra = [Fact(drug, "may_treat", rng.choice(diseases), 0) for drug in ODD]
    extra += [Fact(BUSY, "may_treat", disease, 0) for disease in rng.sample(diseases, MANY)]
    for number, fact in enumerate(sorted([*medical, *extra], key=lambda f: f.object.cui)):
        vocabulary = "MED-RT" if fact.subject.type == "drug" else "NCI"
        row = _relation(fact.subject, fact.relation, fact.object, vocabulary)
        if fact.times == 0 and number % UNNAMED == 0:
            row[1] = f"A{fact.object.cui[1:]}99"
        yield row
        if inverse := INVERSES[fact.relation]:
            yield _relation(fact.object, inverse, fact.subject, vocabulary)
        if rng.random() < 0.1:  # said again, and wrongly, by a vocabulary that does not count
            wrong = rng.choice(world.list_entities(fact.object.type))
            yield _relation(fact.subject, fact.relation, fact.object, "MSH")
            yield _relation(fact.subject, fact.relation, wrong, "MTHSPL")
    for fact in world.other_facts:
        if {fact.subject.type, fact.object.type} <= set(VOCABULARIES) - {"test", "procedure"}:
            relation = fact.relation if fact.relation not in INVERSES else ""
            yield _relation(fact.subject, relation, fact.object, "NCI")


def _hierarchy(world: World) -> Iterator[list[str]]:
    """Each edge of the disease hierarchy twice, as in a release: PAR from below, CHD from above."""
    by_cui = {entity.cui: entity for entity in world.list_entities("disease")}
    for child, parents in world.parents.items():
        for parent in parents:
            ends = by_cui[child], by_cui[parent]
            yield _relation(ends[1], "inverse_isa", ends[0], "SNOMEDCT_US", "PAR")
            yield _relation(ends[0], "isa", ends[1], "SNOMEDCT_US", "CHD")


def _relation(
    head: Entity, relation: str, tail: Entity, vocabulary: str, kind: str = "RO"
) -> list[str]:
    """Return a row of MRREL, which holds from its second concept to its first."""
    return [
        *(tail.cui, atom(tail), "SCUI", kind, head.cui, atom(head), "SCUI", relation),
        *("", "", vocabulary, vocabulary, "", "Y", "N", ""),
    ]


def _numbered(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    for number, row in enumerate(rows):
        row[8] = f"R99{number:06d}"
        yield row


def _semantic_type(entity: Entity) -> list[str]:
    neoplasm = entity.type == "disease" and entity.name.endswith("oma")
    tui, tree, name = SEMANTIC_TYPES["neoplasm" if neoplasm else entity.type]
    return [entity.cui, tui, tree, name, f"AT{entity.cui[1:]}", ""]
