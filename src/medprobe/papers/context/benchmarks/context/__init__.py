"""Context variance: prompts behind growing pieces of real and synthetic context, step by step.

Source: "Context Variance Evaluation of Pretrained Language Models for Prompt-based Biomedical
Knowledge Probing", Methods. A query is one step of one context; its subset says whether it is the
prompt `alone`, a real context in `full` around the target (both for acc@k), or any other of the
`steps` that rank changes are made of.

Prompts hold text of the resources. They stay in this benchmark's tables, which DVC keeps.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.settings import Section
from medprobe.core.tables import CANDIDATE_COLUMNS, BenchmarkTables
from medprobe.papers.context.benchmarks.context.facts import SUBJECT, Knowledge, Relation, load
from medprobe.papers.context.benchmarks.context.steps import Evidence, Limits, steps
from medprobe.papers.context.documents import EQUAL, Index, Resource, open_index

UMLS: Final = ("umls/MRCONSO.RRF", "umls/MRREL.RRF", "umls/MRSTY.RRF")
TABLES: Final = ("documents", "mentions")  # further ones
WITHOUT_TEXT: Final = ("empty", "file without a document")  # rules of `texts.Reader`
METADATA = Metadata(
    description="how the rank of an object moves as a context grows around it",
    citation="Yao et al., Context Variance Evaluation of Pretrained Language Models for "
    "Prompt-based Biomedical Knowledge Probing, arXiv 2022",
    licence="UMLS Metathesaurus licence; MIMIC-III's data use agreement; the articles' own",
    terms="physionet",
    sources=(*UMLS, "notes", "articles"),
    primary_metric="understand",
    cluster="subject_id",  # its triples share documents
    contrasts=(("target", "negative"),),
)
SUBSETS: Final = ["alone", "full", "steps"]
INDEXES: Final = places.PARTS / "documents"  # what was found in the resources


class ContextSettings(Section):
    """Resources, and how much to take of them and of the facts."""

    resources: dict[str, Resource]
    """The text resources, by a name of your choice."""
    triples: int = Field(500, gt=0)
    """Triples per relation, drawn from those that a document mentions."""
    documents: int = Field(3, gt=0)
    """Documents per resource and triple, drawn."""
    max_segments: int = Field(10, gt=1)
    """Segments per context, at most."""
    random_draws: int = Field(1, gt=0)
    """Knowledge-random contexts per document and triple. Of several the first counts, and each draw
    is a part such as `target/draw:2`: how stable are they?"""
    window: int = Field(300, gt=0)
    """Longest input, in words and punctuation marks. Of one that is longer than its own window a
    model reads the words around the gap."""


class Settings(ContextSettings):
    """The relations too."""

    relations: dict[str, Relation]
    """The relations to build, by their UMLS name."""
    obsolete: bool = False
    """Also take withdrawn facts (SUPPRESS is not `N`)."""


def build(
    data: Path, settings: Settings, seed: int, executor: Executor = in_this_process
) -> BenchmarkTables:
    """Build the steps of all contexts, of facts of the UMLS."""
    dropped: Counter[str] = Counter()
    knowledge = load(data / "umls", settings.relations, dropped, obsolete=settings.obsolete)
    facts = counts.by_name("umls/MRREL.RRF", "facts", knowledge.facts["relation"])
    read = [*counts.lines(data, *UMLS), *facts]
    return tables(data, knowledge, settings, seed, executor, dropped=dropped, read=read)


def tables(
    data: Path,
    knowledge: Knowledge,
    settings: ContextSettings,
    seed: int,
    executor: Executor,
    *,
    dropped: Counter[str],
    read: list[counts.CountRow],
) -> BenchmarkTables:
    """Build the steps of all contexts that resources give for what a knowledge base says."""
    indexes = {
        name: open_index(
            name, resource, data, knowledge.terms, INDEXES, seed=seed, executor=executor
        )
        for name, resource in settings.resources.items()
    }
    rows: list[dict[str, Any]] = []
    used: dict[tuple[str, str], Evidence] = {}
    limits = Limits(settings.max_segments, settings.window)
    relations: dict[str, list[str]] = {"evidence": [], "dropped": []}  # the relation of each
    for evidence in _evidence(knowledge, indexes, settings, seed):
        relations["evidence"].append(evidence.relation)
        if evidence_steps := steps(evidence, limits, seed, dropped, settings.random_draws):
            rows += evidence_steps
            used[evidence.resource, evidence.document.id] = evidence
        else:
            relations["dropped"].append(evidence.relation)
    if not rows:
        rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(dropped.items()))
        problem = f"no document gives a context: {rules or 'none mentions both ends of a fact'}"
        raise BadInput("params.yaml: benchmarks.context", problem, "widen resources or relations")
    notes = {"dropped": counts.by_rule(dropped), "resources": _resources(indexes)}
    queries = _queries(rows, knowledge, indexes, settings)
    read = [
        *read,
        *_documents(indexes, settings),
        *(row for what, names in relations.items() for row in counts.by_name("", what, names)),
        *counts.by_name("", "queries", queries["relation"]),
    ]
    others = {**_evidence_tables(used), "sources": counts.table(read)}
    return BenchmarkTables(queries, _candidates(queries, knowledge), notes, others)


def _evidence(
    knowledge: Knowledge, indexes: dict[str, Index], settings: ContextSettings, seed: int
) -> Iterator[Evidence]:
    """Documents and the drawn facts that they mention, resource by resource."""
    shared = {
        name: index.shared(knowledge.facts, settings.documents, seed)
        for name, index in indexes.items()
    }
    drawn = _drawn(knowledge.facts, pd.concat(list(shared.values())), settings.triples, seed)
    correct = drawn.merge(knowledge.facts, on=["relation", "subject_id"], suffixes=("", "_other"))
    objects = correct.groupby(["relation", "subject_id"])["fact_id_other"].agg(frozenset).to_dict()
    pools = {relation: frozenset(objects) for relation, objects in knowledge.objects.items()}
    for name, index in indexes.items():
        wanted = shared[name].merge(drawn, on=["subject_id", "fact_id"])
        facts = {number: part for number, part in wanted.groupby("document")}
        for number, document, mentions in index.read(wanted["document"]):
            spans = list(mentions.itertuples(index=False, name=None))
            for fact in (
                facts[number].sort_values(["relation", "subject_id", "fact_id"]).itertuples()
            ):
                prompt = knowledge.prompts[fact.relation]
                yield Evidence(
                    resource=name,
                    document=document,
                    mentions=spans,
                    relation=fact.relation,
                    subject_id=fact.subject_id,
                    fact_id=fact.fact_id,
                    prompt=prompt.replace(SUBJECT, knowledge.names[fact.subject_id]),
                    correct=objects[fact.relation, fact.subject_id],
                    pool=pools[fact.relation],
                )


def _drawn(facts: pd.DataFrame, shared: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
    """At most `most` facts of each relation, of those that a document mentions.

    The draw of a fact depends on no other.
    """
    mentioned_facts = facts.merge(shared[["subject_id", "fact_id"]].drop_duplicates())
    keys = mentioned_facts.astype(str).agg("|".join, axis=1)
    digests = [hashlib.sha256(f"{seed}|{key}".encode()).hexdigest() for key in keys]
    chosen = (
        mentioned_facts.assign(digest=digests).sort_values("digest").groupby("relation").head(most)
    )
    return chosen.drop(columns="digest").sort_values(["relation", "subject_id", "fact_id"])


def _queries(
    rows: list[dict[str, Any]],
    knowledge: Knowledge,
    indexes: dict[str, Index],
    settings: ContextSettings,
) -> pd.DataFrame:
    """Return the steps with the names of their entities and what splits them.

    `objects`, how many the subject has, and `frequency`, how many documents of all resources
    mention the fact's object.
    """
    queries = pd.DataFrame(rows).sort_values(["relation", "context_id", "step"], ignore_index=True)
    names = knowledge.names
    answers = knowledge.facts.groupby(["relation", "subject_id"])["fact_id"].agg(list)
    ids = [answers[key] for key in zip(queries["relation"], queries["subject_id"], strict=True)]
    counts = pd.concat([index.frequencies() for index in indexes.values()]).groupby(level=0).sum()
    return queries.assign(
        benchmark="context",
        subject=queries["subject_id"].map(names),
        answers=[[names[cui] for cui in cuis] for cuis in ids],
        answer_ids=ids,
        target=queries["target_id"].map(names),
        added=[names.get(cui, "") for cui in queries["added_id"]],
        shown=[[names[cui] for cui in cuis] for cuis in queries["shown_ids"]],
        tracked=[[names[cui] for cui in cuis] for cuis in queries["tracked_ids"]],
        window=settings.window,
        objects=[len(cuis) for cuis in ids],
        frequency=queries["fact_id"].map(counts).astype(int),
    ).drop(columns=["shown_ids", "tracked_ids"])


def _candidates(queries: pd.DataFrame, knowledge: Knowledge) -> pd.DataFrame:
    """Return the candidates of each relation, with the relation as their type.

    They are its objects and all entities of their types that its contexts mention.
    """
    ids = {name: cui for cui, name in knowledge.names.items()}
    rows = []
    for relation, part in queries.groupby("relation", sort=True):
        objects = knowledge.facts[knowledge.facts["relation"] == relation]["fact_id"]
        mentioned = {name for tracked in part["tracked"] for name in tracked}
        for name in sorted(mentioned | {knowledge.names[cui] for cui in objects}):
            rows += [(name, ids[name], relation, subset) for subset in SUBSETS]
    return pd.DataFrame(rows, columns=CANDIDATE_COLUMNS)


def _documents(indexes: dict[str, Index], settings: ContextSettings) -> Iterator[counts.CountRow]:
    for name, index in indexes.items():
        path = settings.resources[name].path.as_posix()
        for what in ("documents", "mentions"):
            yield path, what, name, index.description[what]
        without = sum(index.description["skipped"].get(rule, 0) for rule in WITHOUT_TEXT)
        odd = {EQUAL: index.description.get(EQUAL, 0), "documents without text": without}
        yield from ((path, what, name, count) for what, count in odd.items() if count)


def _evidence_tables(used: dict[tuple[str, str], Evidence]) -> dict[str, pd.DataFrame]:
    """Return the documents of contexts and their mentions, which the gate checks contexts by."""
    texts = [(*key, evidence.document.text) for key, evidence in sorted(used.items())]
    spans = [(*key, *span) for key, evidence in sorted(used.items()) for span in evidence.mentions]
    key = ["resource", "document"]
    return {
        "documents": pd.DataFrame(texts, columns=[*key, "text"]),
        "mentions": pd.DataFrame(spans, columns=[*key, "start", "end", "cui"]),
    }


def _resources(indexes: dict[str, Index]) -> pd.DataFrame:
    counts = ["documents", "kept", "mentions"]
    rows = [
        {"resource": name}
        | {count: index.description[count] for count in counts}
        | {"skipped": "; ".join(f"{k}: {v}" for k, v in index.description["skipped"].items())}
        for name, index in indexes.items()
    ]
    return pd.DataFrame(rows)


BENCHMARK = Benchmark(
    METADATA, Settings, build, many_files=True, gate_sources=UMLS[1:2], tables=TABLES
)
