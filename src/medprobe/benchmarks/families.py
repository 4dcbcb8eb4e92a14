"""Families of queries: one fact under several wordings and several names of its subject.

Families are a subset of their own, `families`, so that the benchmark's numbers stay those of its
own wording and name. Where a benchmark has several subsets, each has its own: `ctd-families`. The
member with the wording and name `original` is the benchmark's query.
Sources: Elazar et al. 2021 (ParaRel), wordings; Gallifant et al. 2024 (RABBITS), names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd
from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.core.settings import Section
from medprobe.core.tables import DISTRACTOR, FAMILIES, MEMBER, ORIGINAL

ALIAS: Final = "alias"  # the kind of a subject's names that a source lists without their kinds


class NameSettings(Section):
    """Which further names of subjects are asked."""

    at_most: int | None = Field(None, gt=0)
    """Further names of a subject, the first ones. Empty: all of them."""


class FamilySettings(Section):
    """Which families are asked."""

    at_most: int | None = Field(None, gt=0)
    """Families of a relation, drawn whole by chance. Empty: all of them."""


class AliasFamilies(FamilySettings):
    """Which families are asked where the source lists other names of subjects."""

    names: NameSettings = NameSettings()
    """Further names of the subjects."""


class Wording(NamedTuple):
    """A template with `[Y]` for the slot, and `[X]` for the subject's name unless that is fixed."""

    name: str
    template: str


class SubjectName(NamedTuple):
    """A name of a subject, and its kind, such as `brand`."""

    kind: str
    text: str


def with_families(
    queries: pd.DataFrame,
    candidates: pd.DataFrame,
    wordings: Mapping[str, Sequence[Wording]],
    names: Mapping[str, Sequence[SubjectName]],
    *,
    settings: FamilySettings,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add families: every wording of a query with every name of its subject.

    A query with one wording and one name is no family, and stays out.

    Args:
        queries: the benchmark's own, with the columns `core.tables.QUERY_COLUMNS`.
        candidates: of all subsets.
        wordings: of each query that can have a family, by its id; the first is its own, named
            `original`. Families rank the candidates of their query's subset, without distractors.
        names: of each query's subject, by the query's id, without its own name.
        settings: how many families are drawn.
        seed: of the draw.

    Returns:
        The queries and the candidates with those of the families after them. All queries get the
        columns `family_id`, `wording` and `name_kind`, which are empty outside families.
    """
    families = {
        query["query_id"]: _members(
            query, wordings[query["query_id"]], names.get(query["query_id"], ())
        )
        for query in queries[queries["query_id"].isin(wordings)].to_dict("records")
    }
    is_family = queries["query_id"].map(lambda query: len(families.get(query, ())) > 1)
    by_relation = queries[is_family].groupby(["subset", "relation"])
    drawn = [_draw(rows, settings, seed) for _, rows in by_relation]
    if not drawn:
        problem = "no query has a second wording or a second name of its subject"
        raise BadInput("params.yaml: families", problem, "give more templates, or leave it out")
    chosen = pd.concat(drawn).sort_index()["query_id"]
    members = pd.DataFrame([member for query in chosen for member in families[query]])
    subsets = queries.loc[queries["query_id"].isin(wordings), "subset"].unique()
    names_of_families = {
        subset: FAMILIES if len(subsets) == 1 else f"{subset}-{FAMILIES}" for subset in subsets
    }
    ranked = candidates[candidates["subset"].isin(set(members["subset"]))]
    ranked = ranked[ranked["type"] != DISTRACTOR]
    plain = queries.assign(family_id="", wording="", name_kind="")
    members, ranked = (
        table.assign(subset=table["subset"].map(names_of_families)) for table in (members, ranked)
    )
    return (
        pd.concat([plain, members], ignore_index=True),
        pd.concat([candidates, ranked], ignore_index=True),
    )


def further_wordings(templates: Mapping[str, str]) -> list[Wording]:
    """The wordings of a relation from its templates by name, the first of which is its own."""
    first, *others = templates.items()
    return [Wording(ORIGINAL, first[1]), *(Wording(*other) for other in others)]


def further_names(
    subject: str, aliases: Iterable[str], settings: NameSettings
) -> list[SubjectName]:
    """The other names of a subject that its source lists, without its own and without repeats."""
    texts = [text for text in dict.fromkeys(aliases) if text.strip() and text != subject]
    return [SubjectName(ALIAS, text) for text in texts[: settings.at_most]]


def _draw(queries: pd.DataFrame, settings: FamilySettings, seed: int) -> pd.DataFrame:
    if settings.at_most is None or len(queries) <= settings.at_most:
        return queries
    return queries.sample(settings.at_most, random_state=seed)


def _members(
    query: Mapping[str, Any], wordings: Sequence[Wording], names: Sequence[SubjectName]
) -> list[dict[str, Any]]:
    """The queries of a family, that with the own wording and name first."""
    own_name = SubjectName(ORIGINAL, query["subject"])
    members = []
    for wording in wordings:
        kinds: dict[str, int] = {}
        for name in (own_name, *(names if "[X]" in wording.template else ())):
            kinds[name.kind] = kinds.get(name.kind, 0) + 1
            number = f"-{kinds[name.kind]}" if kinds[name.kind] > 1 else ""
            members.append(
                {
                    **query,
                    "query_id": f"{query['query_id']}{MEMBER}{wording.name}#{name.kind}{number}",
                    "subject": name.text,
                    "prompt": wording.template.replace("[X]", name.text),
                    "family_id": query["query_id"],
                    "wording": wording.name,
                    "name_kind": name.kind,
                    **({"template": wording.template} if "template" in query else {}),
                }
            )
    return members
