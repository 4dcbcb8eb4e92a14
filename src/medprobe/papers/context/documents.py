"""An index of a text resource: which documents mention which entities.

An index is a folder: `index.json` (what it was made from, and counts), and for each share of the
resource's files a folder with `ids.parquet` (`document, id, digest, place`: all that were read),
`documents.parquet` (`document, id, text`: those that mention two or more entities) and
`mentions.parquet` (`document, start, end, cui`). A resource is scanned again only if its files, its
categories, the names or the code have changed, and not for another sample of it. Memory does not
grow with a resource, but for the ids of its documents.
"""

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray
from pydantic import PositiveInt, model_validator

from medprobe.core.code import code_key
from medprobe.core.errors import BadInput, nearest
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.parts import fingerprint
from medprobe.core.settings import Section
from medprobe.papers.context import articles, notes, texts
from medprobe.papers.context.texts import Document, Seen, said
from medprobe.sources.mentions import Mentions

VERSION: Final = 1  # of what is found in documents: raise it when that changes
BATCH: Final = 500  # documents in memory at a time
SHARE: Final = 64 * 2**20  # bytes of files that are scanned together
SHARED: Final = {"subject_id": "str", "fact_id": "str", "document": "int64"}  # columns
NUMBERS: Final = 2**32  # of documents, for each share
EQUAL: Final = "equal texts"  # documents whose text another one has, under another id
READERS: Final = {"notes": notes.read, "articles": articles.read, "texts": texts.read}


class Resource(Section):
    """A text resource: its form, its file or folder below `data/`, and what is taken of it."""

    form: Literal["notes", "articles", "texts"]
    """`notes` (MIMIC-III), `articles` (JATS XML), or `texts`."""
    path: Path
    """File or folder below `data/`."""
    categories: tuple[str, ...] = ()
    """Of `notes`: the values of CATEGORY to take, such as `Discharge summary`. Empty: all."""
    sample: PositiveInt | None = None
    """Take so many documents, drawn. Empty: all."""

    @model_validator(mode="after")
    def _check_categories(self) -> "Resource":
        if self.categories and self.form != "notes":
            raise ValueError(f"{self.form} have no categories: only notes have")
        return self


class Index:
    """The index of one resource in its folder, or of a sample of its documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.description: dict[str, Any] = json.loads((folder / "index.json").read_text("utf-8"))
        self._sample: list[int] | None = None  # numbers of documents

    def draw(self, size: int, seed: int) -> "Index":
        """Return the index of a sample of the documents that were read.

        The draw depends on the documents' ids, not on their order.
        """
        if size > (documents := self.description["documents"]):
            problem = f"{documents:,} documents, from which {size:,} cannot be drawn"
            remedy = f"set the resource's sample to {documents} or fewer, or leave it out"
            raise BadInput(self.description["path"], problem, remedy)
        table = self._table("ids").collect()
        keys = (
            (_digest(f"{seed}|{name}"), name, number)
            for number, name in zip(table["document"], table["id"], strict=True)
        )
        sampled = Index(self.folder)
        sampled._sample = sorted(number for *_, number in heapq.nsmallest(size, keys))
        rows = {
            count: sampled._table(name).select(pl.len()).collect().item()
            for count, name in (("kept", "documents"), ("mentions", "mentions"))
        }
        sampled.description |= {"documents": size, **rows}
        sampled.description["skipped"] = {
            **self.description["skipped"],
            "not drawn": documents - size,
        }
        return sampled

    def shared(self, pairs: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
        """Draw documents that mention both entities of a pair.

        The draw of one pair depends neither on other pairs nor on the order of documents.

        Args:
            pairs: columns `subject_id, fact_id`.
            most: the largest number of documents per pair.
            seed: of the draw.

        Returns:
            Columns `subject_id, fact_id, document`.
        """
        postings = self._postings({*pairs["subject_id"], *pairs["fact_id"]})
        identifiers = self._table("documents").select("document", "id").collect().sort("document")
        rows = []
        for subject, fact in sorted({*zip(pairs["subject_id"], pairs["fact_id"], strict=True)}):
            common = np.intersect1d(postings[subject], postings[fact], assume_unique=True)
            ids = identifiers["id"].gather(identifiers["document"].search_sorted(common))
            keys = (_digest(f"{seed}|{subject}|{fact}|{name}") for name in ids)
            sample = heapq.nsmallest(most, zip(keys, ids, common.tolist(), strict=True))
            rows += [(document, subject, fact) for _, _, document in sample]
        table = pd.DataFrame(sorted(rows), columns=["document", "subject_id", "fact_id"])
        return table[["subject_id", "fact_id", "document"]].astype(SHARED)

    def read(self, documents: Iterable[int]) -> Iterator[tuple[int, Document, pd.DataFrame]]:
        """Read documents by their numbers.

        Yields:
            `(number, document, mentions)`; mentions have the columns `start, end, cui` in the order
            of the text, and one row per entity.
        """
        numbers = sorted(set(documents))
        for begin in range(0, len(numbers), BATCH):
            batch = numbers[begin : begin + BATCH]
            rows = self._rows("mentions", batch).sort("document", "start", "cui").to_pandas()
            mentions = dict(iter(rows.groupby("document")[["start", "end", "cui"]]))
            for number, name, text in self._rows("documents", batch).sort("document").rows():
                yield number, Document(name, text), mentions[number]

    def frequencies(self) -> "pd.Series[int]":
        """How many documents mention each entity."""
        count = pl.col("document").n_unique().cast(pl.Int64).alias("n")
        table = self._table("mentions").group_by("cui").agg(count).collect(engine="streaming")
        return table.to_pandas().set_index("cui")["n"]

    def _postings(self, cuis: set[str]) -> "dict[str, NDArray[np.int64]]":
        """The documents that mention each of these entities, in their order."""
        mentions = self._table("mentions").filter(pl.col("cui").is_in(list(cuis)))
        documents = pl.col("document").unique().sort()
        table = mentions.group_by("cui").agg(documents).collect(engine="streaming")
        documents_by_cui = {cui: numbers.to_numpy() for cui, numbers in zip(*table, strict=True)}
        return {cui: documents_by_cui.get(cui, np.empty(0, np.int64)) for cui in cuis}

    def _table(self, name: str) -> pl.LazyFrame:
        """The documents, mentions or ids of all shares, as far as they are in the sample."""
        table = pl.scan_parquet(sorted(self.folder.glob(f"*/{name}.parquet")), glob=False)
        if self._sample is None:
            return table
        return table.filter(pl.col("document").is_in(self._sample))

    def _rows(self, name: str, documents: list[int]) -> pl.DataFrame:
        """The rows of these documents; the range passes over row groups that hold none."""
        document = pl.col("document")
        chosen = document.is_between(documents[0], documents[-1]) & document.is_in(documents)
        return self._table(name).filter(chosen).collect(engine="streaming")


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def open_index(
    name: str,
    resource: Resource,
    data: Path,
    names: list[tuple[str, str]],
    folder: Path,
    *,
    seed: int = 0,
    executor: Executor = in_this_process,
) -> Index:
    """Open the index of a resource; it is built first unless it has the same inputs and code."""
    path = data / resource.path
    if not path.exists():
        raise BadInput(path, f"no such file or folder for resource {name}", "correct its path")
    names_hash = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    files = fingerprint([path])
    code = code_key("core", "sources", "papers/context", version=VERSION)
    inputs = {
        "form": resource.form,
        "categories": sorted(resource.categories),
        "files": files,
        "names": names_hash,
        "code": code,
    }
    target = folder / name
    is_there = (target / "index.json").is_file()
    if not is_there or Index(target).description["made_from"] != inputs:
        _build(target, resource, path, names, inputs, executor=executor)
    index = Index(target)
    return index if resource.sample is None else index.draw(resource.sample, seed)


def _build(
    target: Path,
    resource: Resource,
    path: Path,
    names: list[tuple[str, str]],
    inputs: dict[str, Any],
    *,
    executor: Executor,
) -> None:
    """Build the index of all documents of a resource's categories."""
    with replacing(target) as scratch:
        scratch.mkdir()
        jobs = []
        skipped: Counter[str] = Counter()
        listed = READERS[resource.form].list_files(path, skipped)
        for number, share in enumerate(_shares(listed)):
            out = scratch / str(number)
            jobs.append(Job(f"mentions in {share[0]} and on", (share, out, number), share))
        counts: Counter[str] = Counter(documents=0, kept=0, mentions=0)
        categories: Counter[str] = Counter()
        scanner = _Scanner(resource.form, resource.categories, Mentions(names))
        for _, (new_counts, new_skipped, new_categories) in executor(scanner, jobs):
            counts.update(new_counts)
            skipped.update(new_skipped)
            categories.update(new_categories)
        for category in resource.categories:
            if not categories[category]:
                problem = f"no note of category '{category}'{nearest(category, [*categories])}"
                raise BadInput(path, problem, f"correct the categories of resource {target.name}")
        if not counts["documents"]:
            problem = f"no document in resource {target.name}{said(skipped)}"
            raise BadInput(path, problem, "correct its path or form")
        repeated = _leave_out_repeated(scratch)
        counts.subtract(repeated)
        skipped["read before"] += repeated["documents"]
        ids = pl.scan_parquet(sorted(scratch.glob("*/ids.parquet")), glob=False)
        distinct = ids.select(pl.col("digest").n_unique()).collect().item()
        counts[EQUAL] = counts["documents"] - distinct
        skipped.update(
            {
                f"of category {category}": count
                for category, count in categories.items()
                if category not in resource.categories
            }
        )
        description = {"made_from": inputs, "path": path.as_posix(), **counts}
        description["skipped"] = dict(sorted((+skipped).items()))
        (scratch / "index.json").write_text(json.dumps(description, indent=1) + "\n", "utf-8")


def _leave_out_repeated(folder: Path) -> Counter[str]:
    """Take documents that are in an earlier share out of the tables, and count what was taken."""
    ids = pl.scan_parquet(sorted(folder.glob("*/ids.parquet")), glob=False)
    twice = ids.filter(pl.col("id").is_duplicated()).collect().sort("document")
    seen = Seen()
    numbers = [number for number, *document in twice.rows() if seen.has(*document)]
    taken: Counter[str] = Counter()
    for share in {number // NUMBERS for number in numbers}:
        for count, name in (("documents", "ids"), ("kept", "documents"), ("mentions", "mentions")):
            path = folder / str(share) / f"{name}.parquet"
            table = pl.read_parquet(path)
            rest = table.filter(~pl.col("document").is_in(numbers))
            rest.write_parquet(path)
            taken[count] += len(table) - len(rest)
    return taken


def _shares(files: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Files in their order, grouped into shares of about SHARE bytes."""
    shares: list[tuple[Path, ...]] = []
    room = 0
    for file in files:
        size = file.stat().st_size
        if not shares or size > room:
            shares.append(())
            room = SHARE
        shares[-1] += (file,)
        room -= size
    return shares


@dataclass(frozen=True)
class _Scanner:
    """Scans shares of a resource's files."""

    form: str
    categories: tuple[str, ...]
    finder: Mentions

    def __call__(
        self, job: tuple[tuple[Path, ...], Path, int]
    ) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """Scan one share, given its files, the folder to write and its number."""
        files, folder, share = job
        folder.mkdir(parents=True)
        skipped: Counter[str] = Counter()
        categories: Counter[str] = Counter()
        documents = self._chosen(READERS[self.form].read(files, skipped), categories)
        return scan(documents, self.finder, folder, share * NUMBERS), skipped, categories

    def _chosen(
        self, documents: Iterator[Document], categories: Counter[str]
    ) -> Iterator[Document]:
        """The documents of the categories that are named, all of which are counted, or all."""
        if not self.categories:
            yield from documents
            return
        for document in documents:
            categories[document.category] += 1
            if document.category in self.categories:
                yield document


def scan(
    documents: Iterator[Document], finder: Mentions, folder: Path, first_number: int = 0
) -> Counter[str]:
    """Find all mentions in one pass and write the three tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    key = [("document", pa.int64()), ("id", pa.string())]
    id_type = pa.schema([*key, ("digest", pa.binary()), ("place", pa.string())])
    text_type = pa.schema([*key, ("text", pa.string())])
    fields = [("document", pa.int64()), ("start", pa.int32()), ("end", pa.int32())]
    mention_type = pa.schema([*fields, ("cui", pa.string())])
    counts: Counter[str] = Counter()
    with (
        pq.ParquetWriter(folder / "ids.parquet", id_type, compression="zstd") as id_writer,
        pq.ParquetWriter(
            folder / "documents.parquet", text_type, compression="zstd"
        ) as text_writer,
        pq.ParquetWriter(
            folder / "mentions.parquet", mention_type, compression="zstd"
        ) as mention_writer,
    ):
        while batch := list(islice(documents, BATCH)):
            texts_of_interest, mentions = [], []
            numbered = [*enumerate(batch, start=first_number + counts["documents"])]
            for number, document in numbered:
                rows = [
                    (number, mention.start, mention.end, cui)
                    for mention in finder.find(document.text)
                    for cui in mention.ids
                ]
                if len({row[3] for row in rows}) > 1:
                    texts_of_interest.append((number, document.id, document.text))
                    mentions += rows
            counts.update(documents=len(batch), kept=len(texts_of_interest), mentions=len(mentions))
            ids = [(number, x.id, x.digest, x.place) for number, x in numbered]
            id_writer.write_table(_columns(ids, id_type))
            text_writer.write_table(_columns(texts_of_interest, text_type))
            mention_writer.write_table(_columns(mentions, mention_type))
    return counts


def _columns(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
