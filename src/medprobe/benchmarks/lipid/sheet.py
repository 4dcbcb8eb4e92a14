"""The annotation sheet: do LIPID's prompts state facts? Two people say yes or no of each.

Source: Shaier et al., section 3.2.3 ("Quality Control"): 200 random prompts, two annotators.
"""

import csv
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.benchmarks.lipid.agreement import agreement
from medprobe.core.errors import BadInput, quoted

ANNOTATORS: Final = ["factual_1", "factual_2"]
COLUMNS: Final = ["query_id", "subset", "sentence", "answer", *ANNOTATORS]
FILL_IN: Final = "fill in the annotation.csv of the built benchmark, and put it there"
ANSWERS: Final = {"yes": True, "no": False}


def draw_sheet(queries: pd.DataFrame, seed: int, size: int = 200) -> pd.DataFrame:
    """`size` random prompts, the same number of each subset, in random order, with two empty
    columns for yes or no."""
    share = size // max(queries["subset"].nunique(), 1)
    parts = [
        part.sample(min(share, len(part)), random_state=seed)
        for _, part in queries.groupby("subset", sort=True)
    ]
    drawn = pd.concat([queries[:0], *parts]).sample(frac=1, random_state=seed)
    sheet = drawn.assign(answer=drawn["answers"].str[0], **dict.fromkeys(ANNOTATORS, ""))
    return sheet[COLUMNS]


def read_sheet(path: Path) -> pd.DataFrame:
    """The agreement on a filled sheet: a row for each subset and one for all.

    Columns: subset, items, yes_first, yes_second, agreed, kappa. Raises BadInput with the line of
    an answer that is neither yes nor no.
    """
    rows = _rows(path)
    table = pd.DataFrame(rows, columns=["subset", *ANNOTATORS])
    parts = [*table.groupby("subset", sort=True), ("all", table)]
    found = [
        {"subset": name, **vars(agreement(*(part[column].tolist() for column in ANNOTATORS)))}
        for name, part in parts
    ]
    return pd.DataFrame(found)


def _rows(path: Path) -> list[tuple[str, bool, bool]]:
    try:
        stream = path.open(encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        raise BadInput(path, "no such file", FILL_IN) from None
    rows = []
    with stream:
        reader = csv.DictReader(stream)
        if missing := [column for column in COLUMNS if column not in (reader.fieldnames or [])]:
            raise BadInput(path, f"no column {missing[0]}", "keep the sheet's columns as they were")
        for row in reader:
            said = [(row[column] or "").strip().lower() for column in ANNOTATORS]
            for column, word in zip(ANNOTATORS, said, strict=True):
                if word not in ANSWERS:
                    where = f"{path}, line {reader.line_num}"
                    raise BadInput(where, f"{column} is {quoted(word)}", "write yes or no")
            rows.append((row["subset"], ANSWERS[said[0]], ANSWERS[said[1]]))
    if not rows:
        raise BadInput(path, "no row in it", FILL_IN)
    return rows
