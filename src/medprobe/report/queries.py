"""Down to the query: what every model answered under every method, on a page for each benchmark.

Names and prompts may be licensed, so there are two pages: one that goes by identifiers, to share,
and one that shows texts, to keep.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.tables import CANDIDATE_COLUMNS, read_predictions, read_table
from medprobe.metrics.results import is_compared
from medprobe.report.forms import LABELS, Form, on_page
from medprobe.report.page import environment

PIECE: Final = 100  # queries whose answers stand in one file
MARKS: Final = np.array([*"0123456789a"])  # none right, or the first that is


@dataclass(frozen=True)
class Answers:
    """What every system answered to the queries of a benchmark.

    `content` is what its page always needs: `systems` are `[model, method]`; `queries` are `[id,
    subset, relation, subject, prompt, answers, heads]`, heads where those of its cells are its own;
    `best` has for each system a text with a letter a query: the first rank that is right, `a` for
    10, `0` where none is, `.` where a number says neither, a blank where it was not asked. `piece`
    is how many queries stand in one of `pieces`; the rest is of the `Form`.
    """

    content: dict[str, Any]
    names: list[str]  # all that was answered
    ranked: np.ndarray  # places in `names`, or -1 [systems, queries, cells]
    right: np.ndarray  # bool, of the same shape

    def pieces(self) -> Iterator[dict[str, Any]]:
        """The answers to PIECE queries after another: `names`, and in `ranked` for each query and
        system the places in `names` of its answers, and the ranks of these that are right."""
        for start in range(0, self.ranked.shape[1], PIECE):
            ranked, right = (one[:, start : start + PIECE] for one in (self.ranked, self.right))
            used, places = np.unique(ranked, return_inverse=True)
            places = places.reshape(ranked.shape)
            there = (ranked >= 0).sum(axis=2)
            yield {
                "names": [self.names[at] if at >= 0 else "" for at in used],
                "ranked": [
                    [
                        [
                            places[s, q, : there[s, q]].tolist(),
                            (1 + right[s, q].nonzero()[0]).tolist(),
                        ]
                        for s in range(len(ranked))
                    ]
                    for q in range(ranked.shape[1])
                ],
            }


@dataclass(frozen=True)
class Answered:
    """What every system answered to the queries of a benchmark, whatever a page calls it."""

    form: Form
    systems: list[list[str]]  # [model, method]
    queries: pd.DataFrame  # of the benchmark
    asked: np.ndarray  # bool: which of them any system was; the others are left out below [queries]
    candidates: pd.DataFrame
    best: list[str]  # as `Answers` has it
    predictions: list[tuple[str, str]]  # name and identifier
    ranked: np.ndarray  # places in `predictions`, or -1 [systems, queries, cells]
    right: np.ndarray  # bool, of the same shape

    def shown(self, *, text: bool) -> Answers:
        """With texts, or without: then subjects, answers and predictions go by identifiers, names
        without one by their number among the candidates, and prompts are empty."""
        label = _Labels(self.queries, self.candidates, text=text)
        names: dict[str, int] = {}
        called = [names.setdefault(label.answer(*p), len(names)) for p in self.predictions]
        rows = enumerate(self.queries[self.asked].itertuples(), 1)
        content = {
            "systems": self.systems,
            "queries": [label.query(row, number) for number, row in rows],
            "best": self.best,
            "piece": PIECE,
            "heads": self.form.heads,
            "ranked": self.form.ranked,
            "right": self.form.right,
            "called": self.form.answers,
            "note": self.form.note,
        }
        return Answers(
            content, [*names], np.array([*called, -1], np.int32)[self.ranked], self.right
        )


def answers(folder: Path, tables: Iterable[Path]) -> Answered | None:
    """The answers to the queries of the benchmark in `folder`, from its prediction tables; None
    where a page can show none of them. Of replicates the first is shown, and sweeps are left out.
    """
    if (found := on_page(tables)) is None:
        return None
    form, shown = found
    queries = form.queries(folder)
    candidates = read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS)
    width = len(form.heads) or int(queries["heads"].map(len).max())
    predictions: dict[tuple[str, str], int] = {}
    systems, judged, parts = [], [], []
    for path, family in shown.items():
        cells = {**form.cells, **form.numbers}[family]
        for every in read_predictions(path, is_compared, first=True):
            variant = every["variant"].iloc[0]
            method = f"{path.parent.name}:{variant}" if variant else path.parent.name
            rows = cells(every, queries)
            rows = rows[rows["query_id"].isin(queries["query_id"])]
            if len(rows):
                systems.append([path.parent.parent.name, method])
                judged.append(family in form.cells)
                parts.append(_ranked(rows, queries["query_id"], predictions, width))
    ranked, right = (np.stack(both) for both in zip(*parts, strict=True))
    asked = np.asarray((ranked[:, :, 0] >= 0).any(axis=0))
    ranked, right = ranked[:, asked], right[:, asked]
    first = _first(right) if form.ranked else _last(right, ranked)
    marks = np.where(np.array(judged)[:, None], MARKS[first], ".")
    marks = np.where(ranked[:, :, 0] < 0, " ", marks)
    best = ["".join(of_system) for of_system in marks]
    return Answered(form, systems, queries, asked, candidates, best, [*predictions], ranked, right)


def _first(right: np.ndarray) -> np.ndarray:
    """The first rank that is right, 0 where none is [systems, queries]."""
    return np.where(right.any(axis=2), 1 + right.argmax(axis=2), 0)


def _last(right: np.ndarray, ranked: np.ndarray) -> np.ndarray:
    """1 where the last cell is right, else 0 [systems, queries]."""
    last = np.maximum((ranked >= 0).sum(axis=2, keepdims=True) - 1, 0)
    return np.take_along_axis(right, last, axis=2)[:, :, 0].astype(int)


def _ranked(
    rows: pd.DataFrame,
    queries: pd.Series,
    predictions: dict[tuple[str, str], int],
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """What one system answered, the places in `predictions` and which are right [queries, cells];
    new ones join `predictions`."""
    rows = rows.assign(at=pd.Index(queries).get_indexer(rows["query_id"]))
    rows = rows[rows["at"] >= 0].sort_values(["at", "rank"])
    pairs = rows.groupby(["prediction", "prediction_id"], sort=False)
    called = np.array(
        [predictions.setdefault(pair, len(predictions)) for pair in pairs.groups], np.int32
    )
    cells = rows["at"].to_numpy(), rows["rank"].to_numpy() - 1
    ranked = np.full((len(queries), width), -1, np.int32)
    right = np.zeros((len(queries), width), bool)
    ranked[cells], right[cells] = called[pairs.ngroup()], rows["hit"].astype(bool)
    return ranked, right


def write(benchmark: str, found: Answers, folder: Path, home: str, *, text: bool) -> None:
    """Write `<benchmark>.html`, and beside it `<benchmark>/<n>.js`, the answers piece by piece,
    which the page opens when it needs them; `home` is the address of the report."""
    template = environment().get_template("queries.html")
    page = template.render(benchmark=benchmark, content=found.content, home=home, text=text)
    (folder / f"{benchmark}.html").write_text(page, encoding="utf-8")
    (folder / benchmark).mkdir()
    for number, piece in enumerate(found.pieces()):
        content = json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
        path = folder / benchmark / f"{number}.js"
        path.write_text(f"piece({number},{content});\n", encoding="utf-8")


class _Labels:
    """What queries and names go by on a page."""

    def __init__(self, queries: pd.DataFrame, candidates: pd.DataFrame, *, text: bool) -> None:
        self.text = text
        self.heads = "heads" in queries
        every = dict.fromkeys(candidates["name"])
        self.numbers = {name: f"name {number}" for number, name in enumerate(every, 1)}
        answered = queries["answers"].explode().dropna()
        texts = {str(name).casefold() for name in [*every, *answered, *queries["subject"]]}
        self.texts = texts - {*LABELS}

    def answer(self, name: str, identifier: str) -> str:
        """A prediction; what is no candidate has no identifier."""
        if self.text:
            return name
        return self._identifier(identifier) or self.numbers.get(name, "no candidate")

    def query(self, row: Any, number: int) -> list[Any]:
        """A query as the page has it."""
        right = list(dict.fromkeys(map(self.answer, row.answers, row.answer_ids)))
        about, heads = [row.subset, row.relation], [row.heads] if self.heads else []
        if self.text:
            return [row.query_id, *about, row.subject, row.prompt, right, *heads]
        own = [name for name in (row.subject, *row.answers) if name and name not in LABELS]
        told = any(name.casefold() in row.query_id.casefold() for name in own)
        query = f"query {number}" if told else row.query_id
        return [query, *about, self._identifier(row.subject_id), "", right, *heads]

    def _identifier(self, identifier: str) -> str:
        """Nothing where it is a name: not every source has identifiers of its own."""
        return "" if str(identifier).casefold() in self.texts else str(identifier)
