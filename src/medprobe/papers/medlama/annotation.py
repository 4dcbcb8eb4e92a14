"""`medprobe annotate`: draw items for experts to rate, and write one sheet per rater.

Sources: Meng et al., ACL 2022, section 5.3 (15 queries, their ten best predictions, rated from 1 to
5); Shaier et al., section 3.2.3 (200 prompts, two annotators: fact or not).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.tables import QUERY_COLUMNS, SLOT, are_ahead, read_table
from medprobe.papers.medlama.sheets import FOLDER, write_folder

SIZE: Final = {"predictions": 15, "prompts": 200}  # queries; the papers'
DEPTH: Final = 10  # predictions of a query
BLANK: Final = "___"  # for the slot, in a prompt for people


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


def write(items: pd.DataFrame, name: str, raters: Sequence[str], form: str, data: Path) -> Path:
    """Write the folder `data/annotations/<name>`: the items, and an empty sheet per rater.

    A sheet does not show models, ranks or hits.

    Returns:
        The folder.

    Raises:
        BadInput: for an invalid or repeated name of a rater.
    """
    for rater in raters:
        if not rater.replace("-", "").isalnum() or raters.count(rater) > 1:
            problem = "is given twice" if raters.count(rater) > 1 else "is not a valid name"
            remedy = "name each rater once, in letters, digits and -"
            raise BadInput("annotate", f"rater '{rater}' {problem}", remedy)
    width = len(str(len(items)))
    numbers = [f"{name}-{number:0{width}}" for number in range(1, len(items) + 1)]
    target = data / FOLDER / name
    write_folder(items.assign(item=numbers), raters, form, target)
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
    """Read the best predictions of a table's main variant and first replicate.

    Raises:
        BadInput: The table does not list them.
    """
    table = read_table(path, ["variant", "replicate", "query_id", "rank", "prediction"])
    if are_ahead(table):
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
    """Find the prediction table of a model and a method.

    Raises:
        BadInput: if there is no such table.
    """
    model, method = system
    path = predictions / model / method / f"{benchmark}.parquet"
    if not path.is_file():
        folders = {table.parent for table in predictions.glob("*/*/*.parquet")}
        systems = sorted(f"{folder.parent.name} {folder.name}" for folder in folders)
        hint = nearest(" ".join(system), systems)
        raise BadInput(path, f"no such predictions{hint}", "run `medprobe repro` to compute them")
    return path
