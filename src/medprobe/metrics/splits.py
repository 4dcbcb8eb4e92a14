"""Parts of a subset that are scored by themselves.

By the length of answers, by whether an answer is common in its relation, by whether the prompt
contains its subject, by whether the subject's letters find an answer, by how often a fact was read,
by the wording and kind of name in a family of queries.

A part is named `<subset>/<split>:<part>`, e.g. `full/answer-length:11-20`; a benchmark's own
subsets have no slash.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.benchmark_statistics import has_common_answer
from medprobe.core.errors import BadInput
from medprobe.core.tables import holds_subject

FACT: Final = ["subject_cui", "relation", "object_cui"]
LENGTHS: Final = (0, 10, 20, 30, 40)  # characters; Meng et al. 2022, section 5.1
BLIND: Final = "letters:blind"  # a part
TIMES: Final = (-1, 0, 1, 2, 4, 8, 16)  # how often the sample world's taught models read a fact


def bins(numbers: Sequence[float], edges: Sequence[int]) -> list[str]:
    """The name of the bin (edge, next edge] that holds each number.

    >>> bins([1, 10, 10.5, 99], [0, 10, 20])
    ['1-10', '1-10', '11-20', 'over-20']
    """
    names = [
        str(high) if high - low == 1 else f"{low + 1}-{high}" for low, high in pairwise(edges)
    ] + [f"over-{edges[-1]}"]
    return [names[index - 1] for index in np.searchsorted(edges, numbers, side="left")]


def first_number(name: str) -> float:
    """A number to sort bins by: the first one in a bin, infinity in a name that is no bin's.

    >>> sorted(["over-20", "11-20", "may_treat", "2-10", "1"], key=first_number)
    ['1', '2-10', '11-20', 'over-20', 'may_treat']
    """
    number = re.match(r"(over-)?(\d+)", name)
    return int(number[2]) + 0.5 * bool(number[1]) if number else float("inf")


def parts(
    queries: pd.DataFrame, facts: Path | None = None, near: Collection[str] | None = None
) -> pd.DataFrame:
    """`query_id, part` of every query.

    By the mean length of its answers in characters, by whether one of them is common
    (`has_common_answer`), by whether the prompt contains the subject, by the wording and kind of
    name in a family and, where `facts` are given, by the number of times that a taught model has
    read its best-read answer. `letters:blind` are the queries that are not among those with an
    answer `near` by letters, where these are given (`letters.near_queries`).
    """
    lengths = [float(np.mean([len(name) for name in names])) for names in queries["answers"]]
    by_length = pd.DataFrame(
        {
            "query_id": queries["query_id"],
            "part": [f"answer-length:{name}" for name in bins(lengths, LENGTHS)],
        }
    )
    common = has_common_answer(queries).map({True: "answer:common", False: "answer:uncommon"})
    by_answer = pd.DataFrame({"query_id": queries["query_id"], "part": common})
    tables = [by_length, by_answer, _by_subject(queries)]
    if near is not None:
        blind = queries.loc[~queries["query_id"].isin(near), ["query_id"]]
        tables.append(blind.assign(part=BLIND))
    if facts:
        tables.append(_by_times(queries, facts))
    if "family_id" in queries:
        tables.append(_by_family_member(queries))
    return pd.concat(tables, ignore_index=True)


def _by_subject(queries: pd.DataFrame) -> pd.DataFrame:
    """Whether the prompt contains its subject, in the subsets where some do and some do not."""
    pairs = zip(queries["prompt"], queries["subject"], strict=True)
    named = pd.Series([holds_subject(*pair) for pair in pairs], queries.index, dtype=bool)
    is_split = named.groupby(queries["subset"]).transform("nunique") > 1
    part = named.map({True: "subject:named", False: "subject:absent"})
    table = pd.DataFrame({"query_id": queries["query_id"], "part": part})
    return table[is_split]


def _by_family_member(queries: pd.DataFrame) -> pd.DataFrame:
    members = queries[queries["family_id"] != ""]
    columns = {"wording": "wording:", "name_kind": "name:"}
    return pd.concat(
        pd.DataFrame({"query_id": members["query_id"], "part": prefix + members[column]})
        for column, prefix in columns.items()
        if members[column].nunique() > 1
    )


def _by_times(queries: pd.DataFrame, facts: Path) -> pd.DataFrame:
    answers = queries.explode("answer_ids", ignore_index=True)
    times = times_read(facts, answers[["subject_id", "relation", "answer_ids"]])
    most_times = times.groupby(answers["query_id"]).max().dropna()
    return pd.DataFrame(
        {"query_id": most_times.index, "part": [f"read:{x}" for x in bins(most_times, TIMES)]}
    )


def times_read(facts: Path, triples: pd.DataFrame) -> pd.Series:
    """How often the sample world's models were taught each triple."""
    try:
        truth = pd.read_csv(facts, usecols=[*FACT, "times"], dtype=dict.fromkeys(FACT, str))
        truth = truth.astype({"times": "int64"})
    except (ValueError, UnicodeDecodeError) as error:
        columns = ", ".join([*FACT, "times"])
        problem = f"not the facts that a model has read: {str(error).splitlines()[0]}"
        raise BadInput(facts, problem, f"expected a CSV file of {columns}") from None
    times = truth.set_index(FACT)["times"]
    return pd.Series(times.reindex(pd.MultiIndex.from_frame(triples)).to_numpy(), triples.index)


def with_parts(
    values: pd.DataFrame,
    queries: pd.DataFrame,
    facts: Path | None = None,
    near: Collection[str] | None = None,
) -> pd.DataFrame:
    """The rows of `values`, one a query, and again for each part that their query belongs to."""
    part_rows = values.merge(parts(queries, facts, near), on="query_id")
    part_rows["subset"] = part_rows["subset"] + "/" + part_rows.pop("part")
    return pd.concat([values, part_rows], ignore_index=True)
