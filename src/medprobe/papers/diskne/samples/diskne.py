"""DisKnE's sources of the sample world: MedNLI and MEDIQA-NLI, cui2vec, and a finished annotation.

A premise states what the taught models read most of: a symptom, a drug, a test or an operation of
a disease; the hypothesis names the disease. Some entailed hypotheses must not become positives: the
patient has not the disease, or a relative has it.
"""

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from medprobe.papers.diskne.annotation import KEEP, SHEET
from medprobe.sample.files import write_csv, write_jsonl
from medprobe.sample.world import Entity, Fact, World

DISEASES: Final = 36  # diseases with positives; those of which most was read, of all kinds
FACTS: Final = 2  # facts of a disease and relation that premises tell of, at most
DIMENSIONS: Final = 500  # of cui2vec
OBSERVATIONS: Final = {  # relation: category, and what premises say of the fact's other end
    "disease_may_have_finding": ("symptoms", ("the patient complains of {} .",)),
    "may_treat": ("treatments", ("the patient recovered under {} .", "{} was given .")),
    "disease_diagnosed_by": ("tests", ("the first test was {} .", "confirmed by {} .")),
    "disease_treated_by": ("procedures", ("{} was performed .", "surgery consisted of {} .")),
}
TERMS: Final = "history of {} ."
STATEMENTS: Final = ("The patient has {}.", "Patient with {}.", "{}", "This patient has a {}.")
DENIALS: Final = ("The patient does not have {}.", "The patient's mother has {}.")


@dataclass(frozen=True)
class Pair:
    """A premise and hypothesis; a `category` where the hypothesis gives the patient a disease."""

    premise: str
    hypothesis: str
    disease: Entity
    label: str = "entailment"
    category: str = ""


def write(world: World, data: Path, seed: int) -> None:
    """Write `mednli/`, `mediqa/`, `cui2vec/` and `diskne/annotation.csv` below `data`."""
    rng = random.Random(seed)
    pairs = list(_pairs(world, rng))
    rng.shuffle(pairs)
    ids = [f"{number:08x}-5a3e-11e7-0000-000000000000" for number in range(len(pairs))]
    fields = ("pairID", "gold_label", "sentence1", "sentence2")
    rows = [
        dict(zip(fields, (name, pair.label, pair.premise, pair.hypothesis), strict=True))
        for name, pair in zip(ids, pairs, strict=True)
    ]
    cuts = [len(rows) * share // 20 for share in (14, 16, 18)]
    parts = (rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] : cuts[2]], rows[cuts[2] :])
    for name, part in zip(("train", "dev", "test"), parts, strict=False):
        write_jsonl(data / "mednli" / f"mli_{name}_v1.jsonl", part)
    _mediqa(data / "mediqa", parts[3])
    _annotation(data / "diskne" / "annotation.csv", ids, pairs)
    _cui2vec(data / "cui2vec" / "cui2vec_pretrained.csv", world, rng)


def _pairs(world: World, rng: random.Random) -> Iterator[Pair]:
    facts_of: dict[Entity, list[Fact]] = {}
    for fact in world.facts:
        if fact.relation in OBSERVATIONS and fact.times:
            disease = fact.subject if fact.subject.type == "disease" else fact.object
            facts_of.setdefault(disease, []).append(fact)

    def rank(disease: Entity) -> tuple[int, int, str]:
        facts = facts_of[disease]
        return -len({fact.relation for fact in facts}), -sum(f.times for f in facts), disease.cui

    by_cui = {entity.cui: entity for entity in world.entities}
    diseases = sorted(facts_of, key=rank)[:DISEASES]
    for place, disease in enumerate(diseases):
        others = rng.sample(diseases, 4)
        for category, premise in _premises(disease, facts_of[disease]):
            yield _positive(premise, disease, category, rng)
            yield _other(premise, rng.choice(others), rng)
        for synonym in disease.synonyms:
            yield _positive(TERMS.format(synonym), disease, "terminological", rng)
        if place % 4 == 0:
            above = by_cui[world.parents[disease.cui][0]]
            yield _positive(TERMS.format(disease.name), above, "terminological", rng)
        denial = rng.choice(DENIALS).format(disease.name)
        yield Pair("family history was taken .", denial, disease)
        yield Pair(TERMS.format(disease.name), "The patient is ill.", disease)


def _premises(disease: Entity, facts: list[Fact]) -> Iterator[tuple[str, str]]:
    """Yield `(category, premise)` from a disease's facts, every wording of each."""
    for relation, (category, wordings) in OBSERVATIONS.items():
        facts_of_relation = [fact for fact in facts if fact.relation == relation]
        for fact in facts_of_relation[: FACTS * 2 // len(wordings)]:
            thing = fact.object if fact.subject == disease else fact.subject
            for wording in wordings:
                yield category, wording.format(thing.name)


def _positive(premise: str, disease: Entity, category: str, rng: random.Random) -> Pair:
    hypothesis = rng.choice(STATEMENTS).format(disease.name)
    return Pair(premise, hypothesis, disease, category=category)


def _other(premise: str, disease: Entity, rng: random.Random) -> Pair:
    """A pair that is not entailed, as far as MedNLI's annotators would know."""
    label = rng.choice(("neutral", "contradiction"))
    return Pair(premise, f"The patient has {disease.name}.", disease, label)


def _mediqa(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write the shared task's form: labels apart from the pairs."""
    unlabelled = [{k: row[k] for k in ("pairID", "sentence1", "sentence2")} for row in rows]
    write_jsonl(folder / "mednli_bionlp19_shared_task.jsonl", unlabelled)
    labels = [[row["pairID"], row["gold_label"]] for row in rows]
    path = folder / "mednli_bionlp19_shared_task_ground_truth.csv"
    write_csv(path, [["pair_id", "label"], *labels])


def _annotation(path: Path, ids: list[str], pairs: list[Pair]) -> None:
    """Write the sheet as a person would have filled it in."""
    rows: list[list[str]] = []
    for name, pair in zip(ids, pairs, strict=True):
        start = pair.hypothesis.find(pair.disease.name)
        if pair.label == "entailment" and start >= 0:
            span = [str(start), str(start + len(pair.disease.name))]
            annotation = [pair.disease.name, pair.disease.cui, *span, pair.category or "symptoms"]
            keep = "yes" if pair.category else "no"
            rows.append([name, pair.premise, pair.hypothesis, *annotation, keep])
    write_csv(path, [[*SHEET, KEEP], *rows])


def _cui2vec(path: Path, world: World, rng: random.Random) -> None:
    """A disease's vector is its groups' and something of its own; one disease in forty has none."""
    own_parts: dict[str, list[float]] = {}

    def vector(cui: str) -> list[float]:
        if cui not in own_parts:
            own_parts[cui] = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
        above = [vector(parent) for parent in world.parents.get(cui, ())]
        return [sum(values) for values in zip(own_parts[cui], *above, strict=True)]

    rows = [
        [entity.cui, *(round(value, 6) for value in vector(entity.cui))]
        for place, entity in enumerate(world.list_entities("disease"))
        if place % 40 != 39
    ]
    header = ["", *(f"V{number}" for number in range(1, DIMENSIONS + 1))]
    write_csv(path, [header, *rows], quoting=csv.QUOTE_NONNUMERIC)
