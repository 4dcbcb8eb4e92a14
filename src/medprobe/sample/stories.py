"""The stories of the sample world: what patients with a disease have, and do not have."""

import random
from typing import Final

from medprobe.sample.world import Entity

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
