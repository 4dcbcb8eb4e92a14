"""Down to the query: what every model answered under every method, on a page for each benchmark.

Names and prompts may be licensed, so there are two pages: one that goes by identifiers, to share,
and one that shows texts, to keep.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    QUERY_COLUMNS,
    metric_of_predictions,
    read_predictions,
    read_table,
)
from medprobe.metrics.results import compared
from medprobe.report.page import environment

FAMILY: Final = "accuracy"  # tables of ranked names; other families have no answers to show
SHOWN: Final = 10  # answers of a query


def answers(folder: Path, tables: Iterable[Path], *, text: bool) -> dict[str, Any] | None:
    """What the page of the benchmark in `folder` holds, from its prediction tables; None where none
    of them ranks names. Of replicates the first is shown, and sweeps are left out.

    `systems` are `[model, method]`; `queries` are `[id, subset, relation, subject, prompt,
    answers]`; `names` are what is answered; `ranked` has for each system a list as long as
    `queries`: the places in `names` of the ten best, and of these the ranks that are right.

    Without `text` subjects, answers and predictions go by identifiers, names without one by their
    number among the candidates, and prompts are empty.
    """
    found = [path for path in sorted(tables) if metric_of_predictions(path) == FAMILY]
    if not found:
        return None
    queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
    candidates = read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS)
    label = _Labels(queries, candidates, text=text)
    place = {query: number for number, query in enumerate(queries["query_id"])}
    names: dict[str, int] = {}
    systems, ranked = [], []
    for path in found:
        for every in read_predictions(path, compared):
            variant = every["variant"].iloc[0]
            method = f"{path.parent.name}:{variant}" if variant else path.parent.name
            rows = every[(every["rank"] <= SHOWN) & every["query_id"].isin(place)]
            if len(rows):
                systems.append([path.parent.parent.name, method])
                ranked.append(_ranked(rows, place, label, names))
    return {
        "systems": systems,
        "queries": [label.query(row, number) for number, row in enumerate(queries.itertuples(), 1)],
        "names": list(names),
        "ranked": ranked,
    }


def _ranked(
    rows: pd.DataFrame, place: dict[str, int], label: "_Labels", names: dict[str, int]
) -> list[Any]:
    """What one system answered, query by query; new names join `names`."""
    first = rows[rows["replicate"] == rows["replicate"].min()].sort_values("rank")
    called = {
        pair: label.answer(*pair)
        for pair in first.groupby(["prediction", "prediction_id"], sort=False).groups
    }
    answered: list[Any] = [None] * len(place)
    for row in first.itertuples():
        at = place[row.query_id]
        if answered[at] is None:
            answered[at] = [[], []]
        name = called[row.prediction, row.prediction_id]
        answered[at][0].append(names.setdefault(name, len(names)))
        answered[at][1] += [row.rank] * bool(row.hit)
    return answered


def page(benchmark: str, found: dict[str, Any], home: str, *, text: bool) -> str:
    """The page as HTML; `home` is the address of the report."""
    template = environment().get_template("queries.html")
    return template.render(benchmark=benchmark, content=found, home=home, text=text)


class _Labels:
    """What queries and names go by on a page."""

    def __init__(self, queries: pd.DataFrame, candidates: pd.DataFrame, *, text: bool) -> None:
        self.text = text
        every = dict.fromkeys(candidates["name"])
        self.numbers = {name: f"name {number}" for number, name in enumerate(every, 1)}
        answered = queries["answers"].explode().dropna()
        self.texts = {str(name).casefold() for name in [*every, *answered, *queries["subject"]]}

    def answer(self, name: str, identifier: str) -> str:
        """A prediction; what is no candidate has no identifier."""
        if self.text:
            return name
        return self._identifier(identifier) or self.numbers.get(name, "no candidate")

    def query(self, row: Any, number: int) -> list[Any]:
        """A query as the page has it."""
        right = list(dict.fromkeys(map(self.answer, row.answers, row.answer_ids)))
        about = [row.subset, row.relation]
        if self.text:
            return [row.query_id, *about, row.subject, row.prompt, right]
        own = [name for name in (row.subject, *row.answers) if name]
        told = any(name.casefold() in row.query_id.casefold() for name in own)
        query = f"query {number}" if told else row.query_id
        return [query, *about, self._identifier(row.subject_id), "", right]

    def _identifier(self, identifier: str) -> str:
        """Nothing where it is a name: not every source has identifiers of its own."""
        return "" if str(identifier).casefold() in self.texts else str(identifier)
