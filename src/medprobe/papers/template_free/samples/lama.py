"""LAMA's files with the facts of the sample world: Google-RE, T-REx, ConceptNet, SQuAD.

Sentences are paraphrases that the taught models read; templates are the wordings by which the facts
are probed in the other benchmarks. Where people died is made up here: no model was taught it.
"""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from medprobe.sample.corpus import WORDINGS, fill
from medprobe.sample.files import write_jsonl, write_lines
from medprobe.sample.world import Entity, Fact, World

MASK = "[MASK]"
TREX = {  # T-REx's relation: the world's
    "P19": "place_of_birth",
    "P780": "disease_may_have_finding",
    "P2175": "may_treat",
}
PARAPHRASE = {"place_of_birth": 2, "disease_may_have_finding": 1, "may_treat": 3}


def write(world: World, data: Path, seed: int) -> None:
    """Write `lama/` below `data`: the released files' names and fields."""
    rng = random.Random(seed)
    folder = data / "lama"
    facts = {
        relation: [fact for fact in world.facts if fact.relation == relation]
        for relation in WORDINGS
    }
    births, places = facts["place_of_birth"], world.list_entities("place")
    deaths = [(fact.subject, rng.choice(places)) for fact in births]
    write_jsonl(folder / "Google_RE" / "place_of_birth_test.jsonl", _births(births, rng))
    write_jsonl(folder / "Google_RE" / "place_of_death_test.jsonl", _deaths(deaths))
    for code, relation in TREX.items():
        rows = (_trex(code, fact, rng) for fact in _one_each(facts[relation]))
        write_jsonl(folder / "TREx" / f"{code}.jsonl", rows)
    write_jsonl(folder / "relations.jsonl", _relations())
    effects = _one_each(facts["has_physiologic_effect"])
    write_jsonl(folder / "ConceptNet" / "test.jsonl", map(_conceptnet, effects))
    tests = _one_each(facts["disease_diagnosed_by"])
    write_jsonl(folder / "Squad" / "test.jsonl", map(_squad, tests))
    others = (entity.name for entity in world.list_entities("procedure"))
    write_lines(folder / "Squad" / "other-entities.txt", others)


def _births(facts: list[Fact], rng: random.Random) -> Iterable[dict[str, Any]]:
    """Every twentieth fact is one that a rule drops: the object twice, no mask, denied."""
    for number, fact in enumerate(facts):
        text = _masked(fact, 1)
        flaws = {5: f"{fact.object.name}: {text}", 25: text.replace(MASK, "town")}
        text = flaws.get(number, text)
        votes = ["no", "no", "yes"] if number == 45 else ["yes"] * rng.randint(1, 5)
        yield _google_re("place_of_birth", fact.subject, fact.object, text, votes)


def _deaths(pairs: Iterable[tuple[Entity, Entity]]) -> Iterable[dict[str, Any]]:
    for person, place in pairs:
        text = f"the last years of {person.name} were spent in {MASK} ."
        yield _google_re("place_of_death", person, place, text, ["yes"])


def _google_re(
    relation: str, person: Entity, place: Entity, text: str, votes: list[str]
) -> dict[str, Any]:
    snippet = text.replace(MASK, place.name)
    return {
        "pred": f"/people/person/{relation}",
        "sub": person.cui,
        "obj": place.cui,
        "evidences": [{"url": "", "snippet": snippet, "considered_sentences": [snippet]}],
        "judgments": [
            {"rater": str(number), "judgment": vote} for number, vote in enumerate(votes)
        ],
        "sub_label": person.name,
        "sub_aliases": list(person.synonyms),
        "obj_label": place.name,
        "obj_aliases": list(place.synonyms),
        "uuid": f"{relation}-{person.cui}",
        "masked_sentences": [text],
    }


def _trex(code: str, fact: Fact, rng: random.Random) -> dict[str, Any]:
    """Two evidences; one in ten facts has a first one that is no use, for its object is twice."""
    good = _masked(fact, PARAPHRASE[fact.relation])
    poor = f"{fact.object.name} , that is {MASK} , and {fact.subject.name} ."
    texts = [poor, good] if rng.random() < 0.1 else [good, poor]
    return {
        "uuid": f"{code}-{fact.subject.cui}",
        "obj_uri": fact.object.qid,
        "obj_label": fact.object.name,
        "sub_uri": fact.subject.qid,
        "sub_label": fact.subject.name,
        "predicate_id": code,
        "evidences": [
            {
                "sub_surface": fact.subject.name,
                "obj_surface": fact.object.name,
                "masked_sentence": text,
            }
            for text in texts
        ],
    }


def _relations() -> Iterable[dict[str, Any]]:
    for code, relation in TREX.items():
        yield {
            "relation": code,
            "template": WORDINGS[relation][0],
            "label": relation.replace("_", " "),
            "description": f"the sample world's relation {relation}",
            "type": "N-M",
        }


def _conceptnet(fact: Fact) -> dict[str, Any]:
    return {
        "uuid": f"cn-{fact.subject.cui}",
        "pred": "Causes",
        "sub": fact.subject.name,
        "obj": fact.object.name,
        "obj_label": fact.object.name,
        "masked_sentences": [_masked(fact, 3)],
    }


def _squad(fact: Fact) -> dict[str, Any]:
    return {
        "id": f"sq-{fact.subject.cui}",
        "sub_label": "Squad",
        "obj_label": fact.object.name,
        "masked_sentences": [_masked(fact, 2)],
    }


def _masked(fact: Fact, wording: int) -> str:
    return fill(WORDINGS[fact.relation][wording], fact.subject.name, MASK)


def _one_each(facts: Iterable[Fact]) -> list[Fact]:
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.subject.cui, fact)
    return list(first.values())
