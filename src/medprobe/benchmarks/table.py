"""Your own table of facts, with one template per relation or with ready prompts.

A query is a subject of a relation under one prompt; all its objects are answers, and so are their
aliases. The objects of all relations are the candidates; a relation with an answer space ranks the
names of that space alone.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.benchmarks.families import (
    AliasFamilies,
    Wording,
    further_names,
    with_families,
)
from medprobe.core.errors import BadInput, nearest
from medprobe.core.progress import print_above
from medprobe.core.settings import Section
from medprobe.core.tables import (
    ANSWER_SPACE,
    CANDIDATE_COLUMNS,
    DISTRACTOR,
    FAMILIES,
    ORIGINAL,
    OWN_TABLE,
    PLACES,
    SLOT,
    BenchmarkTables,
)
from medprobe.sources import facts
from medprobe.sources.facts import FactRow

SUBSET = "full"
TRAIN = "train"  # the table of facts that may be told before a prompt, and are never asked
METADATA = Metadata(
    description="Facts from your own table, with one slot",
    citation="your own",
    licence="that of the table",
    sources=("tables",),
    terms="own",
    primary_metric="acc_at_1",
    cluster="subject_id",
)


class Settings(Section):
    """Where the table is, and how it is asked."""

    facts: Path
    """The facts: a file or folder below `data/`. CSV, TSV, JSONL and parquet are read."""
    prompts: Path | None = None
    """The templates: a file below `data/`. A relation's first template is its own, and others are
    further wordings. Empty: each row has its own prompt."""
    families: AliasFamilies | None = None
    """Also ask each fact in all its wordings and under its `subject_aliases`. Empty: no
    families."""
    train: Path | None = None
    """Facts for the `shots` of `answering`: a file or folder below `data/`, like `facts`. Empty:
    none."""
    keep_out: int = Field(0, ge=0)
    """Subjects per relation that are told (`shots`) and not asked."""
    normalise: Literal["exact", "biolama"] = "exact"
    """Compare answers `exact`, or without case and punctuation (`biolama`)."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build queries from the facts."""
    prompts = settings.prompts and data / settings.prompts
    templates = facts.read_templates(prompts) if prompts else {}
    spaces = facts.read_answer_spaces(prompts) if prompts else {}
    asked, told = _keep_out([*facts.read(data / settings.facts)], settings.keep_out, seed)
    if settings.train:
        told += facts.read(data / settings.train)
    source = settings.facts.as_posix()
    built = tables(
        asked,
        templates,
        source,
        settings.normalise,
        spaces=spaces,
        families=settings.families,
        seed=seed,
    )
    if not told:
        return built
    train = tables(told, templates, (settings.train or settings.facts).as_posix(), spaces=spaces)
    pieces = [built.candidates, train.candidates]
    candidates = pd.concat(pieces).drop_duplicates(["name", "subset"], ignore_index=True)
    others = {**built.others, TRAIN: train.queries}
    return replace(built, candidates=candidates, others=others)


def _keep_out(
    read: list[tuple[str, FactRow]], count: int, seed: int
) -> tuple[list[tuple[str, FactRow]], list[tuple[str, FactRow]]]:
    """Return the facts to ask, and those of `count` drawn subjects of each relation."""
    if not count:
        return read, []
    subjects: dict[str, list[str]] = {}
    for _, fact in read:
        names = subjects.setdefault(fact.relation, [])
        if (name := fact.subject_id or fact.subject) not in names:
            names.append(name)
    kept = set()
    for relation, names in subjects.items():
        if len(names) <= count:
            problem = f"relation {relation} has {len(names)} subjects, keep_out: {count}"
            raise BadInput("table", problem, "keep fewer out, or add facts")
        drawn = random.Random(f"{seed} {relation}").sample(sorted(names), count)
        kept |= {(relation, name) for name in drawn}
    asked: list[tuple[str, FactRow]] = []
    told: list[tuple[str, FactRow]] = []
    for where, fact in read:
        is_kept = (fact.relation, fact.subject_id or fact.subject) in kept
        (told if is_kept else asked).append((where, fact))
    return asked, told


def tables(
    read: Iterable[tuple[str, FactRow]],
    templates: Mapping[str, Mapping[str, str]],
    source: str,
    normalise: str = "exact",
    *,
    spaces: Mapping[str, Mapping[str, str]] | None = None,
    families: AliasFamilies | None = None,
    seed: int = 0,
) -> BenchmarkTables:
    """Convert facts to the tables of a benchmark.

    A fact's own prompt takes precedence over the template of its relation.
    """
    spaces = spaces or {}
    rows_by_query = _group_by_query(read, templates, spaces)
    if not rows_by_query:
        remedy = "write one row per fact, below a line of column names"
        raise BadInput(source, "the file of facts has no rows", remedy)
    facts_by_query = {key: [fact for _, fact in rows] for key, rows in rows_by_query.items()}
    all_facts = [fact for query_facts in facts_by_query.values() for fact in query_facts]
    queries = pd.DataFrame(_queries(facts_by_query))
    found = [_joined([where for where, _ in rows]) for rows in rows_by_query.values()]
    notes = {PLACES: queries[["query_id"]].assign(place=found)}
    candidates = _candidates(all_facts, spaces)
    _warn_of_single_names(source, facts_by_query, candidates, spaces)
    subjects = {(relation, subject) for relation, subject, _ in rows_by_query}
    counted = [
        *counts.by_name(source, "facts", [fact.relation for fact in all_facts]),
        *counts.by_name(source, "subjects", sorted(relation for relation, _ in subjects)),
        *counts.by_name(source, "unread column", (name for f in all_facts for name in f.unread)),
    ]
    if families:
        wordings, names = {}, {}
        for query, rows in zip(queries["query_id"], rows_by_query.values(), strict=True):
            where, first_fact = rows[0]
            aliases = [name for _, fact in rows for name in fact.subject_aliases]
            wordings[query] = _wordings(where, first_fact, templates)
            names[query] = further_names(first_fact.subject, aliases, families.names)
        queries, candidates = with_families(
            queries, candidates, wordings, names, settings=families, seed=seed
        )
        of_family = queries.loc[queries["subset"] == FAMILIES].drop_duplicates("family_id")
        counted += counts.by_name("", "families", of_family["relation"])
    others = {"sources": counts.table(counted)}
    if spaces:
        pairs = [(relation, name) for relation, space in spaces.items() for name in space.values()]
        others[ANSWER_SPACE] = pd.DataFrame(pairs, columns=["relation", "name"])
    return BenchmarkTables(queries, candidates, notes, others, normalise, builder=OWN_TABLE)


def _joined(places: list[str]) -> str:
    """File and lines of a query's facts.

    >>> _joined(["facts.csv, line 2", "facts.csv, line 9"])
    'facts.csv, line 2 and line 9'
    """
    first, *others = places
    return " and ".join([first, *(place.rpartition(", ")[2] for place in others)])


def _warn_of_single_names(
    source: str,
    relations: Iterable[tuple[str, str, str]],
    candidates: pd.DataFrame,
    spaces: Mapping[str, Mapping[str, str]],
) -> None:
    """Print a line for each relation that ranks one name only: any model is right there."""
    for relation in sorted({relation for relation, *_ in relations}):
        if len(spaces.get(relation, candidates)) == 1:
            problem = f"relation {relation} ranks one name only, so that every answer is right"
            print_above(f"warning: {source}: {problem}; add facts with other objects")


def _group_by_query(
    read: Iterable[tuple[str, FactRow]],
    templates: Mapping[str, Mapping[str, str]],
    spaces: Mapping[str, Mapping[str, str]],
) -> dict[tuple[str, str, str], list[tuple[str, FactRow]]]:
    """Group checked rows, with their places, by relation, subject and prompt."""
    rows_by_query: dict[tuple[str, str, str], list[tuple[str, FactRow]]] = {}
    for where, fact in read:
        if fact.type == DISTRACTOR:
            raise BadInput(
                where, f"type: '{DISTRACTOR}' says that a name is no answer", "rename it"
            )
        space = spaces.get(fact.relation)
        in_space = _in_space(where, fact, space) if space else fact
        key = (fact.relation, fact.subject_id or fact.subject, _prompt(where, fact, templates))
        rows_by_query.setdefault(key, []).append((where, in_space))
    return rows_by_query


def _in_space(where: str, fact: FactRow, space: Mapping[str, str]) -> FactRow:
    """The fact with its object as the answer space of its relation has it: by identifier, or name.

    The object's own name becomes an alias where it differs.
    """
    by_name = {name: identifier for identifier, name in reversed([*space.items()])}
    object_id = fact.object_id if fact.object_id in space else by_name.get(fact.object)
    if object_id is None:
        problem = f"the object is not in the answer space of relation {fact.relation}"
        raise BadInput(where, problem, "add its name to answer_space_labels")
    name = space[object_id]
    aliases = (fact.object, *fact.aliases) if fact.object != name else fact.aliases
    changes = {"object": name, "object_id": object_id, "aliases": aliases}
    return fact.model_copy(update=changes)


def _candidates(listed: Iterable[FactRow], spaces: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """The objects of all facts and the names of all answer spaces, each once, sorted by name."""
    names = {(fact.object, fact.object_id or fact.object, fact.type, SUBSET) for fact in listed}
    objects = {name for name, *_ in names}
    names |= {
        (name, identifier, "", SUBSET)
        for space in spaces.values()
        for identifier, name in space.items()
        if name not in objects
    }
    table = pd.DataFrame(sorted(names), columns=CANDIDATE_COLUMNS)
    return table.drop_duplicates("name", ignore_index=True)


def _wordings(
    where: str, fact: FactRow, templates: Mapping[str, Mapping[str, str]]
) -> list[Wording]:
    """The wordings of a fact, its own first: its columns of prompts, then its relation's others."""
    by_name = dict(templates.get(fact.relation, {}))
    prompt = fact.prompt or by_name[ORIGINAL]
    by_name = {
        ORIGINAL: prompt,
        **fact.wordings,
        **{k: v for k, v in by_name.items() if k != ORIGINAL},
    }
    for name, template in by_name.items():
        _check_slot(f"{where}, wording {name}", template.replace("[X]", fact.subject))
    return [Wording(name, template) for name, template in by_name.items()]


def _prompt(where: str, fact: FactRow, templates: Mapping[str, Mapping[str, str]]) -> str:
    """Return the row's own prompt, or its relation's template filled with its subject."""
    if not fact.prompt and fact.relation not in templates:
        problem = f"no template for relation {fact.relation}{nearest(fact.relation, [*templates])}"
        remedy = "add it to the prompts (`run`: --prompts FILE), or a column prompt to the facts"
        raise BadInput(where, problem, remedy)
    prompt = (fact.prompt or templates[fact.relation][ORIGINAL]).replace("[X]", fact.subject)
    _check_slot(where, prompt)
    return prompt


def _check_slot(where: str, prompt: str) -> None:
    if prompt.count(SLOT) != 1:
        problem = f"the prompt needs exactly one {SLOT}, and has {prompt.count(SLOT)}"
        raise BadInput(where, problem, f"write {SLOT} where the answer belongs")


def _queries(rows: dict[tuple[str, str, str], list[FactRow]]) -> list[dict[str, Any]]:
    """Return one row per query.

    The second and later prompts of a subject have a number. A slash of a name is written `%2F` in
    ids, so that two ids are never the same.
    """
    queries = []
    prompt_counts: dict[str, int] = {}
    for (relation, subject_id, prompt), query_facts in rows.items():
        name = "/".join(map(_without_slash, (relation, subject_id)))
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


def _without_slash(name: str) -> str:
    """Return a name as a part of an id.

    >>> _without_slash("IL/2"), _without_slash("50%")
    ('IL%2F2', '50%25')
    """
    return name.replace("%", "%25").replace("/", "%2F")


BENCHMARK = Benchmark(METADATA, Settings, build, tables=(ANSWER_SPACE, TRAIN))
