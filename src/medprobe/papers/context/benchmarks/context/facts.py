"""What the knowledge base says: the facts of the relations, and the entities of their types."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import polars as pl

from medprobe.core.errors import BadInput, nearest
from medprobe.core.settings import Section
from medprobe.core.tables import SLOT
from medprobe.sources import rrf

SUBJECT: Final = "[X]"


class Relation(Section):
    """A relation's prompt, and the semantic types of its subjects and objects.

    The prompt has `[X]` for the subject and `[Y]` for the object; types are named as in MRSTY.
    """

    prompt: str
    """The prompt, with `[X]` for the subject and `[Y]` for the object."""
    subjects: list[str]
    """Semantic types of the subjects, as `MRSTY.RRF` names them."""
    objects: list[str]
    """Semantic types of the objects, as `MRSTY.RRF` names them."""


@dataclass(frozen=True)
class Knowledge:
    """Facts and entities. Concepts with the same preferred name are one, the first by CUI.

    `facts` has `relation, subject_id, fact_id`; `names` gives each entity its preferred name;
    `terms` are all names to look for, each with its CUI; `objects` gives each relation the entities
    of its objects' types, `prompts` its prompt.
    """

    facts: pd.DataFrame
    names: dict[str, str]
    terms: list[tuple[str, str]]
    objects: dict[str, set[str]]
    prompts: dict[str, str]


def load(
    folder: Path,
    relations: dict[str, Relation],
    dropped: Counter[str],
    *,
    obsolete: bool = False,
) -> Knowledge:
    """Read MRCONSO, MRREL and MRSTY.

    What the types leave out is counted in `dropped`, by rule, and so are facts that their
    vocabulary has withdrawn, which are read with `obsolete` only.
    """
    for relation, declaration in relations.items():
        if declaration.prompt.count(SUBJECT) != 1 or declaration.prompt.count(SLOT) != 1:
            where = f"params.yaml: benchmarks.context.relations.{relation}"
            raise BadInput(where, f"the prompt needs one {SUBJECT} and one {SLOT}")
    types = _typed(folder, relations)
    concepts = types.select("CUI").unique()
    preferred = rrf.read_preferred_names(folder, concepts)
    representatives = dict(
        preferred.select("CUI", pl.col("CUI").min().over("STR").alias("representative")).iter_rows()
    )
    names = {cui: name for cui, name in preferred.iter_rows() if representatives[cui] == cui}
    rows = rrf.read_english_names(folder, concepts).iter_rows()
    terms = sorted({(name, representatives[cui]) for cui, name in rows if cui in representatives})
    of_type = {
        kind: {representatives[cui] for cui in part["CUI"] if cui in representatives}
        for (kind,), part in types.group_by("STY")
    }

    def of_types(kinds: list[str]) -> set[str]:
        return set().union(*(of_type[kind] for kind in kinds))

    subjects = {name: of_types(relation.subjects) for name, relation in relations.items()}
    objects = {name: of_types(relation.objects) for name, relation in relations.items()}
    read = _rows(folder, list(relations), dropped, obsolete=obsolete)
    facts = _facts(folder, read, representatives, subjects, objects, dropped=dropped)
    prompts = {name: relation.prompt for name, relation in relations.items()}
    return Knowledge(facts, names, terms, objects, prompts)


def _typed(folder: Path, relations: dict[str, Relation]) -> pl.DataFrame:
    """Read the columns `CUI, STY` of all concepts of the types that the relations name."""
    types = rrf.read_mrsty(folder, ["CUI", "STY"])
    names = types["STY"].unique().to_list()
    requested = {
        kind
        for declaration in relations.values()
        for kind in declaration.subjects + declaration.objects
    }
    for kind in sorted(requested - set(names)):
        problem = f"no concept of the semantic type '{kind}'{nearest(kind, names)}"
        raise BadInput(folder / "MRSTY.RRF", problem, "correct benchmarks.context.relations")
    return types.filter(pl.col("STY").is_in(requested)).drop("line")


def _rows(
    folder: Path, relations: list[str], dropped: Counter[str], *, obsolete: bool
) -> pl.DataFrame:
    """Read the distinct rows of MRREL of these relations, columns `RELA, CUI2, CUI1`."""
    columns = ["RELA", "CUI2", "CUI1"]  # from CUI2 to CUI1
    rows = rrf.read_mrrel(folder, [*columns, "SUPPRESS"], relations=relations)
    in_use = rows.filter(pl.col("SUPPRESS") == rrf.IN_USE).select(columns).unique()
    every = rows.select(columns).unique()
    if obsolete:
        return every
    dropped["fact: withdrawn by its vocabulary"] += len(every) - len(in_use)
    return in_use


def _facts(
    folder: Path,
    rows: pl.DataFrame,
    representatives: dict[str, str],
    subjects: dict[str, set[str]],
    objects: dict[str, set[str]],
    *,
    dropped: Counter[str],
) -> pd.DataFrame:
    """Choose the facts of rows of MRREL, as a table `relation, subject_id, fact_id`, sorted."""
    facts = set()
    for relation, head, tail in rows.iter_rows():
        subject, fact = representatives.get(head, ""), representatives.get(tail, "")
        if subject not in subjects[relation]:
            dropped["fact: subject of another type or without a name"] += 1
        elif fact not in objects[relation]:
            dropped["fact: object of another type or without a name"] += 1
        elif subject == fact:
            dropped["fact: subject and object are one"] += 1
        else:
            facts.add((relation, subject, fact))
    for relation in objects:
        if not any(fact[0] == relation for fact in facts):
            problem = f"no fact of relation {relation} in use whose ends have the types asked for"
            remedy = "correct benchmarks.context.relations in params.yaml"
            raise BadInput(folder / "MRREL.RRF", problem, remedy)
    return pd.DataFrame(sorted(facts), columns=["relation", "subject_id", "fact_id"])
