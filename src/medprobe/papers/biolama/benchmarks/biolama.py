"""BioLAMA (Sung et al., 2021): single-slot queries from CTD, Wikidata and the UMLS.

A subset is a source. Queries are the test triples; `train` and `dev` are further tables of
the same shape, for methods that are trained. Aliases of an answer are answers too.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts, with_distractors
from medprobe.benchmarks.families import (
    AliasFamilies,
    SubjectName,
    Wording,
    further_names,
    further_wordings,
    with_families,
)
from medprobe.core.settings import Section
from medprobe.core.tables import CANDIDATE_COLUMNS, ORIGINAL, BenchmarkTables
from medprobe.sources import triples as biolama
from medprobe.sources.triples import Source, Triple, TripleObject

METADATA = Metadata(
    description="Facts with one slot from CTD, Wikidata and the UMLS; answers have aliases",
    citation="Sung et al., Can Language Models be Biomedical Knowledge Bases?, EMNLP 2021",
    licence="CTD and Wikidata parts as released; the UMLS part needs a licence of the UMLS",
    terms="umls",
    sources=("biolama",),
    primary_metric="acc_at_1",
    cluster="subject_id",
)


class Settings(Section):
    """What to build: the sources that are there, and the names to rank."""

    sources: tuple[Source, ...] = biolama.SOURCES
    """The sources to build: `ctd`, `wikidata`, `umls`. Leave out those whose files you do not have.
    """
    relations: tuple[str, ...] = ()
    """Build only these relations. Empty: all."""
    candidates: Literal["objects", "entities"] = "objects"
    """Which names are ranked: `objects` of the relation's facts, or all `entities`, subjects
    included."""
    distractors: dict[Source, Source] = Field({})
    """For a source, another source whose names are added to its candidates. Its queries are then
    ranked with and without them."""
    families: AliasFamilies | None = None
    """Also ask each test triple under all templates and aliases (`ctd-families` and so on). Empty:
    no families."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build queries from the test triples, and candidates from all objects' labels, by source.

    A triple none of whose objects has a name is left out, and counted.
    """
    rows: dict[str, list[dict[str, Any]]] = {split: [] for split in biolama.SPLITS}
    read: list[counts.CountRow] = []
    candidates: list[pd.DataFrame] = []
    wordings: dict[str, list[Wording]] = {}
    other_names: dict[str, list[SubjectName]] = {}
    chosen = settings.sources, settings.relations
    for source, relations in biolama.read_relations(data / "biolama", *chosen, "biolama").items():
        folder = data / "biolama" / source
        names = []
        for relation, templates in relations.items():
            for split in biolama.SPLITS:
                all_triples = biolama.read(folder, relation, split)
                triples = [triple for triple in all_triples if triple.answers]
                template = templates[ORIGINAL]
                rows[split] += [_query(t, relation, source, template) for t in triples]
                if settings.families and split == "test":
                    for triple, query in zip(triples, rows[split][-len(triples) :], strict=True):
                        wordings[query["query_id"]] = further_wordings(templates)
                        other_names[query["query_id"]] = further_names(
                            triple.subject, triple.subject_aliases, settings.families.names
                        )
                where, name = f"biolama/{source}", f"{relation}/{split}"
                read.append((where, "triples", name, len(all_triples)))
                if nameless := len(all_triples) - len(triples):
                    read.append((where, "dropped", name, nameless))
                names += list(_names(triples, settings.candidates))
        candidates.append(_candidates(names, source))
    train, dev, test = (pd.DataFrame(rows[split]) for split in biolama.SPLITS)
    table = all_candidates = pd.concat(candidates)
    for source, other in settings.distractors.items():
        table = with_distractors(
            table, source, all_candidates.loc[all_candidates["subset"] == other, "name"]
        )
    read += counts.by_name("", "queries", test["subset"])
    if settings.families:
        test, table = with_families(
            test, table, wordings, other_names, settings=settings.families, seed=seed
        )
    others = {"train": train, "dev": dev, "sources": counts.table(read)}
    return BenchmarkTables(test, table, others=others, normalise="biolama")


def _query(triple: Triple, relation: str, source: str, template: str) -> dict[str, Any]:
    names = [(name, a.id) for a in triple.answers for name in (a.label, *a.aliases) if name.strip()]
    pairs = list(dict.fromkeys(names))
    return {
        "query_id": f"{source}:{relation}:{triple.uuid}",
        "benchmark": "biolama",
        "relation": relation,
        "subject": triple.subject,
        "subject_id": triple.subject_id,
        "prompt": template.replace("[X]", triple.subject),
        "answers": [name for name, _ in pairs],
        "answer_ids": [identifier for _, identifier in pairs],
        "subset": source,
        "template": template,
    }


def _names(triples: list[Triple], which: str) -> Iterator[TripleObject]:
    for triple in triples:
        yield from triple.answers
        if which == "entities":
            yield TripleObject(triple.subject, triple.subject_id, triple.subject_type, ())


def _candidates(names: list[TripleObject], source: str) -> pd.DataFrame:
    """Return one row per name. Of several ids of a name, the first in order counts."""
    rows = sorted({(answer.label, answer.id, answer.type, source) for answer in names})
    table = pd.DataFrame(rows, columns=CANDIDATE_COLUMNS)
    return table.drop_duplicates("name", ignore_index=True)


BENCHMARK = Benchmark(
    METADATA,
    Settings,
    build,
    partial(biolama.list_files, "biolama"),
    gate_sources=METADATA.sources,
    tables=("train", "dev"),
)
