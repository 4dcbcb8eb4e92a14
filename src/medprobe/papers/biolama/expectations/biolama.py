"""Expectations on BioLAMA's splits, and on the names of its ids."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import cache
from typing import Final

import pandas as pd

from medprobe.core import places
from medprobe.gate.checks import Context, row_check, says
from medprobe.sources.reread import read_records

FILES: Final = "biolama/*/triples_processed/*/*.jsonl"


@row_check
@says("another split has the fact")
def expect_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table.

    A fact is relation, subject and answers, by id; the other table has these columns too.
    """
    return _are_absent(rows, context.tables[other], lambda *ids: {*ids}, str)


@row_check
@says("another split has the fact, by a name or an alias")
def expect_named_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table under another id or in another form of its names.

    A fact is relation, subject, by name and id, and answers, by name; the other table has these
    columns too. The names of a subject are its own and the aliases of its id. Names are compared
    without regard to case, punctuation, a final s and the order of words.
    """
    aliases = _names_by_id(context)[1]
    key = cache(_words)
    return _are_absent(
        rows,
        context.tables[other],
        lambda subject, id_: {key(name) for name in (subject, *aliases.get(id_, ()))},
        key,
    )


@row_check
@says("the files have another name of the id")
def expect_subjects_to_have_one_name(rows: pd.DataFrame, context: Context) -> list[bool]:
    """A subject's name is the only one of its id in all triples, its aliases aside.

    Columns `subject, subject_id`. Where names and ids of a file are shifted, an id has another name
    there than as a subject or an object of other files.
    """
    names, aliases = _names_by_id(context)
    return [
        len({_words(name) for name in {subject, *names[id_]} - aliases[id_]}) < 2
        for subject, id_ in rows.itertuples(index=False, name=None)
    ]


def _are_absent(
    rows: pd.DataFrame,
    other: pd.DataFrame,
    subjects: Callable[..., set[Hashable]],
    key: Callable[[str], Hashable],
) -> list[bool]:
    """Whether no fact of each row is in the other table, by the keys of subjects and answers.

    The first column is the relation, the last has the answers, and the others are of the subject.
    """
    known: dict[tuple[str, Hashable], set[Hashable]] = defaultdict(set)
    for relation, *subject, answers in other[[*rows.columns]].itertuples(index=False, name=None):
        for name in subjects(*subject):
            known[relation, name].update(map(key, answers))
    return [
        all(known[relation, name].isdisjoint(map(key, answers)) for name in subjects(*subject))
        for relation, *subject, answers in rows.itertuples(index=False, name=None)
    ]


def _names_by_id(context: Context) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The labels and the aliases of each id in the files, read again once in a run."""
    if "names" not in context.computed:
        labels, aliases = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for _, line in read_records(places.DATA, FILES):
            ids = [line["sub_uri"], *line["obj_uris"]]
            others = [line.get("sub_aliases"), *(line.get("obj_aliases") or [])]
            for id_, label in zip(ids, [line["sub_label"], *line["obj_labels"]], strict=True):
                labels[id_] |= {label} - {None}
            for id_, further in zip(ids, others, strict=False):
                aliases[id_] |= {*(further or ())} - {None}
        context.computed["names"] = labels, aliases
    return context.computed["names"]  # type: ignore[no-any-return]


def _words(name: str) -> tuple[str, ...]:
    """The words by which a name is compared."""
    return tuple(sorted(word.rstrip("s") for word in re.findall(r"[^\W_]+", name.lower()))) or (
        name,
    )
