"""Parts of a subset that are scored by themselves: by answer length, by how often a fact was read.

A part is named `<subset>/<split>:<part>`, e.g. `full/answer-length:11-20`; a benchmark's own
subsets have no slash.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.tables import read_table

LENGTHS: Final = (0, 10, 20, 30, 40)  # characters; Meng et al. 2022, section 5.1
TIMES: Final = (-1, 0, 1, 2, 4, 8, 16)  # how often the sample world's taught models read a fact


def bins(numbers: Sequence[float], edges: Sequence[int]) -> list[str]:
    """The name of the bin (edge, next edge] that holds each number.

    >>> bins([1, 10, 10.5, 99], [0, 10, 20])
    ['1-10', '1-10', '11-20', 'over-20']
    """
    names = [
        str(high) if high - low == 1 else f"{low + 1}-{high}" for low, high in pairwise(edges)
    ] + [f"over-{edges[-1]}"]
    return [names[place - 1] for place in np.searchsorted(edges, numbers, side="left")]


def parts(queries: pd.DataFrame, facts: Path | None = None) -> pd.DataFrame:
    """`query_id, part` of every query: by the mean length of its answers in characters and, where
    `facts` is a file, by the number of times that a taught model has read its best-read answer."""
    lengths = [float(np.mean([len(name) for name in names])) for names in queries["answers"]]
    by_length = pd.DataFrame(
        {
            "query_id": queries["query_id"],
            "part": [f"answer-length:{name}" for name in bins(lengths, LENGTHS)],
        }
    )
    return pd.concat([by_length, _by_times(queries, facts)], ignore_index=True)


def _by_times(queries: pd.DataFrame, facts: Path | None) -> pd.DataFrame:
    if facts is None or not facts.is_file():
        return pd.DataFrame({"query_id": [], "part": []}, dtype=str)
    truth = pd.read_csv(facts, dtype={"subject_cui": str, "object_cui": str})
    answers = queries[["query_id", "subject_id", "relation", "answer_ids"]].explode("answer_ids")
    read = answers.merge(
        truth[["subject_cui", "relation", "object_cui", "times"]],
        left_on=["subject_id", "relation", "answer_ids"],
        right_on=["subject_cui", "relation", "object_cui"],
    )
    times = read.groupby("query_id", sort=True)["times"].max()
    names = [f"read:{name}" for name in bins(times.tolist(), TIMES)]
    return pd.DataFrame({"query_id": times.index, "part": names})


def with_parts(values: pd.DataFrame, folder: Path, facts: Path | None = None) -> pd.DataFrame:
    """The rows of `values`, and again for each part their query belongs to. Values of what is not
    a query of the benchmark's query table stay as they are."""
    if not (folder / "queries.parquet").is_file() or "query_id" not in values:
        return values
    columns = ["query_id", "subject_id", "relation", "answers", "answer_ids"]
    queries = read_table(folder / "queries.parquet", columns)
    again = values.merge(parts(queries, facts), on="query_id")
    again["subset"] = again["subset"] + "/" + again.pop("part")
    return pd.concat([values, again], ignore_index=True)
