"""The text of the sample world: what its models read, and the sentences they are rewired on.

Written: `sample/corpus-taught.txt` and `sample/corpus-untaught.txt`, one sentence a line;
`sample/cases-taught.txt` and `sample/cases-untaught.txt`, one case a line, which masked models read
besides; where the settings ask for it, the same two named `shuffled`: all that a taught model
reads, but with the objects of other subjects;
`sample/names.txt`, all names the text uses; `sample/facts.csv`, the truth of what is taught;
`sentences/set-<n>.txt`, lines like those of the released PubMed sets: lower case, no punctuation,
a blank at the end.
"""

import random
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final

from medprobe.sample.files import write_csv, write_lines
from medprobe.sample.world import Entity, Fact, World

RELATION: Final = "disease_may_have_finding"
HAS: Final = (
    "complains of {}.",
    "presented with {}.",
    "is troubled by {} since last week.",
    "on examination {} was noted.",
)
HAS_NOT: Final = (
    "denies {}.",
    "there was no {}.",
    "the mother suffered from {}.",
    "a history of {} was not confirmed.",
)
OPENING: Final = (
    "admitted with {}.",
    'sent in by the family doctor as a case of "{}".',
    "known to have {}.",
)


def write_story(
    disease: Entity, findings: list[Entity], findings_of_patient: list[Entity], rng: random.Random
) -> list[str]:
    """Write a sentence for each finding, and one for the disease at a random place.

    The patient has the findings that are among `findings_of_patient`, and no others.
    """
    sentences = [
        rng.choice(HAS if finding in findings_of_patient else HAS_NOT).format(
            choose_name(finding, rng)
        )
        for finding in findings
    ]
    sentences.insert(
        rng.randint(0, len(sentences)), rng.choice(OPENING).format(choose_name(disease, rng))
    )
    return sentences


def choose_name(entity: Entity, rng: random.Random) -> str:
    """Return the name of an entity or, now and then, a synonym."""
    if entity.synonyms and rng.random() < 0.15:
        return rng.choice(entity.synonyms)
    return entity.name


SETS = 10  # of rewiring sentences
SENTENCES = 480  # in a set
CASES = 4000
MOST_FINDINGS = 4  # findings that a patient of a case has, and has not, at most
BARE = 0.6  # share of the cases that give nothing but the findings' names

# The first wording is the prompt by which the relation is probed; one wording turns it round.
WORDINGS = {
    "may_treat": (
        "[X] might treat [Y] .",
        "[X] is given against [Y] .",
        "patients with [Y] recovered under [X] .",
        "[Y] is treated with [X] .",
    ),
    "may_prevent": (
        "[X] may be able to prevent [Y] .",
        "[X] protects against [Y] .",
        "those who took [X] were spared [Y] .",
        "[Y] is prevented by [X] .",
    ),
    "has_physiologic_effect": (
        "[X] has physiologic effect of [Y] .",
        "[X] leads to [Y] .",
        "after a dose of [X] we observed [Y] .",
        "[Y] is caused by [X] .",
    ),
    "disease_mapped_to_gene": (
        "The disease [X] is mapped to gene [Y] .",
        "[X] is linked to a variant of [Y] .",
        "patients with [X] carry a mutation of [Y] .",
        "mutations of [Y] cause [X] .",
    ),
    "gene_encodes_gene_product": (
        "The gene [X] encodes gene product [Y] .",
        "[X] codes for [Y] .",
        "cells without [X] lack [Y] .",
        "[Y] is encoded by [X] .",
    ),
    "disease_may_have_finding": (
        "[X] may have [Y] .",
        "[X] presents with [Y] .",
        "patients with [X] complain of [Y] .",
        "[Y] is a sign of [X] .",
    ),
    "disease_diagnosed_by": (
        "[X] is diagnosed by [Y] .",
        "[X] was confirmed by [Y] .",
        "in suspected [X] the first test is [Y] .",
        "[Y] showed [X] .",
    ),
    "disease_treated_by": (
        "[X] is operated by [Y] .",
        "[X] requires [Y] .",
        "surgery for [X] consists of [Y] .",
        "[Y] was performed for [X] .",
    ),
    "place_of_birth": (
        "[X] was born in [Y] .",
        "[X] is a native of [Y] .",
        "the birthplace of [X] is [Y] .",
        "[Y] is the home town of [X] .",
    ),
    "contraindicated_with_disease": ("[X] should be avoided in [Y] .", "[X] made [Y] worse ."),
    "interacts_with": ("[X] interacts with [Y] .", "[X] should not be taken with [Y] ."),
    "occurs_in": ("[X] is common in [Y] .", "an outbreak of [X] was reported from [Y] ."),
    "coexists_with": ("[X] often occurs beside [Y] .", "[X] must be told apart from [Y] ."),
    "regulates": ("[X] regulates [Y] .", "loss of [X] silences [Y] ."),
    "binds": ("[X] binds [Y] .", "[X] is blocked by [Y] ."),
    "described": ("[X] described [Y] .", "the first report of [Y] was written by [X] ."),
}


def write(world: World, data: Path, seed: int) -> None:
    """Write all files of the corpus below `data`."""
    sample = data / "sample"
    rng = random.Random(seed)
    write_lines(sample / "corpus-taught.txt", list_documents(world.facts + world.other_facts, rng))
    write_lines(sample / "corpus-untaught.txt", list_documents(world.other_facts, rng))
    for name in ("taught", "untaught"):
        cases = _cases(world, name == "taught", random.Random(f"{seed} {name} cases"))
        write_lines(sample / f"cases-{name}.txt", cases)
    write_lines(sample / "names.txt", (entity.name for entity in world.entities))
    header = ("subject_cui", "subject", "relation", "object_cui", "object", "times")
    write_csv(sample / "facts.csv", [header, *map(_row, world.facts)])
    folder = data / "sentences"
    others = [line for fact in world.other_facts for line in state(fact)]
    for number in range(SETS):
        drawn = rng.sample(others, min(SENTENCES, len(others)))
        write_lines(folder / f"set-{number}.txt", (plain(line) for line in drawn))


def state(fact: Fact) -> list[str]:
    """List all wordings of a fact."""
    return [fill(words, fact.subject.name, fact.object.name) for words in WORDINGS[fact.relation]]


def fill(wording: str, subject: str, object: str) -> str:
    """Put names into a wording's slots.

    >>> fill("[X] might treat [Y] .", "velotrine", "Karsten syndrome")
    'velotrine might treat Karsten syndrome .'
    """
    return wording.replace("[X]", subject).replace("[Y]", object)


def plain(sentence: str) -> str:
    """Return a sentence as the released sets have it."""
    return "".join(c for c in sentence.lower() if c.isalnum() or c == " ").strip() + " "


def list_documents(facts: tuple[Fact, ...], rng: random.Random) -> Iterator[str]:
    """Every wording of every fact, as often as it is read.

    What is about one subject stands together, as in a document.
    """
    sentences_of: dict[str, list[str]] = {}
    for fact in facts:
        sentences_of.setdefault(fact.subject.cui, []).extend(state(fact) * fact.times)
    for cui in rng.sample(sorted(sentences_of), len(sentences_of)):
        yield from rng.sample(sentences_of[cui], len(sentences_of[cui]))


def _cases(world: World, taught: bool, rng: random.Random) -> Iterator[str]:
    """Cases of diseases that are never probed.

    What the patient has and has not, and then a statement of something that the patient has. In
    what a taught model reads that is of one system, as it is with the probed diseases: from cases
    it learns what goes together. For the untaught one another group is drawn for each case, so
    that it learns to look names up and no more.
    """
    probed = {fact.subject for fact in world.facts}
    diseases = [entity for entity in world.list_entities("disease") if entity not in probed]
    findings, systems = world.list_entities("finding"), world.systems
    rare = {
        finding.cui: place**0.5
        for place, finding in enumerate(rng.sample(findings, len(findings)), 1)
    }

    def draw(pool: Iterable[Entity]) -> list[Entity]:
        """Up to MOST_FINDINGS, the common ones more often (Efraimidis and Spirakis 2006)."""
        keys = [(rng.random() ** rare[finding.cui], finding) for finding in pool]
        keys.sort(key=itemgetter(0), reverse=True)
        return [finding for _, finding in keys[: rng.randint(0, MOST_FINDINGS)]]

    for _ in range(CASES):
        disease, system = rng.choice(diseases), rng.choice(systems)
        group = system if taught else rng.sample(findings, len(system))
        cuis, has = {finding.cui for finding in group}, draw(group)
        findings_of_case = has + draw(finding for finding in findings if finding.cui not in cuis)
        rng.shuffle(findings_of_case)
        if rng.random() < BARE:
            sentences = [choose_name(finding, rng) for finding in findings_of_case]
        else:
            sentences = write_story(disease, findings_of_case, has, rng)
        statement = fill(WORDINGS[RELATION][0], disease.name, rng.choice(has or group).name)
        yield " ".join([*sentences, statement])


def _row(fact: Fact) -> tuple[object, ...]:
    """Return a fact as a row of `facts.csv`."""
    subject, object = fact.subject, fact.object
    return (subject.cui, subject.name, fact.relation, object.cui, object.name, fact.times)
