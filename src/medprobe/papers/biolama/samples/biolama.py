"""BioLAMA's files for the sample world: three sources, two or three relations each.

Templates are the wordings by which facts are probed; 40 % of a relation's subjects are for
training, 10 % for choosing, the rest are queries, as in BioLAMA. So many of those whose facts
taught models read never, once, twice and so on.
"""

import random
from pathlib import Path
from typing import Any

from medprobe.sample.corpus import WORDINGS
from medprobe.sample.files import write_jsonl
from medprobe.sample.world import Entity, Fact, World

SOURCES = {
    "ctd": {"CD1": "may_treat", "GD1": "disease_mapped_to_gene"},
    "wikidata": {"P780": "disease_may_have_finding", "P924": "disease_treated_by"},
    "umls": {
        "UR1": "may_prevent",
        "UR2": "has_physiologic_effect",
        "UR3": "gene_encodes_gene_product",
    },
}
SPLITS = (*("train", "test") * 4, "dev", "test")  # of ten subjects read equally often


def write(world: World, data: Path, seed: int) -> None:
    """Write `data/biolama/<source>/{triples_processed,prompts}`, always the same for a seed."""
    for source, relations in SOURCES.items():
        folder = data / "biolama" / source
        templates = ({"relation": c, "template": WORDINGS[r][0]} for c, r in relations.items())
        write_jsonl(folder / "prompts" / "manual.jsonl", templates)
        for code, relation in relations.items():
            for split, part in _split(world, relation, random.Random(f"{seed} {code}")).items():
                rows = [
                    _row(f"{code}_{split}{number}", source, code, facts)
                    for number, facts in enumerate(part)
                ]
                write_jsonl(folder / "triples_processed" / code / f"{split}.jsonl", rows)


def _split(world: World, relation: str, rng: random.Random) -> dict[str, list[list[Fact]]]:
    """Divide the facts of each subject by split."""
    by_subject: dict[str, list[Fact]] = {}
    for fact in world.facts:
        if fact.relation == relation:
            by_subject.setdefault(fact.subject.cui, []).append(fact)
    drawn = rng.sample([*by_subject.values()], len(by_subject))
    drawn.sort(key=lambda facts: facts[0].times)
    parts = {
        split: [facts for place, facts in enumerate(drawn) if SPLITS[place % len(SPLITS)] == split]
        for split in ("train", "dev", "test")
    }
    return {split: rng.sample(part, len(part)) for split, part in parts.items()}


def _row(identifier: str, source: str, code: str, facts: list[Fact]) -> dict[str, Any]:
    """Return the row of a subject, with all its objects."""
    subject, objects = facts[0].subject, [fact.object for fact in facts]
    typed = source != "ctd"
    return {
        "uuid": identifier,
        "predicate_id": code,
        "sub_uri": _uri(source, subject),
        "sub_label": subject.name,
        "sub_type": [subject.type] if typed else "",
        "sub_aliases": list(subject.synonyms),
        "obj_uris": [_uri(source, entity) for entity in objects],
        "obj_labels": [entity.name for entity in objects],
        "obj_types": [entity.type for entity in objects] if typed else [],
        "obj_aliases": [list(entity.synonyms) for entity in objects],
    }


def _uri(source: str, entity: Entity) -> str:
    forms = {"ctd": f"MESH:{entity.cui}", "wikidata": entity.qid, "umls": entity.cui}
    return forms[source]
