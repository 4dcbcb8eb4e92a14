"""Identifiers that a program changed; and BioLAMA's and LAMA's facts and prompts, read again.

This module shares nothing with the readers of the builders, so that a mistake of theirs cannot hide
itself.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.tables import SLOT
from medprobe.gate.checks import row_check, says
from medprobe.sources import reread

CHANGED: Final = re.compile(
    r"nan|NaN|None|null|NULL|N/A|<NA>|#.*[!?]|#N/A|#{2,}|[+-]?\d+(?:\.\d+)?[Ee][+-]?\d+"
)


@row_check
@says("a program changed an id")
def expect_ids_to_be_whole(rows: pd.DataFrame) -> list[bool]:
    """No id is a missing value, an error of a spreadsheet or a number in scientific notation.

    The columns have ids or lists of ids.
    """
    return [
        not any(CHANGED.fullmatch(id_) for ids in row for id_ in _ids(ids))
        for row in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("most names have one id")
def expect_ids_to_tell_apart(rows: pd.DataFrame, at_least: int) -> pd.Series:
    """No id has more than half of all names, if there are at least so many.

    Columns `name, id`. Rows without an id pass.
    """
    name, id_ = rows.columns
    names = rows.groupby(id_)[name].nunique()
    many = rows[name].nunique()
    passes = (names <= many / 2) | (names < at_least) | (names.index == "")
    return rows[id_].map(passes).astype(bool)


@row_check
@says("the source has no such name of the id")
def expect_names_to_be_in_umls(rows: pd.DataFrame) -> list[bool]:
    """Each name is one that MRCONSO.RRF has of its concept, letter by letter.

    The columns are pairs: names, or lists of names, and the ids of their concepts.
    """
    columns = [*rows.columns]
    pairs = [
        {
            pair
            for name, id_ in zip(columns[::2], columns[1::2], strict=True)
            for pair in zip(_ids(row[id_]), _ids(row[name]), strict=False)
        }
        for row in rows.to_dict("records")
    ]
    cuis = {cui for of_row in pairs for cui, _ in of_row}
    read = reread.read_names(reread.MRCONSO, cuis, {}, "the gate reads names again")
    known = {(fields[reread.CUI], fields[reread.STR]) for fields in read}
    return [of_row <= known for of_row in pairs]


def _ids(values: object) -> Iterable[str]:
    return [values] if isinstance(values, str) else values  # type: ignore[return-value]


MASK: Final = "[MASK]"
IDS: Final = ("uuid", "id")  # keys of a record's own id
LABELS: Final = ("obj_label", "obj_labels")
SourceLine = tuple[Path, dict[str, Any]]  # with its file


@row_check
@says("its record in the source differs")
def expect_facts_to_be_in_records(
    rows: pd.DataFrame,
    *,
    files: str,
    query_id: str,
    templates: Mapping[str, str],
    sample: int,
    labels: Sequence[str] = LABELS,
) -> pd.Series:
    """Each fact of a sample of rows is the one of the record that it was made of.

    Columns `query_id, relation, subject, subject_id, prompt, answers, answer_ids`. The record has
    the relation, the subject, every answer and no further object. The prompt is one of its
    sentences, or a template of the relation.
    """
    drawn = rows.sample(min(sample, len(rows)), random_state=0)
    ids = drawn["query_id"].str.extract(f"^{query_id}$", expand=False)
    records: dict[str, list[SourceLine]] = defaultdict(list)
    wordings = defaultdict(set, {relation: {text} for relation, text in templates.items()})
    wanted = set(ids)
    for path, line in reread.read_records(places.DATA, files):
        if "template" in line:
            wordings[line["relation"]].add(line["template"])
        for key in IDS:
            if str(line.get(key)) in wanted:
                records[str(line[key])].append((path, line))
    accepted = pd.Series(True, index=rows.index)
    for name, fact in zip(ids, drawn.itertuples(), strict=True):
        accepted[fact.Index] = any(
            _agrees(record, fact, wordings, labels) for record in records[name]
        )
    return accepted


def _agrees(
    record: SourceLine, fact: Any, wordings: Mapping[str, set[str]], labels: Sequence[str]
) -> bool:
    """Whether a record has the fact of a row of `queries`."""
    path, line = record
    relations = (line.get("predicate_id"), line.get("pred"), path.stem, path.parent.name)
    subjects = {"", *(str(line.get(key)) for key in IDS), *_texts(line, "sub")}
    names = {name for key in labels for name in _flat(line.get(key)) if name.strip()}
    evidences = [evidence.get("masked_sentence") for evidence in line.get("evidences", ())]
    sentences = [*_flat(line.get("masked_sentences")), *_flat(evidences)]
    prompts = {text.replace("[X]", fact.subject) for text in wordings[fact.relation]}
    for text in [*sentences, " ".join(sentences)]:
        prompts.add(" ".join(text.split()).replace(MASK, SLOT))
    return (
        fact.relation.lower() in {str(name).lower().removesuffix("_test") for name in relations}
        and {fact.subject, fact.subject_id} <= subjects
        and {*fact.answers, *fact.answer_ids} <= _texts(line, "obj")
        and names <= {*fact.answers}
        and fact.prompt in prompts
    )


def _texts(line: dict[str, Any], role: str) -> set[str]:
    """All texts of a record's subject (`sub`) or objects (`obj`)."""
    return {text for key, value in line.items() if key.startswith(role) for text in _flat(value)}


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item)
