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
from medprobe.benchmarks.context.facts import SUBJECT, Knowledge, Relation, load
from medprobe.benchmarks.context.steps import Evidence, Limits, steps
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.params import SampledSettings
from medprobe.core.tables import CANDIDATE_COLUMNS, BenchmarkTables
from medprobe.sources.documents import Index, Resource, open_index

UMLS: Final = ("umls/MRCONSO.RRF", "umls/MRREL.RRF", "umls/MRSTY.RRF")
METADATA = Metadata(
    description="how the rank of an object moves as a context grows around it",
    citation="Yao et al., Context Variance Evaluation of Pretrained Language Models for "
    "Prompt-based Biomedical Knowledge Probing, arXiv 2022",
    licence="UMLS Metathesaurus licence; MIMIC-III's data use agreement; the articles' own",
    terms="physionet",
    sources=(*UMLS, "notes", "articles"),
    primary_metric="understand",
    cluster="subject_id",  # its triples share documents
)
SUBSETS: Final = ["alone", "full", "steps"]
INDEXES: Final = places.PARTS / "documents"  # what was found in the resources


class Settings(SampledSettings):
    """Resources and relations, and how much to take of them."""

    resources: dict[str, Resource]
    """The text resources, by a name of your choice: the form of each, and its path."""
    relations: dict[str, Relation]
    """The relations to build, by their UMLS name: the prompt of each, and semantic types."""
    triples: int = Field(500, gt=0)
    """At most this many triples per relation, drawn at random from those that a document mentions.
    """
    documents: int = Field(3, gt=0)
    """At most this many documents per resource and triple, drawn at random."""
    max_segments: int = Field(10, gt=1)
    """At most this many segments per context."""
    window: int = Field(300, gt=0)
    """Longest input, in words and punctuation marks. 300 of them are at most some 512 tokens."""


def build(
    data: Path, settings: Settings, seed: int, executor: Executor = in_this_process
) -> BenchmarkTables:
    """Build the steps of all contexts.

    Raises:
        BadInput: sources that cannot be used, and where no document gives a context.
    """
    dropped: Counter[str] = Counter()
    known = load(data / "umls", settings.relations, dropped)
    indexes = {
        name: open_index(name, resource, data, known.terms, INDEXES, executor=executor)
        for name, resource in settings.resources.items()
    }
    rows: list[dict[str, Any]] = []
    held: dict[tuple[str, str], Evidence] = {}
    limits = Limits(settings.max_segments, settings.window)
    found: dict[str, list[str]] = {"evidence": [], "dropped": []}  # the relation of each
    for evidence in _evidence(known, indexes, settings, seed):
        found["evidence"].append(evidence.relation)
        if made := steps(evidence, limits, seed, dropped):
            rows += made
            held[evidence.resource, evidence.document.id] = evidence
        else:
            found["dropped"].append(evidence.relation)
    if not rows:
        rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(dropped.items()))
        problem = f"no document gives a context: {rules or 'none mentions both ends of a fact'}"
        raise BadInput("params.yaml: benchmarks.context", problem, "widen resources or relations")
    notes = {"dropped": counts.by_rule(dropped), "resources": _resources(indexes)}
    queries = _queries(rows, known, indexes, settings)
    read = [
        *counts.lines(data, *UMLS),
        *counts.by_name("umls/MRREL.RRF", "facts", known.facts["relation"]),
        *_documents(indexes, settings),
        *(row for what, names in found.items() for row in counts.by_name("", what, names)),
        *counts.by_name("", "queries", queries["relation"]),
    ]
    others = {**_evidence_tables(held), "sources": counts.table(read)}
    return BenchmarkTables(queries, _candidates(queries, known), notes, others)


def _evidence(
    known: Knowledge, indexes: dict[str, Index], settings: Settings, seed: int
) -> Iterator[Evidence]:
    """Documents and the drawn facts that they mention, resource by resource."""
    shared = {
        name: found.shared(known.facts, settings.documents, seed) for name, found in indexes.items()
    }
    drawn = _drawn(known.facts, pd.concat(list(shared.values())), settings.triples, seed)
    correct = drawn.merge(known.facts, on=["relation", "subject_id"], suffixes=("", "_other"))
    objects = correct.groupby(["relation", "subject_id"])["fact_id_other"].agg(frozenset).to_dict()
    pools = {relation: frozenset(known.objects[relation]) for relation in settings.relations}
    for name, found in indexes.items():
        wanted = shared[name].merge(drawn, on=["subject_id", "fact_id"])
        facts = {number: part for number, part in wanted.groupby("document")}
        for number, document, mentions in found.read(wanted["document"]):
            spans = list(mentions.itertuples(index=False, name=None))
            for fact in (
                facts[number].sort_values(["relation", "subject_id", "fact_id"]).itertuples()
            ):
                prompt = settings.relations[fact.relation].prompt
                yield Evidence(
                    resource=name,
                    document=document,
                    mentions=spans,
                    relation=fact.relation,
                    subject_id=fact.subject_id,
                    fact_id=fact.fact_id,
                    prompt=prompt.replace(SUBJECT, known.names[fact.subject_id]),
                    correct=objects[fact.relation, fact.subject_id],
                    pool=pools[fact.relation],
                )


def _drawn(facts: pd.DataFrame, shared: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
    """At most `most` facts of each relation, of those that a document mentions.

    The draw of a fact depends on no other.
    """
    found = facts.merge(shared[["subject_id", "fact_id"]].drop_duplicates())
    keys = found.astype(str).agg("|".join, axis=1)
    digests = [hashlib.sha256(f"{seed}|{key}".encode()).hexdigest() for key in keys]
    chosen = found.assign(digest=digests).sort_values("digest").groupby("relation").head(most)
    return chosen.drop(columns="digest").sort_values(["relation", "subject_id", "fact_id"])


def _queries(
    rows: list[dict[str, Any]],
    known: Knowledge,
    indexes: dict[str, Index],
    settings: Settings,
) -> pd.DataFrame:
    """The steps with the names of their entities and what splits them.

    `objects`, how many the subject has, and `frequency`, how many documents of all resources
    mention the fact's object.
    """
    queries = pd.DataFrame(rows).sort_values(["relation", "context_id", "step"], ignore_index=True)
    names = known.names
    answers = known.facts.groupby(["relation", "subject_id"])["fact_id"].agg(list)
    ids = [answers[key] for key in zip(queries["relation"], queries["subject_id"], strict=True)]
    counts = pd.concat([found.frequencies() for found in indexes.values()]).groupby(level=0).sum()
    return queries.assign(
        benchmark="context",
        subject=queries["subject_id"].map(names),
        answers=[[names[cui] for cui in some] for some in ids],
        answer_ids=ids,
        target=queries["target_id"].map(names),
        added=[names.get(cui, "") for cui in queries["added_id"]],
        shown=[[names[cui] for cui in some] for some in queries["shown_ids"]],
        tracked=[[names[cui] for cui in some] for some in queries["tracked_ids"]],
        window=settings.window,
        objects=[len(some) for some in ids],
        frequency=queries["fact_id"].map(counts).astype(int),
    ).drop(columns=["shown_ids", "tracked_ids"])


def _candidates(queries: pd.DataFrame, known: Knowledge) -> pd.DataFrame:
    """The candidates of each relation, with the relation as their type.

    They are its objects and all entities of their types that its contexts mention.
    """
    ids = {name: cui for cui, name in known.names.items()}
    rows = []
    for relation, part in queries.groupby("relation", sort=True):
        objects = known.facts[known.facts["relation"] == relation]["fact_id"]
        held = {name for some in part["tracked"] for name in some}
        for name in sorted(held | {known.names[cui] for cui in objects}):
            rows += [(name, ids[name], relation, subset) for subset in SUBSETS]
    return pd.DataFrame(rows, columns=CANDIDATE_COLUMNS)


def _documents(indexes: dict[str, Index], settings: Settings) -> Iterator[counts.Row]:
    for name, found in indexes.items():
        path = settings.resources[name].path.as_posix()
        for what in ("documents", "mentions"):
            yield path, what, name, found.description[what]


def _evidence_tables(held: dict[tuple[str, str], Evidence]) -> dict[str, pd.DataFrame]:
    """The documents that gave contexts, and their mentions: what the gate checks contexts by."""
    texts = [(*key, some.document.text) for key, some in sorted(held.items())]
    spans = [(*key, *span) for key, some in sorted(held.items()) for span in some.mentions]
    key = ["resource", "document"]
    return {
        "documents": pd.DataFrame(texts, columns=[*key, "text"]),
        "mentions": pd.DataFrame(spans, columns=[*key, "start", "end", "cui"]),
    }


def _resources(indexes: dict[str, Index]) -> pd.DataFrame:
    """How many documents were read and kept, how many mentions these hold, and what was skipped."""
    counts = ["documents", "kept", "mentions"]
    rows = [
        {"resource": name}
        | {count: found.description[count] for count in counts}
        | {"skipped": "; ".join(f"{k}: {v}" for k, v in found.description["skipped"].items())}
        for name, found in indexes.items()
    ]
    return pd.DataFrame(rows)


BENCHMARK = Benchmark(METADATA, Settings, build, many_files=True)
