"""`medprobe annotate`: draw items for experts to rate, and write one sheet per rater.

Sources: Meng et al., ACL 2022, section 5.3 (15 queries, their ten best predictions, rated from 1 to
5); Shaier et al., section 3.2.3 (200 prompts, two annotators: fact or not).

An evaluation is a folder with the drawn items, and one sheet per rater. An item is a prediction to
rate from 1 to 5, or a prompt that states a fact or does not. The items are in `items.parquet`,
which raters do not need; a sheet is a CSV file that shows the question and hides the models.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import pandas as pd
from pydantic import AfterValidator

from medprobe.core.errors import BadInput, nearest, quote
from medprobe.core.files import replacing
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import (
    BLANK,
    QUERY_COLUMNS,
    SLOT,
    lists_outranking,
    read_table,
    write_table,
)
from medprobe.sources.records import Record, read_csv_rows, read_lines, validate

SIZE: Final = {"predictions": 15, "prompts": 200}  # queries; the papers'
DEPTH: Final = 10  # predictions of a query
FOLDER: Final = "annotations"  # in data/, one folder per evaluation
ITEMS: Final = "items.parquet"
SCALES: Final = {  # question: its labels, the last of which means right
    "predictions": ("1", "2", "3", "4", "5"),
    "prompts": ("no", "yes"),
}
ITEM_COLUMNS: Final = ["item", "asked", "text", "answer", *QUERY_COLUMNS]
WORKBOOKS: Final = (".xlsx", ".xls", ".ods", ".numbers")
KEEP: Final = "keep the lines as they were written"


class Rating(Record):
    """A row of a filled-in sheet. A rating is a label of its scale, or empty."""

    item: Annotated[str, AfterValidator(str.strip)]
    rating: Annotated[str, AfterValidator(lambda text: text.strip().lower().removesuffix(".0"))]


def draw(
    kind: str, benchmark: Path, tables: Sequence[Path], size: int | None, seed: int
) -> pd.DataFrame:
    """Draw the items to rate, in the order in which raters see them.

    Predictions are the ten best of each table's main variant and first replicate, for queries of
    the first subset; a name that several tables predict is one item. Queries and their items are in
    random order, and a query's items are next to each other, so that a half-filled sheet has whole
    queries. Prompts are drawn evenly from all subsets.

    `size` is the number of queries or prompts; None takes the papers' (SIZE).
    """
    queries = read_table(benchmark / "queries.parquet", QUERY_COLUMNS)
    draw_kind = _prompts if kind == "prompts" else _predictions
    items = draw_kind(queries, tables, size or SIZE[kind], seed)
    return items.assign(asked=kind, benchmark=benchmark.name)


def write(items: pd.DataFrame, name: str, raters: Sequence[str], data: Path) -> Path:
    """Write the folder `data/annotations/<name>`: the items, and an empty sheet per rater.

    A sheet does not show models, ranks or hits.
    """
    for rater in raters:
        if not rater.replace("-", "").isalnum() or raters.count(rater) > 1:
            problem = "is given twice" if raters.count(rater) > 1 else "is not a valid name"
            remedy = "name each rater once, in letters, digits and -"
            raise BadInput("annotate", f"rater '{rater}' {problem}", remedy)
    if not re.fullmatch(r"[\w-]+", name):
        raise BadInput("NAME", f"'{name}' is not a valid name", "write letters, digits, - and _")
    target = data / FOLDER / name
    if target.exists():
        raise BadInput(target, "already exists", "choose another name")
    width = len(str(len(items)))
    numbers = [f"{name}-{number:0{width}}" for number in range(1, len(items) + 1)]
    items = items.assign(item=numbers)
    sheet = csv_text(items[["item", "text", "answer"]].assign(rating="", comment=""))
    with replacing(target) as folder:
        folder.mkdir()
        write_table(items, folder / ITEMS, ITEM_COLUMNS)
        for rater in raters:
            (folder / f"{rater}.csv").write_text(sheet, encoding="utf-8-sig")
    return target


def _predictions(
    queries: pd.DataFrame, tables: Sequence[Path], size: int, seed: int
) -> pd.DataFrame:
    if not tables:
        raise BadInput(
            "annotate", "no --system", "give a model and a method: --system MODEL METHOD"
        )
    main = queries[queries["subset"] == queries["subset"].iloc[0]]
    sample = main.sample(min(size, len(main)), random_state=seed)
    pool = pd.concat([_best(path) for path in tables])
    pool = pool[["query_id", "prediction"]].drop_duplicates()
    pool = pool.sort_values(["query_id", "prediction"]).sample(frac=1, random_state=seed)
    items = sample.merge(pool, on="query_id", how="left")
    for query in items.loc[items["prediction"].isna(), "query_id"].head(1):
        raise BadInput(f"query {query}", "no prediction in any table", "run `medprobe repro`")
    text = items["prompt"].str.replace(SLOT, BLANK, regex=False)
    return items.assign(text=text, answer=items.pop("prediction"))


def _best(path: Path) -> pd.DataFrame:
    """Read the best predictions of a table's main variant and first replicate."""
    table = read_table(path, ["variant", "replicate", "query_id", "rank", "prediction"])
    if lists_outranking(table):
        problem = "holds the names ahead of each query's answer, not its best names"
        raise BadInput(path, problem, "set lists: true of the method, and run `medprobe repro`")
    table = table[table["variant"] == table["variant"].min()]
    table = table[table["replicate"] == table["replicate"].min()]
    return table[table["rank"] <= DEPTH]


def _prompts(queries: pd.DataFrame, tables: Sequence[Path], size: int, seed: int) -> pd.DataFrame:
    if tables:
        raise BadInput("annotate prompts", "prompts have no --system", "remove the option")
    share = max(1, size // queries["subset"].nunique())
    parts = [
        part.sample(min(share, len(part)), random_state=seed)
        for _, part in queries.groupby("subset", sort=True)
    ]
    sample = pd.concat(parts).sample(frac=1, random_state=seed)
    answers = sample["answers"].str[0]
    pairs = zip(sample["prompt"], answers, strict=True)
    filled = [prompt.replace(SLOT, answer) for prompt, answer in pairs]
    text = sample.get("sentence", pd.Series(filled, sample.index))
    return sample[QUERY_COLUMNS].assign(text=text, answer=answers)


def table_of(system: tuple[str, str], benchmark: str, predictions: Path) -> Path:
    """Find the prediction table of a model and a method."""
    model, method = system
    path = predictions / model / method / f"{benchmark}.parquet"
    if not path.is_file():
        folders = {table.parent for table in predictions.glob("*/*/*.parquet")}
        systems = sorted(f"{folder.parent.name} {folder.name}" for folder in folders)
        hint = nearest(" ".join(system), systems)
        raise BadInput(path, f"no such predictions{hint}", "run `medprobe repro` to compute them")
    return path


def read_items(folder: Path) -> pd.DataFrame:
    """Read the drawn items, columns ITEM_COLUMNS."""
    if not (folder / ITEMS).is_file():
        raise BadInput(folder, f"no {ITEMS}", "make the sheets by `medprobe annotate`")
    return read_table(folder / ITEMS, ITEM_COLUMNS)


def read_ratings(folder: Path, items: pd.DataFrame) -> pd.DataFrame:
    """Read all raters' ratings so far. Rows without a rating are left out.

    Returns:
        One row per rating, columns `rater, item, rating`.
    """
    for path in sorted(folder.glob("[!.~]*")):
        if path.suffix in WORKBOOKS:  # or its ratings would be lost without a word
            raise BadInput(path, "a workbook", "save it as CSV (UTF-8), and take it out")
    paths = sorted(folder.glob("[!.~]*.csv"))  # programs lock `~$anna.csv` and `.~anna.csv`
    if not paths:
        raise BadInput(folder, "no sheet", "put the raters' sheets there, as .csv")
    labels = SCALES[str(items["asked"].iloc[0])]
    parts = [_ratings(path, set(items["item"]), labels) for path in paths]
    return pd.concat(parts, ignore_index=True)


def _ratings(path: Path, items: set[str], labels: Sequence[str]) -> pd.DataFrame:
    """A sheet's ratings. Programs that use a comma in numbers save CSV with semicolons."""
    _, head = next(read_lines(path, KEEP), ("", ""))
    delimiter = max(",;\t", key=head.count)
    columns = Rating.model_fields
    first_places: dict[str, str] = {}
    ratings = []
    for where, fields in read_csv_rows(
        path, KEEP, needed=columns, delimiter=delimiter, remedy=KEEP
    ):
        row = validate(where, fields, Rating, KEEP)
        if not row.item and not row.rating:
            continue
        if row.item not in items:
            problem = f"item {quote(row.item)} is from another sheet"
            raise BadInput(where, problem, f"keep what `medprobe annotate` wrote to {path.parent}")
        if row.item in first_places:
            problem = f"item '{row.item}' is also on {first_places[row.item]}"
            raise BadInput(where, problem, "keep one")
        first_places[row.item] = where.rpartition(", ")[2]
        if row.rating and row.rating not in labels:
            remedy = f"write one of: {', '.join(labels)}"
            raise BadInput(where, f"rating {quote(row.rating)}", remedy)
        if row.rating:
            ratings.append((path.stem, row.item, row.rating))
    return pd.DataFrame(ratings, columns=["rater", "item", "rating"])
