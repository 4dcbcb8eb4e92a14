"""Invented names that sound like medicine: distinct stems, and a morphology for each type."""

import random
from collections.abc import Callable, Iterator

ONSETS = [*"bcdfghklmnprstvwz", "br", "cr", "dr", "fr", "gl", "kr", "pr", "qu", "sk", "st", "tr"]
VOWELS = ["a", "e", "i", "o", "u"]
CODAS = ["l", "n", "r", "s", "m", "nd", "rt", "l", "n", "r", "st", "v"]
DISEASES = ["syndrome", "disease", "fever", "palsy", "anemia", "dystrophy", "neuropathy"]
FORMS = ["itis", "osis", "oma", "emia", "opathy"]
QUALITIES = ["burning", "nocturnal", "dull", "swollen", "pale", "rigid", "brittle", "sudden"]
SIGNS = ["tremor", "rash", "cough", "cramp", "itch", "ache", "spasm", "numbness"]
CHANGES = ["Increased", "Decreased", "Altered"]
PROCESSES = ["Secretion", "Uptake", "Release", "Clearance"]
PRODUCTS = ["Receptor", "Kinase", "Ligase", "Transporter"]


def stems(rng: random.Random) -> Iterator[str]:
    """Endless two-syllable stems; none is the beginning of another."""
    seen: set[str] = set()
    while True:
        first = rng.choice(ONSETS) + rng.choice(VOWELS)
        stem = first + rng.choice("lmnrstv") + rng.choice(VOWELS) + rng.choice(CODAS)
        if stem[:5] not in seen:
            seen.add(stem[:5])
            yield stem


def name_drug(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a drug and its synonyms, the last of them its brand name."""
    name = stem + rng.choice(("ine", "ol", "amide", "azole", "ab", "ate"))
    return name, (f"{name} hydrochloride", stem.capitalize() + rng.choice("aiox"))


def name_disease(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a disease and its synonyms."""
    if rng.random() < 0.4:
        return stem + rng.choice(FORMS), (f"acute {stem} disorder",)
    kind = rng.choice(DISEASES)
    founder = stem.capitalize()
    return f"{founder} {kind}", (f"{founder}'s {kind}", _letters(stem) + kind[0].upper())


def name_parent(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a group of diseases and its synonyms."""
    return f"disorder of the {stem}", (f"{stem} disorder",)


def name_gene(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a gene and its symbol."""
    symbol = _letters(stem) + str(rng.randint(1, 9))
    return f"{symbol} Gene", (symbol,)


def name_product(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a gene product and its synonyms."""
    return f"{stem.capitalize()}in {rng.choice(PRODUCTS)}", (f"{stem}in protein",)


def name_effect(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a physiologic effect and its synonyms."""
    name = f"{rng.choice(CHANGES)} {stem.capitalize()} {rng.choice(PROCESSES)}"
    return name, (f"{stem} modulation",)


def name_finding(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a finding and its synonyms."""
    return f"{stem}algia", (f"{rng.choice(QUALITIES)} {stem}al {rng.choice(SIGNS)}",)


def name_test(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a laboratory test and its synonyms."""
    name = f"{stem}in {rng.choice(('assay', 'scan', 'titer', 'imaging'))}"
    return name, (f"{name} procedure",)


def name_procedure(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a procedure and its synonyms."""
    name = stem + rng.choice(("ectomy", "otomy", "oplasty"))
    return name, (f"open {name}",)


def name_person(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a person and an abbreviation of it."""
    first = rng.choice(("Alma", "Boris", "Clara", "Edwin", "Frida", "Hugo", "Irma", "Oskar"))
    last = stem.capitalize() + rng.choice(("sen", "berg", "owitz", "ley"))
    return f"{first} {last}", (f"{first[0]}. {last}",)


def name_place(stem: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the name of a place; it has no synonyms."""
    return stem.capitalize() + rng.choice(("holm", "ford", "ville", "stad")), ()


NAMERS: dict[str, Callable[[str, random.Random], tuple[str, tuple[str, ...]]]] = {
    "drug": name_drug,
    "disease": name_disease,
    "parent": name_parent,
    "gene": name_gene,
    "gene product": name_product,
    "physiologic effect": name_effect,
    "finding": name_finding,
    "test": name_test,
    "procedure": name_procedure,
    "person": name_person,
    "place": name_place,
}


def _letters(stem: str) -> str:
    """Return the consonants of a stem, for symbols and abbreviations: velort → VLRT."""
    return "".join(letter for letter in stem if letter not in "aeiou").upper()[:4]
