"""Ratings: what experts said of a benchmark's predictions or prompts, read from their sheets.

Its queries are those that were drawn, its candidates the names that were rated. Further tables hold
the ratings, by which the predictions of the benchmark that is rated are scored
(`metrics/expert.py`), and how far the raters agree. Sheets are made by `medprobe annotate`.

How far raters agree, beyond what chance would give.

Cohen's kappa (1960) of each two raters, plain and with quadratic weights (1968); Krippendorff's
alpha (2011) over all ratings, which may be missing. Values are not a number where all ratings are
one and the same.
"""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final, Literal

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.errors import BadInput
from medprobe.core.settings import Section
from medprobe.core.tables import QUERY_COLUMNS, BenchmarkTables
from medprobe.papers.medlama.annotation import FOLDER, read_items, read_ratings

METADATA = Metadata(
    description="what experts say of a benchmark's predictions or prompts",
    citation="Meng et al., ACL 2022, section 5.3; Shaier et al., section 3.2.3",
    licence="as the benchmark that is rated",
    sources=(FOLDER,),
    primary_metric="expert_acc_at_10",
)


class Settings(Section):
    """Where the sheets are, and from which rating on a prediction is right."""

    sheets: Path
    """Folder of the filled sheets below `data/`, such as `annotations/experts`."""
    right: int = Field(5, ge=1, le=5)
    """A prediction is right from this rating on. The paper: 5, perfectly answers the query."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build the queries that were drawn, and the names that were rated.

    The tables `items` (`item, asked, benchmark, query_id, prediction`, where `benchmark` is the one
    that is rated) and `ratings` (these, and `rater, rating, right`); the notes `agreement` and
    `rated`.

    A sheet that is not finished counts as far as it is.
    """
    folder, source = data / settings.sheets, settings.sheets.as_posix()
    drawn = read_items(folder)
    sheet_ratings = read_ratings(folder, drawn)
    if sheet_ratings.empty:
        raise BadInput(folder, "no rating in any sheet", "build it when a sheet is filled in")
    predictions = bool((drawn["asked"] == "predictions").all())
    items = drawn[["item", "asked", "benchmark", "query_id", "answer"]]
    items = items.rename(columns={"answer": "prediction"})
    right = (
        sheet_ratings["rating"] >= str(settings.right)
        if predictions
        else sheet_ratings["rating"] == "yes"
    )
    ratings = sheet_ratings.assign(right=right).merge(items, on="item")
    names = drawn[["answer", "subset"]].drop_duplicates(ignore_index=True)
    names = names.rename(columns={"answer": "name"}).assign(id=names["answer"], type="")
    read = [
        (source, "items", "", len(drawn)),
        *counts.by_name(source, "ratings", ratings["rater"]),
    ]
    return BenchmarkTables(
        drawn[QUERY_COLUMNS].drop_duplicates("query_id", ignore_index=True),
        names,
        {"agreement": agreement(ratings, ordinal=predictions), "rated": rated(drawn, ratings)},
        {"items": items, "ratings": ratings, "sources": counts.table(read)},
    )


COLUMNS: Final = ["of", "measure", "raters", "items", "value"]
MeasureRow = tuple[str, str, str, int, float]


def agreement(ratings: pd.DataFrame, *, ordinal: bool) -> pd.DataFrame:
    """Measure how far the raters agree, one row per measure.

    `of` what (`rating`, and where the scale is ordinal `right`, the verdict), `measure`, `raters`,
    `items` that it is over, `value`.

    `ratings` has the columns `item, rater, rating, right`, one row per rating. Ratings of an
    ordinal scale are whole numbers as text, such as `4`.
    """
    rows = list(_measures(ratings, "rating", ordinal))
    if ordinal:
        rows += _measures(ratings.assign(right=ratings["right"].astype(str)), "right", False)
    return pd.DataFrame(rows, columns=COLUMNS)


def _measures(ratings: pd.DataFrame, of: str, ordinal: bool) -> Iterator[MeasureRow]:
    labels = sorted(ratings[of].unique())
    code = int if ordinal else labels.index  # a rating's distance counts the levels nobody gave
    codes = ratings.assign(code=ratings[of].map(code))
    table = codes.pivot_table(index="item", columns="rater", values="code", aggfunc="first")
    for a, b in combinations(table.columns, 2):
        both = table[[a, b]].dropna().astype(int)
        pair = f"{a}, {b}"
        agreed = float((both[a] == both[b]).mean()) if len(both) else float("nan")
        yield of, "agreed", pair, len(both), agreed
        yield of, "Cohen's kappa", pair, len(both), _cohen(both[a], both[b], None)
        if ordinal:
            weighted = _cohen(both[a], both[b], "quadratic")
            yield of, "Cohen's kappa, quadratic weights", pair, len(both), weighted
    if table.shape[1] > 1:
        level: Literal["ordinal", "nominal"] = "ordinal" if ordinal else "nominal"
        several = int((table.notna().sum(axis=1) > 1).sum())
        yield of, f"Krippendorff's alpha, {level}", "all", several, _alpha(table, level)


def _cohen(a: pd.Series, b: pd.Series, weights: str | None) -> float:
    from sklearn.metrics import cohen_kappa_score

    codes = {*a, *b}
    if len(codes) < 2:
        return float("nan")
    levels = list(range(min(codes), max(codes) + 1))
    return float(cohen_kappa_score(a, b, labels=levels, weights=weights))


def _alpha(table: pd.DataFrame, level: Literal["ordinal", "nominal"]) -> float:
    import krippendorff

    paired = table[table.notna().sum(axis=1) > 1]
    if len(pd.unique(paired.stack())) < 2:
        return float("nan")
    values = paired.to_numpy(float).T
    return float(krippendorff.alpha(reliability_data=values, level_of_measurement=level))


def rated(items: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Count how far each rater came, one row per rater and subset.

    The columns are `rater, subset, items, rated, right`.
    """
    subsets = items.set_index("item")["subset"]
    parts = ratings.groupby(["rater", ratings["item"].map(subsets).rename("subset")], sort=True)
    table = parts["right"].agg(rated="size", right="sum").reset_index()
    table.insert(2, "items", table["subset"].map(subsets.value_counts()))
    return table


BENCHMARK = Benchmark(METADATA, Settings, build, tables=("items", "ratings"))
