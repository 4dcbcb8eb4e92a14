"""`medprobe import results`: what another program measured, brought into data/imported.

An imported model has no checkpoint. Its predictions are data: DVC tracks them with the folder
data, and the stage `imported` makes a prediction table of them.
"""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.tables import (
    DISTRACTOR,
    SLOT,
    BenchmarkTables,
    Metadata,
    candidate_hash,
    query_hash,
    read_table,
    write_table,
)
from medprobe.engine import ranking
from medprobe.extensions.exchange import responses
from medprobe.extensions.exchange.responses import Response
from medprobe.extensions.exchange.stages.imported import COLUMNS, IMPORTED, prediction_table
from medprobe.methods import K

ENDING: Final = "-imported"  # ends the names of models of this kind
TABLES: Final = (".csv", ".tsv", ".parquet")
RANKED: Final = "likelihood"  # the method that a ranking by log-likelihoods is
WRITTEN: Final = "generation"  # what a program calls an answer that the model writes
TABLE: Final = ["query_id", "prediction", "score"]
LINE: Final = "\n"
TWICE: Final = "the query has this prediction twice"


def import_results(
    path: Path,
    *,
    model: str | None = None,
    benchmark: str | None = None,
    method: str | None = None,
    force: bool = False,
    partial: bool = False,
) -> str:
    """Write the results of another program to data/imported, one table per method and benchmark.

    Args:
        path: lm-eval's folder or one of its `samples_*.jsonl`, or a table with the columns
            `query_id, prediction, score` and maybe `rank`.
        model: A name for the model. It gets the ending `-imported`. A log has one.
        benchmark: The benchmark in params.yaml. Empty: the one whose queries were asked.
        method: The method to compare it with. A table needs it; a ranking by log-likelihood is
            `likelihood`, and a written answer `generation`.
        force: Replace results that differ.
        partial: The model was asked some of the queries. Of a subset that is not complete, these
            become a subset of its own.

    Returns:
        The name that the model has in params.yaml.

    Raises:
        BadInput: The results cannot be read, or do not fit the benchmark.
    """
    if not path.exists():
        raise BadInput(path, "no such file or folder", "give what the program wrote")
    if path.suffix in TABLES:
        if not (model and method):
            raise BadInput(path, "a table does not say who answered", "give --model and --method")
        table = _read_table(path)
        name = benchmark or _benchmark_of(table["query_id"].astype(str), path)
        tables = _tables(name)
        written = not set(table["prediction"].dropna()) <= set(tables.candidates["name"])
        if method == RANKED and (table["score"] > 0).any():
            problem = "a log-likelihood is above 0"
            raise BadInput(path, problem, "give the log-likelihood of each prediction")
        parts = {method: table.assign(written=written)}
        origin = {"tool": "table", **responses.file_hashes([path])}
    else:
        log = responses.read(path)
        name = benchmark or _benchmark_of((response.query_id for response in log.responses), path)
        tables = _tables(name)
        parts = {method or key: rows for key, rows in _of_log(log, tables, path).items()}
        origin = log.origin
    for key, rows in parts.items():
        parts[key] = rows[COLUMNS].reset_index(drop=True)
        prediction_table(parts[key], tables, path, part="part" if partial else "")
    origin |= {"partial": "yes"} if partial else {}
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", model or origin.get("model", "")).strip("-_")
    if not stem:
        raise BadInput(path, "it does not say which model answered", "give --model")
    imported = f"{stem.removesuffix(ENDING)[: 60 - len(ENDING)]}{ENDING}"
    _write(parts, origin, IMPORTED / imported, name, force)
    return imported


def _write(
    parts: dict[str, pd.DataFrame],
    origin: dict[str, str],
    folder: Path,
    benchmark: str,
    force: bool,
) -> None:
    """Add the tables of each method to the folder of a model, which changes whole or not at all."""
    for method, rows in parts.items():
        path = folder / method / f"{benchmark}.parquet"
        if path.is_file() and not force and not read_table(path, COLUMNS)[COLUMNS].equals(rows):
            raise BadInput(path, "exists with other results", "--force replaces it")
    with replacing(folder) as scratch:
        if folder.is_dir():
            shutil.copytree(folder, scratch)
        for method, rows in parts.items():
            path = scratch / method / f"{benchmark}.parquet"
            for old in (path, path.with_suffix(".json")):
                old.unlink(missing_ok=True)  # it may be a link into DVC's cache
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(rows, path, COLUMNS)
            text = json.dumps(origin, indent=1, sort_keys=True)
            path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def _tables(benchmark: str) -> BenchmarkTables:
    """A benchmark that is built and judged by ranks."""
    built = _built()
    if benchmark not in built:
        problem = f"no benchmark '{benchmark}' is built{nearest(benchmark, built)}"
        raise BadInput("import results", problem, "run `medprobe repro`")
    if not Metadata.read(places.ABOUT / f"{benchmark}.json").ranks_answers:
        raise BadInput(benchmark, "not judged by which answers come first", "choose another one")
    return BenchmarkTables.read(places.BENCHMARKS / benchmark)


def _built() -> list[str]:
    return sorted(path.name for path in places.BENCHMARKS.glob("*") if path.is_dir())


def _benchmark_of(ids: Iterator[str | None] | pd.Series, path: Path) -> str:
    """The one benchmark that has queries of these ids, or the only one that is built."""
    wanted = {query for query in ids if query}
    built = _built()
    fitting = [
        name
        for name in built
        if wanted & set(read_table(places.BENCHMARKS / name / "queries.parquet", [])["query_id"])
    ]
    if len(fitting or built) != 1:
        if not built:
            raise BadInput(path, "no benchmark is built", "run `medprobe repro`")
        problem = f"it may be of any of {', '.join(fitting or built)}"
        raise BadInput(path, problem, "give --benchmark")
    return (fitting or built)[0]


def _read_table(path: Path) -> pd.DataFrame:
    """A table of any program, ranked by `rank`, or else by score and name."""
    try:
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
        else:
            separator = "\t" if path.suffix == ".tsv" else ","
            texts = {"query_id": str, "prediction": str, "variant": str}
            table = pd.read_csv(path, sep=separator, dtype=texts, keep_default_na=False)
    except (OSError, ValueError):
        raise BadInput(path, "not a table", "write CSV, TSV or parquet") from None
    if missing := [name for name in TABLE if name not in table]:
        remedy = f"the columns are {', '.join(TABLE)}, and maybe rank and variant"
        raise BadInput(path, f"no column {', '.join(missing)}", remedy)
    if "variant" not in table:
        table["variant"] = ""
    for column in ("score", "rank"):
        if column in table:
            numbers = pd.to_numeric(table[column], errors="coerce")
            for row in table.index[~np.isfinite(numbers)][:1]:
                where = f"{path}, row {row + 1}"
                raise BadInput(where, f"{column} is not a number", "give each prediction one")
            table[column] = numbers.astype(float)
    table["query_id"] = table["query_id"].astype(str)
    keys = ["variant", "query_id"]
    ranked = table[table.duplicated(keys, keep=False)]
    if len(ranked) and ranked.groupby(keys)["score"].nunique().max() == 1:
        problem = "all predictions of each query have the same score"
        raise BadInput(path, problem, "give scores by which predictions are ranked")
    for row in table.index[table.duplicated([*keys, "prediction"])][:1]:
        raise BadInput(f"{path}, row {row + 1}", TWICE, "leave one out")
    if "rank" in table:
        _check_ranks(table, keys, path)
        table["rank"] = table["rank"].astype(int)
    else:
        order = table.sort_values(
            [*keys, "score", "prediction"], ascending=[True, True, False, True], kind="stable"
        )
        table["rank"] = order.groupby(keys).cumcount().add(1).reindex(table.index)
    return table[table["rank"] <= K + ranking.MAX_TIES].sort_values([*keys, "rank"], kind="stable")


def _check_ranks(table: pd.DataFrame, keys: list[str], path: Path) -> None:
    """Raise BadInput where the ranks of a query are not 1, 2, 3 …, or contradict the scores."""
    order = table.sort_values([*keys, "rank"], kind="stable")
    place = order.groupby(keys).cumcount() + 1
    above = order.groupby(keys)["score"].shift()
    faults = {
        "rank {rank:g} in the place of rank {place}": order["rank"] != place,
        "a higher score than the prediction of the rank before": order["score"] > above,
    }
    for problem, is_wrong in faults.items():
        for row in order.index[is_wrong][:1]:
            described = problem.format(rank=order["rank"][row], place=place[row])
            remedy = "rank predictions 1, 2, 3 … by score, or leave the column rank out"
            raise BadInput(f"{path}, row {row + 1}", described, remedy)


def _of_log(log: responses.Log, tables: BenchmarkTables, path: Path) -> dict[str, pd.DataFrame]:
    """The rows of a log, by method."""
    matcher = Matcher(tables)
    rows: dict[str, list[dict[str, Any]]] = {}
    sources: dict[tuple[str, str, str], str] = {}  # of each answer: the task
    by_task: dict[str, set[str]] = {}  # queries
    for response in log.responses:
        for query in matcher.queries(response):
            by_task.setdefault(response.task, set()).add(query)
            method = RANKED if response.choices else WRITTEN
            variant, predictions = matcher.ranked(response, query)
            other = sources.setdefault((method, variant, query), response.task)
            if other != response.task:
                problem = f"query {query} is answered by two tasks, {other} and {response.task}"
                raise BadInput(response.where, problem, "import one of them")
            written = method == WRITTEN
            for row in ranking.prediction_rows(query, predictions, variant):
                rows.setdefault(method, []).append({**row, "written": written})
    if not rows:
        raise BadInput(path, "no responses in it", "give a log with samples")
    for task, queries in by_task.items():
        _check_hashes(log.tasks.get(task, {}), tables, queries, task)
    return {method: pd.DataFrame(of_method) for method, of_method in rows.items()}


def _check_hashes(about: dict[str, Any], tables: BenchmarkTables, ids: set[str], task: str) -> None:
    """Raise BadInput where a task was exported from other queries or candidates."""
    queries = tables.queries
    groups = queries.loc[queries["query_id"].isin(ids), ["subset", "relation"]].drop_duplicates()
    if "queries_sha256" not in about or len(groups) != 1:
        return
    subset, relation = groups.iloc[0]
    part = queries[(queries["subset"] == subset) & (queries["relation"] == relation)]
    names = tables.candidates[tables.candidates["subset"] == subset]
    names = names.loc[names["type"] != DISTRACTOR, "name"]
    hashes = {"queries": query_hash(part), "candidates": candidate_hash(names)}
    for what, digest in hashes.items():
        if about.get(f"{what}_sha256") != digest:
            problem = f"the task was exported from other {what} than those that are built now"
            raise BadInput(task, problem, "build the same benchmark, or export it again")


class Matcher:
    """Finds the query that a response is to, and the candidates among its choices."""

    def __init__(self, tables: BenchmarkTables) -> None:
        self.rows: dict[str, Any] = {row.query_id: row for row in tables.queries.itertuples()}
        candidates = tables.candidates[tables.candidates["type"] != DISTRACTOR]
        self.names = {str(name): set(part["name"]) for name, part in candidates.groupby("subset")}
        self.beginnings = defaultdict[str, list[str]](list)  # queries by the text before the slot
        self.answers = defaultdict[tuple[str, str], set[str]](set)  # by subset and relation
        for query, row in self.rows.items():
            self.beginnings[row.prompt.partition(SLOT)[0].strip()].append(query)
            self.answers[row.subset, row.relation].update(row.answers)

    def queries(self, response: Response) -> list[str]:
        """The queries that a response is to: by id, or else all whose prompt was asked.

        Raises:
            BadInput: None of the benchmark's queries fits.
        """
        if response.query_id in self.rows:
            return [response.query_id]
        fitting = []
        if response.choices:
            text = f"{response.context.rpartition(LINE)[2]}{response.choices[0][0]}"
            fitting = [
                query
                for before in _beginnings(text)
                for query in self.beginnings.get(before, ())
                if all(self._name(response, text, query) for text, _ in response.choices)
            ]
        if not fitting:
            problem = "neither its id nor its prompt and choices are of the benchmark"
            raise BadInput(response.where, problem, "give the benchmark that was asked")
        return fitting

    def ranked(self, response: Response, query: str) -> tuple[str, list[tuple[str, float]]]:
        """The variant and the best predictions of a response, each with its score.

        The variant is empty where all candidates were ranked, `relation` where the answers of the
        relation were, and else `choices`. A written text's score is its share of the texts.
        """
        if not response.choices:
            counted = {text: response.texts.count(text) for text in response.texts}
            order = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
            return "", [(text, count / len(response.texts)) for text, count in order]
        scores: dict[str, float] = {}
        for text, score in response.choices:
            name = self._name(response, text, query)
            if name is None:
                problem = f"a choice is not a candidate of {self.rows[query].subset}"
                raise BadInput(response.where, problem, "ask about the benchmark's candidates")
            scores[name] = max(score, scores.get(name, -np.inf))
        names = sorted(scores)
        best = ranking.best_indices(np.array([scores[name] for name in names]), K, ranking.MAX_TIES)
        return self._variant(set(names), query), [(names[i], scores[names[i]]) for i in best]

    def _variant(self, names: set[str], query: str) -> str:
        row = self.rows[query]
        if names == self.names[row.subset]:
            return ""
        of_relation = self.answers[row.subset, row.relation] & self.names[row.subset]
        return "relation" if names == of_relation else "choices"

    def _name(self, response: Response, text: str, query: str) -> str | None:
        """The candidate that a choice is: its text, or what the prompt is filled with."""
        row = self.rows[query]
        names = self.names[row.subset]
        if (name := text.strip()) in names:
            return name
        before, _, after = (part.strip() for part in row.prompt.partition(SLOT))
        whole = f"{response.context}{text}".strip()
        if before not in whole:
            return None
        filled = whole.rpartition(before)[2].strip() if before else whole
        for name in (filled.removesuffix(after).strip(), filled):
            if name in names:
                return name
        return None


def _beginnings(text: str) -> Iterator[str]:
    """The beginnings of a text, each up to the end of a word: what may precede the slot."""
    yield ""
    for match in re.finditer(r"\S(?=\s|$)", text):
        yield text[: match.end()].strip()
