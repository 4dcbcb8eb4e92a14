"""The query pages: all answers to each query of a benchmark, by model and method.

Names and prompts can be licensed. So a page has identifiers, unless the texts are open to anyone or
`track.text` allows them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.executor import Executor, Job, in_job_order
from medprobe.core.progress import Progress, with_progress
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    MEMBER,
    Metadata,
    lists_outranking,
    metric_of_predictions,
    read_predictions,
    read_table,
    result_names,
)
from medprobe.metrics.results import is_compared
from medprobe.report.page import environment
from medprobe.report.page_data import Overlap
from medprobe.report.sections import RANKED, Layout, find_sections

AHEAD_NOTE: Final = (
    "Of a system marked “names ahead”, the names are its best ones up to the best right answer. "
    "Where ten are ahead of that, none is shown."
)
PIECE: Final = 100  # queries per file of answers
MARKS: Final = np.array([*"0123456789a"])  # the first right rank; 0: none


@dataclass(frozen=True)
class Answers:
    """The answers of all systems to the queries of a benchmark, as a page shows them.

    `content` is the part that the page loads at once. `systems` are `[model, method]`; `ahead` are
    the numbers of those that show names ahead of the answer, not the best names. `queries`
    are `[id, subset, relation, subject, prompt, answers, heads]`, with heads only if they differ
    between queries. `best` has one text per system, with one letter per query: the first rank with
    a right answer (`a` is 10), `0` if there is none, `.` for a number, which is neither right nor
    wrong, a blank without an answer. `piece` is the number of queries in one of `pieces`, `main`
    the numbers of the main results, the best first. The other entries are from the `Layout`.
    """

    content: dict[str, Any]
    names: list[str]  # all distinct answers
    ranked: np.ndarray  # places in `names`, or -1 [systems, queries, cells]
    hits: np.ndarray  # bool, of the same shape

    def pieces(self) -> Iterator[dict[str, Any]]:
        """Split the answers into pieces of PIECE queries.

        A piece has `names`, and `ranked`: for each query and each system the places of its answers
        in `names`, and the ranks of the right ones.
        """
        for start in range(0, self.ranked.shape[1], PIECE):
            ranked = self.ranked[:, start : start + PIECE]
            hits = self.hits[:, start : start + PIECE]
            name_ids, places = np.unique(ranked, return_inverse=True)
            places = places.reshape(ranked.shape)
            sizes = (ranked >= 0).sum(axis=2)
            answers_by_query = []
            for query in range(ranked.shape[1]):
                by_system = []
                for system, size in enumerate(sizes[:, query]):
                    right_ranks = 1 + hits[system, query].nonzero()[0]
                    answer_places = places[system, query, :size]
                    by_system.append([answer_places.tolist(), right_ranks.tolist()])
                answers_by_query.append(by_system)
            names = [self.names[name_id] if name_id >= 0 else "" for name_id in name_ids]
            yield {"names": names, "ranked": answers_by_query}


@dataclass(frozen=True)
class RawAnswers:
    """The answers of all systems to the queries of a benchmark, before names are replaced."""

    layout: Layout
    systems: list[list[str]]  # [model, method]
    ahead: list[int]  # the systems that show names ahead of an answer
    queries: pd.DataFrame  # of the benchmark
    probed: np.ndarray  # bool: queries that any system answered; others have no answers [queries]
    candidates: pd.DataFrame
    best: list[str]  # as in `Answers`
    predictions: list[tuple[str, str]]  # name and identifier
    ranked: np.ndarray  # places in `predictions`, or -1 [systems, probed queries, cells]
    hits: np.ndarray  # bool, of the same shape

    def place(self, system: tuple[str, str]) -> int | None:
        """The number of a model and its method; None if it is not among the systems."""
        return self.systems.index([*system]) if [*system] in self.systems else None

    def label(self, *, text: bool) -> Answers:
        """Prepare the answers for a page."""
        labels = _Labels(self.queries, self.candidates, self.layout.labels, text=text)
        names: dict[str, int] = {}
        places = [names.setdefault(labels.answer(*p), len(names)) for p in self.predictions]
        rows = enumerate(self.queries[self.probed].itertuples(), 1)
        content = {
            "systems": self.systems,
            "ahead": self.ahead,
            "queries": [labels.query(row, number) for number, row in rows],
            "best": self.best,
            "piece": PIECE,
            "main": [],
            "heads": self.layout.heads,
            "ranked": self.layout.ranked,
            "right": self.layout.verdict,
            "called": self.layout.answers,
            "note": " ".join(filter(None, [self.layout.note, AHEAD_NOTE if self.ahead else ""])),
        }
        ranked = np.array([*places, -1], np.int32)[self.ranked]
        return Answers(content, [*names], ranked, self.hits)


def find_layout(tables: Iterable[Path]) -> tuple[Layout, dict[Path, str]] | None:
    """Find the layout of a benchmark's query page."""
    scorers = {path: metric_of_predictions(path) for path in sorted(tables)}
    for layout in _layouts():
        if not layout.cells.keys().isdisjoint(scorers.values()):
            names = {*layout.cells, *layout.numbers}
            return layout, {path: name for path, name in scorers.items() if name in names}
    return None


def _layouts() -> Iterator[Layout]:
    """The layout of rankings, with the cells that sections add to it, and those of sections."""
    sections = find_sections()
    cells = {name: cell for section in sections for name, cell in section.cells.items()}
    yield replace(RANKED, cells=RANKED.cells | cells)
    yield from (section.layout for section in sections if section.layout)


def read_answers(folder: Path, tables: Iterable[Path]) -> RawAnswers | None:
    """Read all answers to the queries of a benchmark."""
    match = find_layout(tables)
    if match is None:
        return None
    layout, scorers = match
    queries = layout.queries(folder)
    candidates = read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS)
    width = len(layout.heads) or int(queries["heads"].map(len).max())
    predictions: dict[tuple[str, str], int] = {}
    systems: list[list[str]] = []
    ahead, has_hits, parts = [], [], []
    for path, scorer in scorers.items():
        model, base, _ = result_names(path)
        cells = {**layout.cells, **layout.numbers}[scorer]
        for table in read_predictions(path, is_compared, first=True):
            variant = table["variant"].iloc[0]
            method = f"{base}:{variant}" if variant else base
            rows = cells(table, queries)
            rows = rows[rows["query_id"].isin(queries["query_id"])]
            if len(rows):
                ahead += [len(systems)] if lists_outranking(table) else []
                systems.append([model, method])
                has_hits.append(scorer in layout.cells)
                parts.append(_rank_system(rows, queries["query_id"], predictions, width))
    ranked, hits = (np.stack(tables) for tables in zip(*parts, strict=True))
    probed = np.asarray((ranked[:, :, 0] >= 0).any(axis=0))
    ranked, hits = ranked[:, probed], hits[:, probed]
    first_hits = np.where(hits.any(axis=2), 1 + hits.argmax(axis=2), 0)
    right_ranks = first_hits if layout.ranked else _last_hits(hits, ranked)
    marks = np.where(np.array(has_hits)[:, None], MARKS[right_ranks], ".")
    marks = np.where(ranked[:, :, 0] < 0, " ", marks)
    best = ["".join(letters) for letters in marks]
    return RawAnswers(
        layout, systems, ahead, queries, probed, candidates, best, [*predictions], ranked, hits
    )


def _last_hits(hits: np.ndarray, ranked: np.ndarray) -> np.ndarray:
    """Whether the last answer of a layout without ranks is right: 1 or 0, [systems, queries].

    Args:
        hits: which answers are right, [systems, queries, cells].
        ranked: the answers, -1 in empty cells, which are the last ones.
    """
    last_cells = np.maximum((ranked >= 0).sum(axis=2, keepdims=True) - 1, 0)
    return np.take_along_axis(hits, last_cells, axis=2)[:, :, 0].astype(int)


def _rank_system(
    rows: pd.DataFrame,
    queries: pd.Series,
    predictions: dict[tuple[str, str], int],
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The answers of one system as places in `predictions`, and which are right [queries, cells].

    New predictions are added to `predictions`.
    """
    rows = rows.assign(place=pd.Index(queries).get_indexer(rows["query_id"]))
    rows = rows.sort_values(["place", "rank"])
    pairs = rows.groupby(["prediction", "prediction_id"], sort=False)
    places = np.array(
        [predictions.setdefault(pair, len(predictions)) for pair in pairs.groups], np.int32
    )
    cells = rows["place"].to_numpy(), rows["rank"].to_numpy() - 1
    ranked = np.full((len(queries), width), -1, np.int32)
    hits = np.zeros((len(queries), width), bool)
    ranked[cells], hits[cells] = places[pairs.ngroup()], rows["hit"].astype(bool)
    return ranked, hits


def write(benchmark: str, answers: Answers, folder: Path, *, text: bool, is_open: bool) -> None:
    """Write `<benchmark>.html`, and `<benchmark>/<n>.js`, the pieces that it loads on demand."""
    template = environment().get_template("queries.html")
    page = template.render(benchmark=benchmark, content=answers.content, text=text, open=is_open)
    (folder / f"{benchmark}.html").write_text(page, encoding="utf-8")
    (folder / benchmark).mkdir()
    for number, piece in enumerate(answers.pieces()):
        content = json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
        path = folder / benchmark / f"{number}.js"
        path.write_text(f"piece({number},{content});\n", encoding="utf-8")


class _Labels:
    """The names of queries and answers on a page."""

    def __init__(
        self,
        queries: pd.DataFrame,
        candidates: pd.DataFrame,
        open_labels: tuple[str, ...],
        *,
        text: bool,
    ) -> None:
        self.text = text
        self.open_labels = open_labels
        self.facts: dict[str, int] = {}  # of families: the number of the first query
        self.heads = "heads" in queries
        names = dict.fromkeys(candidates["name"])
        self.numbers = {name: f"name {number}" for number, name in enumerate(names, 1)}
        right_answers = queries["answers"].explode().dropna()
        texts = {str(name).casefold() for name in [*names, *right_answers, *queries["subject"]]}
        self.texts = texts - {*open_labels}

    def answer(self, name: str, identifier: str) -> str:
        """The label of a prediction, which may have no name; only candidates have identifiers."""
        if not name:
            return "–"
        if self.text:
            return name
        return self._identifier(identifier) or self.numbers.get(name, "no candidate")

    def query(self, row: Any, number: int) -> list[Any]:
        """The entry of a query in `Answers.content`."""
        answers = list(dict.fromkeys(map(self.answer, row.answers, row.answer_ids)))
        group, heads = [row.subset, row.relation], [row.heads] if self.heads else []
        if self.text:
            return [row.query_id, *group, row.subject, row.prompt, answers, *heads]
        names = [
            name for name in (row.subject, *row.answers) if name and name not in self.open_labels
        ]
        reveals_name = any(name.casefold() in row.query_id.casefold() for name in names)
        fact, mark, member = row.query_id.partition(MEMBER)
        place = self.facts.setdefault(fact, number) if mark else number
        query = f"query {place}{mark}{member}" if reveals_name else row.query_id
        return [query, *group, self._identifier(row.subject_id), "", answers, *heads]

    def _identifier(self, identifier: str) -> str:
        """An identifier; empty if it is a name, since some sources have no identifiers."""
        return "" if str(identifier).casefold() in self.texts else str(identifier)


class QueryJob(NamedTuple):
    """A query page to write."""

    benchmark: str
    tables: Sequence[Path]  # its prediction tables
    systems: Sequence[tuple[str, str]] = ()  # the main results, the best first
    subset: str = ""  # the main one
    among: int = 1  # a hit is a right answer among so many


def write_query_pages(
    jobs: Iterable[QueryJob], folder: Path, bar: Progress, executor: Executor, *, text: bool
) -> dict[str, dict[tuple[str, str], Overlap]]:
    """Write into `folder` the query page of each benchmark that has queries to show."""
    folder.mkdir(parents=True)
    jobs = sorted(jobs, key=lambda job: job.benchmark)
    named = [Job(f"the queries of {job.benchmark}", job) for job in jobs]
    done = executor(partial(write_page_of_benchmark, folder, text), named)
    sizes = [len(job.tables) for job in jobs]
    pages = in_job_order(with_progress(done, sizes, bar))
    return {job.benchmark: page for job, (_, page) in zip(jobs, pages, strict=True)}


def write_page_of_benchmark(
    folder: Path, text: bool, job: QueryJob
) -> dict[tuple[str, str], Overlap]:
    """Write the page of one benchmark, and return how the hits of two models overlap."""
    answers = read_answers(places.BENCHMARKS / job.benchmark, job.tables)
    if answers is None:
        return {}
    about = Metadata.read(places.ABOUT / f"{job.benchmark}.json")
    text = text or about.is_open or about.terms == "own"
    labelled = answers.label(text=text)
    shown = [place for one in job.systems if (place := answers.place(one)) is not None]
    labelled.content["main"] = shown
    write(job.benchmark, labelled, folder, text=text, is_open=about.is_open)
    return _overlaps(answers, job)


def _overlaps(answers: RawAnswers, job: QueryJob) -> dict[tuple[str, str], Overlap]:
    """How many queries of the main subset the main results of two models have right.

    Empty where the page does not list the subset. Counted as the page counts.
    """
    inside = (answers.queries["subset"] == job.subset).to_numpy()[answers.probed]
    best = {}
    for system in job.systems:
        if (place := answers.place(system)) is not None and "." not in answers.best[place]:
            marks = np.array([*answers.best[place]])[inside]
            rank = np.array([10 if mark == "a" else int(mark.strip() or 0) for mark in marks])
            best[system[0]] = marks != " ", (rank > 0) & (rank <= job.among)
    found = {}
    for (a, (asked_a, hits_a)), (b, (asked_b, hits_b)) in combinations(best.items(), 2):
        asked = asked_a & asked_b
        only_a, both, only_b = (
            int((asked & hits).sum())
            for hits in (hits_a & ~hits_b, hits_a & hits_b, hits_b & ~hits_a)
        )
        if asked.any():
            found[a, b] = only_a, both, only_b, int(asked.sum()) - only_a - both - only_b
    return found
