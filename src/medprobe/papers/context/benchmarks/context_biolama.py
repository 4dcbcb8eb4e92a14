"""Context variance of BioLAMA's triples: those of CTD, Wikidata and the UMLS in its files.

Source: the paper on context variance, Methods ("certain Knowledge Bases in BioLAMA"). An entity is
looked for by its label and aliases in the files, which give no CUIs of CTD and Wikidata. All splits
count: a triple is no query to train on here. The pool of a relation are its objects, since CTD's
files have no types. The prompts are BioLAMA's manual ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, counts
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.tables import ORIGINAL, BenchmarkTables
from medprobe.papers.context.benchmarks import context
from medprobe.papers.context.benchmarks.context.facts import Knowledge
from medprobe.sources import triples as biolama
from medprobe.sources.triples import SPLITS, Source, Triple

METADATA = replace(
    context.METADATA,
    licence="CTD's and the UMLS's licences; Wikidata: CC0; MIMIC-III's data use agreement; "
    "the articles' own",
    sources=("biolama", "notes", "articles"),
)


class Settings(context.ContextSettings):
    """Which triples of BioLAMA's files are built."""

    sources: tuple[Source, ...] = Field(biolama.SOURCES, min_length=1)
    """Parts of BioLAMA."""
    relations: tuple[str, ...] = ()
    """Relations to build. Empty: all."""


def build(
    data: Path, settings: Settings, seed: int, executor: Executor = in_this_process
) -> BenchmarkTables:
    """Build the steps of all contexts, of BioLAMA's triples."""
    dropped: Counter[str] = Counter()
    folder, chosen = data / "biolama", (settings.sources, settings.relations)
    relations = biolama.read_relations(folder, *chosen, "context_biolama")
    prompts = {
        relation: templates[ORIGINAL]
        for by_relation in relations.values()
        for relation, templates in by_relation.items()
    }
    knowledge = _knowledge([*_triples(folder, relations)], prompts, dropped)
    read = counts.by_name("biolama", "facts", knowledge.facts["relation"])
    return context.tables(data, knowledge, settings, seed, executor, dropped=dropped, read=read)


def _triples(folder: Path, relations: Mapping[Source, Iterable[str]]) -> Iterator[Triple]:
    for source, names in relations.items():
        for relation in names:
            for split in SPLITS:
                for triple in biolama.read(folder / source, relation, split):
                    yield replace(triple, relation=relation)


def _knowledge(triples: list[Triple], prompts: dict[str, str], dropped: Counter[str]) -> Knowledge:
    """The facts of these triples. Entities with the same label are one, the first by its URI."""
    labels: dict[str, str] = {}  # of each URI, the first in the order of the files
    aliases: list[tuple[str, str]] = []
    for triple in triples:
        entities = [(triple.subject_id, triple.subject, triple.subject_aliases)]
        entities += [(entity.id, entity.label, entity.aliases) for entity in triple.answers]
        for uri, label, names in entities:
            labels.setdefault(uri, label)
            aliases += [(name, uri) for name in (label, *names)]
    first: dict[str, str] = {}
    for uri, label in labels.items():
        first[label] = min(uri, first.get(label, uri))
    representatives = {uri: first[label] for uri, label in labels.items()}
    facts: set[tuple[str, str, str]] = set()
    objects: dict[str, set[str]] = {}
    for triple in triples:
        subject = representatives[triple.subject_id]
        for entity in triple.answers:
            fact = representatives[entity.id]
            objects.setdefault(triple.relation, set()).add(fact)
            if fact == subject:
                dropped["fact: subject and object are one"] += 1
            else:
                facts.add((triple.relation, subject, fact))
    return Knowledge(
        pd.DataFrame(sorted(facts), columns=["relation", "subject_id", "fact_id"]),
        {uri: label for label, uri in first.items()},
        sorted({(name, representatives[uri]) for name, uri in aliases}),
        objects,
        prompts,
    )


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    files=partial(biolama.list_files, "biolama"),
    many_files=True,
    tables=context.TABLES,
)
