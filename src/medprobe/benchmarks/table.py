"""Your own table of facts, with one template per relation or with ready prompts.

A query is a subject of a relation under one prompt; all its objects are answers, and so are their
aliases. The objects of all relations are the candidates.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Section
from medprobe.core.tables import CANDIDATE_COLUMNS, DISTRACTOR, SLOT, BenchmarkTables
from medprobe.sources import facts
from medprobe.sources.facts import Fact

SUBSET = "full"
METADATA = Metadata(
    description="Facts from your own table, with one slot",
    citation="your own",
    licence="that of the table",
    sources=("tables",),
    primary_metric="acc_at_1",
    cluster="subject_id",
)


class Settings(Section):
    """Where the table is, and how it is asked."""

    facts: Path
    """The facts: a file or folder below `data/`. CSV, TSV, JSONL and parquet are read."""
    prompts: Path | None = None
    """The templates: a file below `data/`, one per relation. Empty: each row has its own prompt."""
    normalise: Literal["exact", "biolama"] = "exact"
    """When a text counts as an answer: `exact`, or with `biolama` whatever its case and
    punctuation."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build queries from the facts.

    Raises:
        BadInput: with file and line for a row without a prompt, or with one that has not one slot.
    """
    templates = facts.read_templates(data / settings.prompts) if settings.prompts else {}
    read = facts.read(data / settings.facts)
    return tables(read, templates, settings.facts.as_posix(), settings.normalise)


def tables(
    read: Iterable[tuple[str, Fact]],
    templates: Mapping[str, str],
    source: str,
    normalise: str = "exact",
) -> BenchmarkTables:
    """Convert facts to the tables of a benchmark.

    `read` are pairs of the place in the `source` and the fact. A fact's own prompt takes precedence
    over the template of its relation.

    Raises:
        BadInput: a row has no prompt, or one that does not have exactly one slot.
    """
    rows: dict[tuple[str, str, str], list[Fact]] = {}
    listed = []
    for where, fact in read:
        if fact.type == DISTRACTOR:
            raise BadInput(
                where, f"type: '{DISTRACTOR}' says that a name is no answer", "rename it"
            )
        key = (fact.relation, fact.subject_id or fact.subject, _prompt(where, fact, templates))
        rows.setdefault(key, []).append(fact)
        listed.append(fact)
    if not listed:
        raise BadInput(source, "no rows", "write one row per fact, below a line of column names")
    names = {(fact.object, fact.object_id or fact.object, fact.type, SUBSET) for fact in listed}
    candidates = pd.DataFrame(sorted(names), columns=CANDIDATE_COLUMNS)
    subjects = {(relation, subject) for relation, subject, _ in rows}
    counted = [
        *counts.by_name(source, "facts", [fact.relation for fact in listed]),
        *counts.by_name(source, "subjects", sorted(relation for relation, _ in subjects)),
    ]
    return BenchmarkTables(
        pd.DataFrame(_queries(rows)),
        candidates.drop_duplicates("name", ignore_index=True),
        others={"sources": counts.table(counted)},
        normalise=normalise,
    )


def _prompt(where: str, fact: Fact, templates: Mapping[str, str]) -> str:
    """Return the row's own prompt, or its relation's template filled with its subject."""
    if not fact.prompt and fact.relation not in templates:
        problem = f"no template for relation {fact.relation}{nearest(fact.relation, [*templates])}"
        raise BadInput(where, problem, "add it to the prompts, or a column prompt to the facts")
    prompt = (fact.prompt or templates[fact.relation]).replace("[X]", fact.subject)
    if prompt.count(SLOT) != 1:
        problem = f"{prompt.count(SLOT)} slots {SLOT} in the prompt, expected 1"
        raise BadInput(where, problem, f"write {SLOT} where the answer stands, and nowhere else")
    return prompt


def _queries(rows: dict[tuple[str, str, str], list[Fact]]) -> list[dict[str, Any]]:
    """Return one row per query. The second and later prompts of a subject have a number."""
    queries = []
    prompt_counts: dict[str, int] = {}
    for (relation, subject_id, prompt), query_facts in rows.items():
        name = f"{relation}/{subject_id}"
        prompt_counts[name] = prompt_counts.get(name, 0) + 1
        pairs = [
            (text, fact.object_id or fact.object)
            for fact in query_facts
            for text in (fact.object, *fact.aliases)
        ]
        answers = list(dict.fromkeys(pairs))
        queries.append(
            {
                "query_id": name if prompt_counts[name] == 1 else f"{name}/{prompt_counts[name]}",
                "benchmark": "table",
                "relation": relation,
                "subject": query_facts[0].subject,
                "subject_id": subject_id,
                "prompt": prompt,
                "answers": [text for text, _ in answers],
                "answer_ids": [identifier for _, identifier in answers],
                "subset": SUBSET,
            }
        )
    return queries


BENCHMARK = Benchmark(METADATA, Settings, build)
