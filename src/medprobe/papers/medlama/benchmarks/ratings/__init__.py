"""Ratings: what experts said of a benchmark's predictions or prompts, read from their sheets.

Its queries are those that were drawn, its candidates the names that were rated. Further tables hold
the ratings, by which the predictions of the benchmark that is rated are scored
(`metrics/expert.py`), and how far the raters agree. Sheets are made by `medprobe annotate`.
"""

from pathlib import Path

from pydantic import Field

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.errors import BadInput
from medprobe.core.settings import Section
from medprobe.core.tables import QUERY_COLUMNS, BenchmarkTables
from medprobe.papers.medlama.benchmarks.ratings.agreement import agreement, rated
from medprobe.papers.medlama.sheets import FOLDER, read_items, read_ratings

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

    Raises:
        BadInput: a sheet that is amiss, and where no sheet holds any rating.
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


BENCHMARK = Benchmark(METADATA, Settings, build, tables=("items", "ratings"))
