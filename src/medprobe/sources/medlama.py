"""MedLAMA's released files: `<relation>_<n>.csv`, `<relation>_<n>_hard.csv`.

Columns `head_cui, head_name, rel, tail_cuis_list, tail_names_list, tail_names, tail_cuis,
tail_cuis_len, tail_names_len, avg_match, avg_rouge_l`. The two lists hold every triple of a query;
`tail_names` holds the distinct names in order of appearance, `tail_cuis` the CUI last seen for
each, both joined by ` || `, and both lengths are their number.
"""

import ast
import math
import re
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, quoted

COLUMNS: Final = [
    "head_cui",
    "head_name",
    "rel",
    "tail_cuis_list",
    "tail_names_list",
    "tail_names",
    "tail_cuis",
    "tail_cuis_len",
    "tail_names_len",
    "avg_match",
    "avg_rouge_l",
]
JOIN: Final = " || "
FILE_NAME: Final = re.compile(r"(?P<relation>.+?)_(?P<rows>\d+)(?P<hard>_hard)?\.csv")


def released_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The full and the hard file of each relation, by its name. Raises BadInput for none."""
    if not folder.is_dir():
        raise BadInput(folder, "no such folder", "give the folder of MedLAMA's released files")
    full: dict[str, Path] = {}
    hard: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if found := FILE_NAME.fullmatch(path.name):
            (hard if found["hard"] else full)[found["relation"]] = path
    if not full:
        raise BadInput(folder, "no file <relation>_<number of rows>.csv", "give another folder")
    return full, hard


def read_rows(path: Path) -> pd.DataFrame:
    """A released file's rows, each value as the text that stands there.

    Raises BadInput for a missing column, bad UTF-8, or another number of rows than its name says.
    """
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise BadInput(path, f"not a UTF-8 CSV file: {error}", "fetch the file anew") from None
    missing = [column for column in COLUMNS if column not in rows]
    if missing:
        raise BadInput(path, f"no column {', '.join(missing)}", "fetch the file anew")
    named = FILE_NAME.fullmatch(path.name)
    if named and int(named["rows"]) != len(rows):
        problem = f"{len(rows)} rows, expected {named['rows']} by the file's name"
        raise BadInput(path, problem, "fetch the file anew")
    return rows[COLUMNS]


def read_queries(path: Path, relation: str) -> pd.DataFrame:
    """A released file as queries, its joins and lengths checked.

    Columns: relation, subject_id, subject, answers and answer_ids (lists, aligned), avg_match,
    avg_rouge_l. Raises BadInput for the first row that contradicts itself.
    """
    queries = []
    for number, row in enumerate(read_rows(path).itertuples(index=False), 1):
        where = f"{path}, row {number}"
        ids, names = _literal(where, row, "tail_cuis_list"), _literal(where, row, "tail_names_list")
        if len(ids) != len(names):
            raise BadInput(where, f"{len(ids)} tail_cuis_list but {len(names)} tail_names_list")
        answers = dict(zip(names, ids, strict=True))
        expected = {
            "rel": relation,
            "tail_names": JOIN.join(answers),
            "tail_cuis": JOIN.join(answers.values()),
            "tail_names_len": str(len(answers)),
            "tail_cuis_len": str(len(answers)),
        }
        for column, value in expected.items():
            if getattr(row, column) != value:
                problem = f"{column} is {quoted(getattr(row, column))}, expected {quoted(value)}"
                raise BadInput(where, problem, "fetch the file anew")
        queries.append(
            {
                "relation": relation,
                "subject_id": row.head_cui,
                "subject": row.head_name,
                "answers": list(answers),
                "answer_ids": list(answers.values()),
                "avg_match": _number(where, row, "avg_match"),
                "avg_rouge_l": _number(where, row, "avg_rouge_l"),
            }
        )
    return pd.DataFrame(queries)


def _literal(where: str, row: object, column: str) -> list[str]:
    """A list of texts as Python writes it."""
    text = getattr(row, column)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(where, f"{column} is {quoted(text)}, expected a list of texts")
    return value


def _number(where: str, row: object, column: str) -> float:
    text = getattr(row, column)
    try:
        if math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    raise BadInput(where, f"{column} is {quoted(text)}, expected a number")
