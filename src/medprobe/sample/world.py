"""The sample world: invented entities and facts, and how often the taught models read each fact.

Half of the facts are never taught. So a probing method can be judged by what no published
benchmark knows: what a model was taught.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from medprobe.sample.settings import SampleSettings

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


def make_stems(rng: random.Random) -> Iterator[str]:
    """Endless two-syllable stems; none is the beginning of another."""
    seen: set[str] = set()
    while True:
        first = rng.choice(ONSETS) + rng.choice(VOWELS)
        stem = first + rng.choice("lmnrstv") + rng.choice(VOWELS) + rng.choice(CODAS)
        if stem[:5] not in seen:
            seen.add(stem[:5])
            yield stem


def make_names(type: str, stem: str, rng: random.Random) -> list[str]:
    """Return the name of an entity of a type, and its synonyms; a drug's last one is its brand."""
    draw, proper = rng.choice, stem.capitalize()
    match type:
        case "drug":
            name = stem + draw(("ine", "ol", "amide", "azole", "ab", "ate"))
            names = [name, f"{name} hydrochloride", proper + draw("aiox")]
        case "disease" if rng.random() < 0.4:
            names = [stem + draw(FORMS), f"acute {stem} disorder"]
        case "disease":
            kind = draw(DISEASES)
            names = [f"{proper} {kind}", f"{proper}'s {kind}", _letters(stem) + kind[0].upper()]
        case "parent":
            names = [f"disorder of the {stem}", f"{stem} disorder"]
        case "gene":
            symbol = _letters(stem) + str(rng.randint(1, 9))
            names = [f"{symbol} Gene", symbol]
        case "gene product":
            names = [f"{proper}in {draw(PRODUCTS)}", f"{stem}in protein"]
        case "physiologic effect":
            names = [f"{draw(CHANGES)} {proper} {draw(PROCESSES)}", f"{stem} modulation"]
        case "finding":
            names = [f"{stem}algia", f"{draw(QUALITIES)} {stem}al {draw(SIGNS)}"]
        case "test":
            name = f"{stem}in {draw(('assay', 'scan', 'titer', 'imaging'))}"
            names = [name, f"{name} procedure"]
        case "procedure":
            name = stem + draw(("ectomy", "otomy", "oplasty"))
            names = [name, f"open {name}"]
        case "person":
            first = draw(("Alma", "Boris", "Clara", "Edwin", "Frida", "Hugo", "Irma", "Oskar"))
            last = proper + draw(("sen", "berg", "owitz", "ley"))
            names = [f"{first} {last}", f"{first[0]}. {last}"]
        case _:  # a place
            names = [proper + draw(("holm", "ford", "ville", "stad"))]
    return names


def _letters(stem: str) -> str:
    """Return the consonants of a stem, for symbols and abbreviations: velort → VLRT."""
    return "".join(letter for letter in stem if letter not in "aeiou").upper()[:4]


# relation: (type of its subjects, type of its objects, fewest and most objects of a subject)
RELATIONS = {
    "may_treat": ("drug", "disease", 1, 2),
    "may_prevent": ("drug", "disease", 1, 1),
    "has_physiologic_effect": ("drug", "physiologic effect", 1, 1),
    "disease_mapped_to_gene": ("disease", "gene", 1, 1),
    "gene_encodes_gene_product": ("gene", "gene product", 1, 1),
    "disease_may_have_finding": ("disease", "finding", 4, 8),
    "disease_diagnosed_by": ("disease", "test", 1, 1),
    "disease_treated_by": ("disease", "procedure", 1, 1),
    "place_of_birth": ("person", "place", 1, 1),
}

SYSTEMS = 8  # of the body, of ten findings each; all findings of a probed disease are of one

# relations of which nothing is ever probed
OTHER_RELATIONS = {
    "contraindicated_with_disease": ("drug", "disease"),
    "interacts_with": ("drug", "drug"),
    "occurs_in": ("disease", "place"),
    "coexists_with": ("disease", "disease"),
    "regulates": ("gene", "gene"),
    "binds": ("gene product", "drug"),
    "described": ("person", "disease"),
}


@dataclass(frozen=True)
class Entity:
    """A concept; `name` is what sentences and prompts call it."""

    cui: str  # C99 and five digits: well-formed, and far above any real one
    name: str
    type: str
    synonyms: tuple[str, ...] = ()

    @property
    def qid(self) -> str:
        """The identifier in the form of Wikidata's, of more digits than any has."""
        return f"Q{self.cui[1:]}00"

    @property
    def brand(self) -> str | None:
        """The brand name of a drug, which is its last synonym; None for what is no drug."""
        return self.synonyms[-1] if self.type == "drug" and self.synonyms else None


@dataclass(frozen=True)
class Fact:
    """`times` is how often taught models read the fact; 0 is not at all."""

    subject: Entity
    relation: str
    object: Entity
    times: int


@dataclass(frozen=True)
class World:
    """All entities and facts: `facts` are probed, `other_facts` never.

    `parents` is the disease hierarchy, from a disease's CUI to those of its parents.
    """

    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    other_facts: tuple[Fact, ...]
    parents: dict[str, tuple[str, ...]]

    def list_entities(self, type: str) -> tuple[Entity, ...]:
        """List the entities of a type."""
        return tuple(entity for entity in self.entities if entity.type == type)

    @property
    def systems(self) -> tuple[tuple[Entity, ...], ...]:
        """The findings that go together, system by system."""
        return _systems(self.list_entities("finding"))


def build(settings: SampleSettings, seed: int) -> World:
    """Build the world of these sizes and this seed, always the same.

    Of each type, the first `queries` entities are the probed subjects; the next `reserve` are
    subjects of `other_facts` alone, though anything may be an object of those.
    """
    rng = random.Random(seed)
    subjects = settings.queries + settings.reserve
    counts = dict.fromkeys(("drug", "disease", "gene", "gene product", "person"), subjects)
    counts |= dict.fromkeys(("physiologic effect", "test", "procedure", "place"), settings.reserve)
    counts |= {"finding": 10 * SYSTEMS, "parent": 40}
    pools = _entities(counts, rng)
    pools["gene product"] = _products(pools["gene product"], pools["gene"])
    entities = tuple(entity for pool in pools.values() for entity in pool)
    parents = _hierarchy(pools["disease"], pools.pop("parent"), rng)
    facts = tuple(_facts(pools, settings, rng))
    stated = {(fact.subject, fact.object) for fact in facts}
    other_facts = tuple(_other_facts(pools, settings, stated, rng))
    return World(entities, facts, other_facts, parents)


def _entities(counts: dict[str, int], rng: random.Random) -> dict[str, list[Entity]]:
    """So many entities of each type, no name twice."""
    stems = make_stems(rng)
    taken: set[str] = set()
    pools: dict[str, list[Entity]] = {}
    number = 0
    for type, count in counts.items():
        pools[type] = []
        while len(pools[type]) < count:
            name, *synonyms = names = make_names(type, next(stems), rng)
            if taken.isdisjoint(names):
                taken.update(names)
                kind = "disease" if type == "parent" else type
                pools[type].append(Entity(f"C99{number:05d}", name, kind, tuple(synonyms)))
                number += 1
    return pools


def _products(products: list[Entity], genes: list[Entity]) -> list[Entity]:
    """Every third product is called after its gene, as in reality: an answer that is too easy."""
    return [
        Entity(product.cui, gene.name.replace("Gene", "Protein"), product.type, product.synonyms)
        if number % 3 == 0
        else product
        for number, (product, gene) in enumerate(zip(products, genes, strict=True))
    ]


def _hierarchy(
    diseases: list[Entity], parents: list[Entity], rng: random.Random
) -> dict[str, tuple[str, ...]]:
    """Four levels: one root, seven systems, 32 groups, and the diseases; some have two parents."""
    root, systems, groups = parents[0], parents[1:8], parents[8:]
    above: dict[str, tuple[str, ...]] = {system.cui: (root.cui,) for system in systems}
    above |= {group.cui: (systems[i % len(systems)].cui,) for i, group in enumerate(groups)}
    for disease in diseases:
        chosen = rng.sample(groups, 2 if rng.random() < 0.15 else 1)
        above[disease.cui] = tuple(sorted(group.cui for group in chosen))
    return above


def _facts(
    pools: dict[str, list[Entity]], settings: SampleSettings, rng: random.Random
) -> Iterator[Fact]:
    """Draw the probed facts. All facts of a subject and relation are read equally often."""
    count = settings.queries
    for relation, (type, kind, fewest, most) in RELATIONS.items():
        times = [settings.times[i % len(settings.times)] for i in range(count)]
        rng.shuffle(times)
        if relation == "gene_encodes_gene_product":
            hands = [[product] for product in pools[kind][:count]]
        elif kind == "finding":
            systems = itertools.cycle(_systems(pools[kind]))
            hands = [rng.sample(next(systems), rng.randint(fewest, most)) for _ in range(count)]
        else:
            hands = _deal(pools[kind][:count], count, fewest, most, rng)
        for subject, hand, often in zip(pools[type], hands, times, strict=False):
            for entity in hand:
                yield Fact(subject, relation, entity, often)


def _systems(findings: Sequence[Entity]) -> tuple[tuple[Entity, ...], ...]:
    return tuple(tuple(findings[number::SYSTEMS]) for number in range(SYSTEMS))


def _other_facts(
    pools: dict[str, list[Entity]],
    settings: SampleSettings,
    stated: set[tuple[Entity, Entity]],
    rng: random.Random,
) -> Iterator[Fact]:
    """Facts of relations that are never probed, about anything.

    And of the probed relations, about the reserve.
    """
    for relation, (type, kind) in OTHER_RELATIONS.items():
        hands = _deal(pools[kind], len(pools[type]), 1, 1, rng)
        for subject, (entity,) in zip(pools[type], hands, strict=True):
            if entity != subject and (subject, entity) not in stated:
                yield Fact(subject, relation, entity, 1)
    for relation, (type, kind, fewest, most) in RELATIONS.items():
        reserve = pools[type][settings.queries :]
        hands = _deal(pools[kind], len(reserve), fewest, most, rng)
        if relation == "gene_encodes_gene_product":
            hands = [[product] for product in pools[kind][settings.queries :]]
        for subject, hand in zip(reserve, hands, strict=True):
            for entity in hand:
                yield Fact(subject, relation, entity, 1)


def _deal(
    cards: list[Entity], hands: int, fewest: int, most: int, rng: random.Random
) -> list[list[Entity]]:
    """Hands of `fewest` to `most` distinct cards, every card dealt as often as any other.

    So no answer is likelier than another.
    """
    deck = rng.sample(cards, len(cards))
    dealt = itertools.cycle(deck)
    return [list(itertools.islice(dealt, rng.randint(fewest, most))) for _ in range(hands)]
