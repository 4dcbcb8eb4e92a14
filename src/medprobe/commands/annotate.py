"""`medprobe annotate`: draw what experts are to rate, and write a sheet for each of them.

Sources: Meng et al., ACL 2022, section 5.3 (15 queries, their ten best predictions, rated from 1 to
5); Shaier et al., section 3.2.3 (200 prompts, two annotators: fact or not).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.tables import QUERY_COLUMNS, SLOT, read_table
from medprobe.sources.sheets import FOLDER, write_folder
from medprobe.sources.sheets import with_blank as as_text

SIZE: Final = {"predictions": 15, "prompts": 200}  # queries; the papers'
DEPTH: Final = 10  # predictions of a query


def draw(
    asked: str, benchmark: Path, tables: Sequence[Path], size: int | None, seed: int
) -> pd.DataFrame:
    """The items to rate, in the order in which raters see them: of `predictions` or `prompts` of
    the benchmark in this folder.

    Predictions are the first ten of each table's main variant and first replicate, of `size`
    queries of the first subset; the same name of several tables is one item. Queries are in a drawn
    order, a query's items too: sheets that are filled to the middle hold whole queries. Prompts are
    as many of each subset.
    """
    queries = read_table(benchmark / "queries.parquet", QUERY_COLUMNS)
    of = _prompts if asked == "prompts" else _predictions
    items = of(queries, tables, size or SIZE[asked], seed)
    return items.assign(asked=asked, benchmark=benchmark.name)


def write(items: pd.DataFrame, name: str, raters: Sequence[str], form: str, data: Path) -> Path:
    """Write `data/annotations/<name>/`: the items, and an empty sheet a rater, which says nothing
    of models, ranks and hits; returns the folder."""
    for rater in raters:
        if not rater.replace("-", "").isalnum() or raters.count(rater) > 1:
            problem = f"a sheet for '{rater}'" + (" twice" if raters.count(rater) > 1 else "")
            raise BadInput("annotate", problem, "name each rater once, in letters and digits")
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
            "annotate", "no --system", "name a model and a method: --system MODEL METHOD"
        )
    main = queries[queries["subset"] == queries["subset"].iloc[0]]
    drawn = main.sample(min(size, len(main)), random_state=seed)
    pool = pd.concat([_best(path) for path in tables])
    pool = pool[["query_id", "prediction"]].drop_duplicates()
    pool = pool.sort_values(["query_id", "prediction"]).sample(frac=1, random_state=seed)
    items = drawn.merge(pool, on="query_id", how="left")
    for query in items.loc[items["prediction"].isna(), "query_id"].head(1):
        raise BadInput(f"query {query}", "no prediction in any table", "run `dvc repro` first")
    return items.assign(text=items["prompt"].map(as_text), answer=items.pop("prediction"))


def _best(path: Path) -> pd.DataFrame:
    """The first predictions of a table's main variant, of its first replicate."""
    table = read_table(path, ["variant", "replicate", "query_id", "rank", "prediction"])
    table = table[table["variant"] == table["variant"].min()]
    table = table[table["replicate"] == table["replicate"].min()]
    return table[table["rank"] <= DEPTH]


def _prompts(queries: pd.DataFrame, tables: Sequence[Path], size: int, seed: int) -> pd.DataFrame:
    if tables:
        raise BadInput("annotate prompts", "--system is for predictions", "leave it out")
    share = max(1, size // queries["subset"].nunique())
    parts = [
        part.sample(min(share, len(part)), random_state=seed)
        for _, part in queries.groupby("subset", sort=True)
    ]
    drawn = pd.concat(parts).sample(frac=1, random_state=seed)
    first = drawn["answers"].str[0]
    filled = [p.replace(SLOT, a) for p, a in zip(drawn["prompt"], first, strict=True)]
    text = drawn.get("sentence", pd.Series(filled, drawn.index))
    return drawn[QUERY_COLUMNS].assign(text=text, answer=first)


def table_of(system: tuple[str, str], benchmark: str, predictions: Path) -> Path:
    """The prediction table of a model and a method. Raises BadInput where there is none."""
    model, method = system
    path = predictions / model / method / f"{benchmark}.parquet"
    if not path.is_file():
        there = [
            f"{p.parent.parent.name} {p.parent.name}" for p in predictions.glob("*/*/*.parquet")
        ]
        hint = nearest(" ".join(system), sorted(set(there)))
        raise BadInput(path, f"no such predictions{hint}", "run `dvc repro` to make them")
    return path
