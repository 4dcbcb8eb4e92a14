"""The three tables that stages exchange: queries, candidates, predictions. All are parquet files.

A *query* is a prompt with one slot `[Y]`, and its answers. A *candidate* is a name that a method
may rank. A *prediction* is one name at one rank for one query; all metrics are computed from these.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from medprobe.core.errors import BadInput, quote, unusable
from medprobe.core.files import replacing, write_whole
from medprobe.core.spreadsheets import csv_text

SLOT: Final = "[Y]"
BLANK: Final = "____"  # shown to people in place of the slot
ABOUT: Final = "about.json"  # in a benchmark's folder: its builder and its rule for answers
PLACES: Final = "places"  # a note of a builder: file and line of each query, `query_id, place`
Terms = Literal["open", "own", "umls", "physionet", "unknown"]  # of use; unknown: others' rights
SCORER: Final = b"medprobe.metric"  # key in a prediction table's file: what scores it
REFUSAL: Final = b"medprobe.not_asked"  # key in one without rows: why the model was not asked

QUERY_COLUMNS: Final = [
    "query_id",
    "benchmark",
    "relation",
    "subject",
    "subject_id",
    "prompt",  # text with exactly one [Y]
    "answers",  # list of names; aliases of an answer have the same id
    "answer_ids",  # list, aligned with answers
    "subset",  # e.g. full, hard; a query of two subsets has a row and an id in each
]
FAMILIES: Final = "families"  # a subset, or its end: a fact's queries in other wordings and names
MEMBER: Final = "#"  # in the id of a family's query: after the id of the fact
ORIGINAL: Final = "original"  # the benchmark's wording, and its name of a subject
ANSWER_SPACE: Final = "answer_space"  # a table `relation, name`: only these are ranked for it
OWN_TABLE: Final = "table"  # the builder of tables of one's own
RELATION_ANSWERS: Final = "relation_answers"  # a table `relation, name`: of a drawn one's source
CANDIDATE_COLUMNS: Final = ["name", "id", "type", "subset"]
BASELINE: Final = "baseline"  # the model of predictions that do not depend on subjects
DISTRACTOR: Final = "distractor"  # type of candidates that were added to the benchmark's
PREDICTION_COLUMNS: Final = [
    "variant",  # setting of the method, "" if it has only one
    "replicate",  # seed or sentence set, "" if there is only one; scores average over them
    "query_id",
    "rank",  # 1 is best
    "prediction",
    "prediction_id",
    "score",  # higher is better
    "hit",  # is the prediction one of the query's answers?
]
AHEAD: Final = "ahead"  # column, true in all rows: they are what decides, not a list of the best
TEXTS: Final = ("prompt", "sentence", "name", "premise", "hypothesis", "full_hypothesis")
NAME_LISTS: Final = ("answers", "tracked")
ROW_NAMES: Final = {"query_id": "query", "example_id": "example", "name": "candidate"}


def is_families(subset: str) -> bool:
    """Return whether a whole subset holds families of queries.

    >>> is_families("families"), is_families("ctd-families"), is_families("families/name:brand")
    (True, True, False)
    """
    return subset.rpartition("-")[2] == FAMILIES


def holds_subject(prompt: str, subject: str) -> bool:
    """Return whether a prompt contains its subject, as it is written.

    >>> holds_subject("He died in [Y] .", "Ada Berg"), holds_subject("Is [Y] a Y ?", "Y")
    (False, True)
    """
    return bool(subject) and any(subject in part for part in prompt.split(SLOT))


@dataclass(frozen=True)
class Metadata:
    """Facts about a benchmark that its users need, such as its licence and primary metric.

    Stored in `outputs/about/<name>.json`, so that a benchmark's results can be read without its
    builder.
    """

    description: str  # one line
    citation: str
    licence: str  # of the sources it is built from
    sources: tuple[str, ...]  # files and folders below data/ that it is built from
    primary_metric: str
    terms: Terms = "unknown"  # under which its text may be passed on; open: to anyone
    cluster: str = "query_id"  # column whose equal values the bootstrap draws together
    many_relations: bool = False  # too many for a figure, or for one MLflow metric each
    contrasts: tuple[tuple[str, str], ...] = ()  # subsets on which a system is compared with itself
    invented: bool = False  # of the sample world: its models have read a known part of the facts
    published: dict[str, str] = field(default_factory=dict)  # is each source as released?

    @property
    def is_open(self) -> bool:
        """Whether anyone can pass the benchmark's texts on: they are invented, or open."""
        return self.invented or self.terms == "open"

    @property
    def ranks_answers(self) -> bool:
        """Whether the primary metric is computed from the ranks of answers."""
        return self.primary_metric.startswith("acc_at_")

    @classmethod
    def read(cls, path: Path) -> "Metadata":
        """Read the metadata of a benchmark.

        Raises:
            BadInput: The file is missing or cut.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            contrasts = tuple((first, second) for first, second in content.get("contrasts", ()))
            return cls(**{**content, "sources": tuple(content["sources"]), "contrasts": contrasts})
        except (OSError, ValueError, KeyError, TypeError):
            raise unusable(path, "missing or cut") from None

    def write(self, path: Path) -> None:
        """Write the metadata as JSON; the file appears completely or not at all."""
        write_whole(path, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")


@dataclass(frozen=True, eq=False)  # what is computed of a benchmark is kept by its identity
class BenchmarkTables:
    """The tables of a benchmark: its builder makes them, every later stage reads them.

    Attributes:
        queries: Columns `QUERY_COLUMNS`.
        candidates: Columns `CANDIDATE_COLUMNS`.
        notes: Tables for people, such as what each rule dropped; each becomes a CSV file.
        others: Further tables, such as queries to train on; each becomes a parquet file.
        normalise: The name of the rule for equal answers, in `core.answers`.
        builder: The module of benchmarks/ that made them.
        folder: Where they were read from; None of those in memory.
    """

    queries: pd.DataFrame
    candidates: pd.DataFrame
    notes: dict[str, pd.DataFrame] = field(default_factory=dict)
    others: dict[str, pd.DataFrame] = field(default_factory=dict)
    normalise: str = "exact"
    builder: str = ""
    folder: Path | None = None

    @classmethod
    def read(cls, folder: Path) -> "BenchmarkTables":
        """Read a benchmark from `outputs/benchmarks/<name>`, without its notes.

        Raises:
            BadInput: A table is missing or lacks a column.
        """
        queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
        candidates = read_table(folder / "candidates.parquet", CANDIDATE_COLUMNS)
        others = {
            path.stem: read_table(path, [])
            for path in sorted(folder.glob("*.parquet"))
            if path.stem not in ("queries", "candidates")
        }
        return cls(queries, candidates, {}, others, **read_about(folder), folder=folder)

    def write(self, folder: Path) -> None:
        """Write all tables.

        Raises:
            BadInput: A prompt does not have exactly one slot; nothing is written.
        """
        check_prompts(self.queries)
        with replacing(folder) as path:
            path.mkdir()
            write_table(self.queries, path / "queries.parquet", QUERY_COLUMNS)
            write_table(self.candidates, path / "candidates.parquet", CANDIDATE_COLUMNS)
            for name, table in self.others.items():
                write_table(table, path / f"{name}.parquet", [])
            for name, note in self.notes.items():
                (path / f"{name}.csv").write_text(csv_text(note), encoding="utf-8")
            about = {"builder": self.builder, "normalise": self.normalise}
            (path / ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")

    def subsets(self) -> list[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """Return `(subset, its queries, its candidates)` in the order of the query table."""
        return [
            (
                str(name),
                queries.reset_index(drop=True),
                self.candidates[self.candidates["subset"] == name].reset_index(drop=True),
            )
            for name, queries in self.queries.groupby("subset", sort=False)
        ]

    def restrict(self, candidates: pd.DataFrame, relation: str) -> pd.DataFrame:
        """Return the candidates that are ranked for a relation: its answer space, if it has one.

        Args:
            candidates: of a subset.
            relation: whose answer space counts.
        """
        space = self.others.get(ANSWER_SPACE)
        names = set() if space is None else {*space.loc[space["relation"] == relation, "name"]}
        if not names:
            return candidates
        return candidates[candidates["name"].isin(names)].reset_index(drop=True)


def read_about(folder: Path) -> dict[str, str]:
    """Return the `builder` of a benchmark, and `normalise`, its rule for equal answers.

    Raises:
        BadInput: The benchmark's `about.json` is missing or cut.
    """
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return {key: str(about[key]) for key in ("builder", "normalise")}
    except (OSError, ValueError, KeyError, TypeError):
        raise unusable(folder / ABOUT, "missing or cut") from None


def check_texts(tables: BenchmarkTables, special_tokens: Iterable[str]) -> None:
    """Check that no text of a benchmark contains a special token of a model's tokenizer.

    A tokenizer makes the token of it: "[SEP]" would end a segment, and "[PAD]" be padding.

    Args:
        tables: The benchmark.
        special_tokens: The tokens as text.

    Raises:
        BadInput: With the first such text and its query, example or candidate.
    """
    every = "\n".join(text for _, texts in _texts(tables) for text in texts)
    present = [token for token in special_tokens if token in every]
    for where, texts in _texts(tables) if present else ():
        for token in present:
            if any(token in text for text in texts):
                problem = f"the text contains {token}, a special token of the model's tokenizer"
                raise BadInput(where, problem, "write it differently, or remove it")


def _texts(tables: BenchmarkTables) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts of each row that a method can read, with the row's name in errors."""
    for table in (tables.queries, tables.candidates, *tables.others.values()):
        columns = [name for name in (*TEXTS, *NAME_LISTS) if name in table]
        key = next((name for name in ROW_NAMES if name in table and columns), None)
        if key is None:
            continue
        for row in table[[*{key, *columns}]].to_dict("records"):
            texts = [text for name in columns for text in _as_list(row[name])]
            yield f"{ROW_NAMES[key]} {quote(row[key]) if key == 'name' else row[key]}", texts


def _as_list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if np.iterable(value) else []


def check_prompts(queries: pd.DataFrame) -> None:
    """Check that every prompt has exactly one slot.

    Raises:
        BadInput: For the first prompt that has not.
    """
    slots = queries["prompt"].str.count(re.escape(SLOT))
    for row in queries[slots != 1].head(1).itertuples():
        count = int(slots[row.Index])
        problem = f"the prompt needs exactly one {SLOT}, and has {count}"
        raise BadInput(f"query {row.query_id}", problem, f"put {SLOT} where the answer belongs")


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read a parquet table.

    Args:
        path: The file.
        columns: Columns that it must have; more are allowed.

    Raises:
        BadInput: The file or a column is missing.
    """
    check_columns(path, columns)
    with whole_table(path):
        return pd.read_parquet(path)


@contextmanager
def whole_table(path: Path) -> Iterator[None]:
    """Refuse a parquet table that cannot be read within the block, such as one that was cut.

    Raises:
        BadInput: With the stage that makes it.
    """
    try:
        yield
    except (OSError, pa.ArrowException):
        raise unusable(path, "cut or damaged") from None


def count_rows(path: Path) -> int:
    """Return how many rows a parquet table has."""
    with whole_table(path):
        return int(pq.read_metadata(path).num_rows)


def check_columns(path: Path, columns: list[str]) -> None:
    """Check that there is a parquet table with these columns.

    Raises:
        BadInput: The file or a column is missing.
    """
    if not path.is_file():
        raise unusable(path, "no such table")
    with whole_table(path):
        names = pq.read_schema(path).names
    if missing := [column for column in columns if column not in names]:
        raise unusable(path, f"no column {', '.join(missing)}")


def write_table(table: pd.DataFrame, path: Path, columns: list[str]) -> None:
    """Write a table with `columns` first; the file appears completely or not at all."""
    rest = [column for column in table if column not in columns]
    with replacing(path) as scratch:
        table[[*columns, *rest]].to_parquet(scratch, index=False)


def check_scores(predictions: pd.DataFrame, where: object) -> None:
    """Check that all scores are finite numbers.

    Raises:
        BadInput: With the query of the first score that is missing, NaN or infinite.
    """
    scores = pd.to_numeric(predictions["score"], errors="coerce").to_numpy(float)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        query = predictions["query_id"].iloc[bad[0]]
        problem = f"{bad.size:,} scores are no numbers, the first that of query {query}"
        raise BadInput(where, problem, "look at the model's weights and outputs")


def lists_outranking(predictions: pd.DataFrame) -> bool:
    """Return whether predictions are names found ahead of each query's best answer.

    Then a query's rows are its best names only up to its best answer. Where too many are ahead of
    this, there is one row without a name.
    """
    return AHEAD in predictions and bool(predictions[AHEAD].any())


def list_replicates(path: Path) -> dict[str, list[str]]:
    """Return the replicates of each variant of a prediction table."""
    keys = ["variant", "replicate"]
    # As dictionaries: a large table has millions of rows, and few variants.
    with whole_table(path):
        runs = pq.read_table(path, columns=keys, read_dictionary=keys).unify_dictionaries()
    runs = runs.group_by(keys).aggregate([])
    replicates: dict[str, list[str]] = {}
    for variant, replicate in zip(*(runs[key].to_pylist() for key in keys), strict=True):
        replicates.setdefault(variant, []).append(replicate)
    return replicates


def read_predictions(
    path: Path, wanted: Callable[[str], bool] = lambda variant: True, *, first: bool = False
) -> Iterator[pd.DataFrame]:
    """Yield a prediction table variant by variant, so that memory holds one variant at a time.

    Args:
        path: The parquet file.
        wanted: Says which variants to read, by name.
        first: Read only the first replicate of each variant.

    Yields:
        The rows of one variant, with columns `PREDICTION_COLUMNS`.

    Raises:
        BadInput: A column is missing, or a score is not a number.
    """
    check_columns(path, PREDICTION_COLUMNS)
    replicates = list_replicates(path)
    for variant in sorted(filter(wanted, replicates)):
        filters = [("variant", "==", variant)]
        if first:
            filters.append(("replicate", "==", min(replicates[variant])))
        with whole_table(path):
            table = pd.read_parquet(path, filters=filters)
        check_scores(table, path)
        yield table


def write_predictions(
    table: pd.DataFrame | Iterable[pd.DataFrame],
    path: Path,
    metric: str,
    types: pa.Schema | None = None,
) -> None:
    """Write a prediction table.

    Args:
        table: Columns `PREDICTION_COLUMNS` at least; or its pieces, of which one is held at a time.
        path: The parquet file.
        metric: The scorer, a module of `metrics/`. It is stored in the file, so that readers
            need not know the method.
        types: Of columns that the first piece may lack, or hold in a narrower type.
    """
    pieces = [table] if isinstance(table, pd.DataFrame) else table
    with replacing(path) as scratch, ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        for piece in pieces:
            rest = [column for column in piece if column not in PREDICTION_COLUMNS]
            ordered = piece[[*PREDICTION_COLUMNS, *rest]]
            content = pa.Table.from_pandas(ordered, preserve_index=False)
            if writer is None:
                about = {**(content.schema.metadata or {}), SCORER: metric.encode()}
                schemas = [content.schema, *([types.remove_metadata()] if types else [])]
                schema = pa.unify_schemas(schemas, promote_options="permissive")
                writer = pq.ParquetWriter(scratch, schema.with_metadata(about))
                stack.enter_context(writer)
            both = [writer.schema.empty_table(), content]
            writer.write_table(pa.concat_tables(both, promote_options="permissive"))


def write_refusal(path: Path, reason: str) -> None:
    """Write a prediction table without rows, of a model that was not asked.

    Args:
        path: The parquet file.
        reason: Why it was not asked.
    """
    content = pa.Table.from_pandas(pd.DataFrame(columns=PREDICTION_COLUMNS), preserve_index=False)
    with replacing(path) as scratch:
        pq.write_table(content.replace_schema_metadata({REFUSAL: reason.encode()}), scratch)


def read_refusal(path: Path) -> str:
    """Return why a model was not asked; empty if it was, or if there is no such table."""
    if not path.is_file():
        return ""
    with whole_table(path):
        return (pq.read_schema(path).metadata or {}).get(REFUSAL, b"").decode()


def result_names(path: Path) -> tuple[str, str, str]:
    """Return the model, method and benchmark of a prediction table, whose path has their names."""
    return path.parent.parent.name, path.parent.name, path.stem


def metric_of_predictions(path: Path) -> str:
    """Return the name of what scores a prediction table, a module of `metrics/`.

    Raises:
        BadInput: The file is not a prediction table.
    """
    try:
        return (pq.read_schema(path).metadata or {})[SCORER].decode()
    except (OSError, pa.ArrowInvalid, KeyError):
        raise unusable(path, "no prediction table") from None


def query_hash(queries: pd.DataFrame) -> str:
    """Return the SHA-256 of queries' ids, prompts and answers.

    The order of the queries does not matter.

    Args:
        queries: a query table.
    """
    rows = sorted(
        [str(row.query_id), str(row.prompt), *sorted(map(str, row.answers))]
        for row in queries.itertuples()
    )
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def candidate_hash(names: Iterable[str]) -> str:
    """Return the SHA-256 of a set of candidates, whatever their order.

    Two results have ranked the same names if their hashes agree.

    >>> candidate_hash(["b", "a"]) == candidate_hash(["a", "b", "b"])
    True
    """
    text = "\n".join(sorted(set(names)))
    return hashlib.sha256(text.encode()).hexdigest()
