"""The sample world: invented entities and facts, and how often the taught models read each fact.

Half of the facts are never taught. So a probing method can be judged by what no published
benchmark knows: what a model was taught.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from medprobe.sample import names
from medprobe.sample.settings import SampleSettings

# relation: (type of its subjects, type of its objects, fewest and most objects of a subject)
RELATIONS = {
    "may_treat": ("drug", "disease", 1, 2),
    "may_prevent": ("drug", "disease", 1, 1),
    "has_physiologic_effect": ("drug", "physiologic effect", 1, 1),
    "disease_mapped_to_gene": ("disease", "gene", 1, 1),
    "gene_encodes_gene_product": ("gene", "gene product", 1, 1),
    "disease_may_have_finding": ("disease", "finding", 3, 6),
    "disease_diagnosed_by": ("disease", "test", 1, 1),
    "disease_treated_by": ("disease", "procedure", 1, 1),
    "place_of_birth": ("person", "place", 1, 1),
}

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

OBJECTS = {"physiologic effect": 30, "finding": 48, "test": 30, "procedure": 30, "place": 30}


@dataclass(frozen=True)
class Entity:
    """A concept; `name` is what sentences and prompts call it."""

    cui: str  # C99 and five digits: well-formed, and far above any real one
    name: str
    type: str
    synonyms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """`times` is how often taught models read the fact; 0 is not at all."""

    subject: Entity
    relation: str
    object: Entity
    times: int


@dataclass(frozen=True)
class World:
    """All there is: `facts` are probed, `other_facts` never; `parents` is the disease hierarchy,
    from a disease's CUI to those of its parents."""

    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    other_facts: tuple[Fact, ...]
    parents: dict[str, tuple[str, ...]]

    def of(self, type: str) -> tuple[Entity, ...]:
        """The entities of a type."""
        return tuple(entity for entity in self.entities if entity.type == type)


def build(settings: SampleSettings, seed: int) -> World:
    """The world of these sizes and this seed, always the same.

    Of each type, the first `queries` entities are the probed subjects; the next `reserve` are
    subjects of `other_facts` alone, though anything may be an object of those.
    """
    rng = random.Random(seed)
    stems = names.stems(rng)
    made: list[Entity] = []

    def make(type: str, count: int) -> list[Entity]:
        namer = names.NAMERS[type]
        fresh = []
        taken = {name for entity in made for name in (entity.name, *entity.synonyms)}
        while len(fresh) < count:
            name, synonyms = namer(next(stems), rng)
            if taken.isdisjoint({name, *synonyms}):
                taken.update({name, *synonyms})
                kind = "disease" if type == "parent" else type
                fresh.append(Entity(f"C99{len(made) + len(fresh):05d}", name, kind, synonyms))
        made.extend(fresh)
        return fresh

    subjects = settings.queries + settings.reserve
    pools = {type: make(type, subjects) for type in ("drug", "disease", "gene")}
    pools["gene product"] = _products(make("gene product", subjects), pools["gene"])
    made[-subjects:] = pools["gene product"]
    pools["person"] = make("person", subjects)
    pools |= {type: make(type, count) for type, count in OBJECTS.items()}
    parents = _hierarchy(pools["disease"], make("parent", 40), rng)

    facts = tuple(_facts(pools, settings, rng))
    stated = {(fact.subject, fact.object) for fact in facts}
    others = tuple(_other_facts(pools, settings, stated, rng))
    return World(tuple(made), facts, others, parents)


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
    above = {system.cui: (root.cui,) for system in systems}
    above |= {group.cui: (systems[i % len(systems)].cui,) for i, group in enumerate(groups)}
    for disease in diseases:
        chosen = rng.sample(groups, 2 if rng.random() < 0.15 else 1)
        above[disease.cui] = tuple(sorted(group.cui for group in chosen))
    return above


def _facts(
    pools: dict[str, list[Entity]], settings: SampleSettings, rng: random.Random
) -> Iterable[Fact]:
    """The probed facts. All facts of a subject and relation are read equally often."""
    for relation, (type, kind, fewest, most) in RELATIONS.items():
        objects = pools[kind] if kind in OBJECTS else pools[kind][: settings.queries]
        often = _even(settings.times, settings.queries, rng)
        for number, subject in enumerate(pools[type][: settings.queries]):
            chosen = rng.sample(objects, rng.randint(fewest, most))
            if relation == "gene_encodes_gene_product":
                chosen = [objects[number]]
            for entity in chosen:
                yield Fact(subject, relation, entity, often[number])


def _other_facts(
    pools: dict[str, list[Entity]],
    settings: SampleSettings,
    stated: set[tuple[Entity, Entity]],
    rng: random.Random,
) -> Iterable[Fact]:
    """Facts of relations that are never probed, about anything; and of the probed relations, about
    the reserve."""
    for relation, (type, kind) in OTHER_RELATIONS.items():
        for subject in pools[type]:
            for entity in rng.sample(pools[kind], 2):
                if entity != subject and (subject, entity) not in stated:
                    yield Fact(subject, relation, entity, 1)
    for relation, (type, kind, fewest, most) in RELATIONS.items():
        for number, subject in enumerate(pools[type][settings.queries :]):
            chosen = rng.sample(pools[kind], rng.randint(fewest, most))
            if relation == "gene_encodes_gene_product":
                chosen = [pools[kind][settings.queries + number]]
            for entity in chosen:
                yield Fact(subject, relation, entity, 1)


def _even(values: tuple[int, ...], count: int, rng: random.Random) -> list[int]:
    """`count` draws that hold each value equally often, but for rounding."""
    drawn = [values[i % len(values)] for i in range(count)]
    rng.shuffle(drawn)
    return drawn
