"""An index of a text resource: which documents mention which entities.

An index is a folder: `index.json` (what it was made from, and counts), and for each share of the
resource's files a folder with `documents.parquet` (`document, id, text`: those that mention two
or more entities) and `mentions.parquet` (`document, start, end, cui`). A resource is scanned
again only if its files, the names or the code have changed. Memory does not grow with a resource.
"""

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import Section
from medprobe.core.parts import code_fingerprint, fingerprint
from medprobe.sources import articles, notes, texts
from medprobe.sources.texts import Document

if TYPE_CHECKING:
    from medprobe.sources.mentions import Mentions

BATCH: Final = 500  # documents in memory at a time
SHARE: Final = 64 * 2**20  # bytes of files that are scanned together
SHARED: Final = {"subject_id": "str", "fact_id": "str", "document": "int64"}  # columns
NUMBERS: Final = 2**32  # of documents, for each share
Reader = Callable[[Path, Counter[str]], Iterator[Document]]
READERS: Final[dict[str, tuple[Reader, tuple[str, ...]]]] = {  # with the endings of its files
    "notes": (notes.read, (".csv", ".gz")),
    "articles": (articles.read, (".xml", ".nxml", ".txt")),
    "texts": (texts.read, (".txt", ".jsonl")),
}


class Resource(Section):
    """A text resource: its form, and its file or folder below `data/`."""

    form: Literal["notes", "articles", "texts"]
    """`notes` (MIMIC-III), `articles` (JATS XML), or `texts`."""
    path: Path
    """File or folder below `data/`."""


class Index:
    """The index of one resource in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.description: dict[str, Any] = json.loads((folder / "index.json").read_text("utf-8"))

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
        """The documents or mentions of all shares."""
        return pl.scan_parquet(sorted(self.folder.glob(f"*/{name}.parquet")), glob=False)

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
    executor: Executor = in_this_process,
) -> Index:
    """Open the index of a resource; it is built first unless it has the same inputs and code.

    Args:
        name: the resource's name.
        resource: its format and path.
        data: the folder that the path is relative to.
        names: pairs of a name and its CUI.
        folder: the folder of indexes; this one is `folder/name`.
        executor: what scans shares of the files.

    Raises:
        BadInput: the resource is missing, broken or empty.
    """
    path = data / resource.path
    if not path.exists():
        raise BadInput(path, f"no such file or folder for resource {name}", "correct its path")
    names_hash = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    files, code = fingerprint([path]), code_fingerprint(__name__)
    inputs = {"form": resource.form, "files": files, "names": names_hash, "code": code}
    target = folder / name
    if (target / "index.json").is_file() and Index(target).description["made_from"] == inputs:
        return Index(target)
    with replacing(target) as scratch:
        scratch.mkdir()
        jobs = []
        for number, share in enumerate(_shares(texts.files(path, READERS[resource.form][1]))):
            out = scratch / str(number)
            jobs.append(Job(f"mentions in {share[0]} and on", (share, out, number), share, (out,)))
        counts: Counter[str] = Counter(documents=0, kept=0, mentions=0)
        skipped: Counter[str] = Counter()
        for _, (new_counts, new_skipped) in executor(_Scanner(resource.form, names), jobs):
            counts.update(new_counts)
            skipped.update(new_skipped)
        if not counts["documents"]:
            raise BadInput(path, f"no document in resource {name}", "correct its path or form")
        description = {"made_from": inputs, **counts, "skipped": dict(sorted(skipped.items()))}
        (scratch / "index.json").write_text(json.dumps(description, indent=1) + "\n", "utf-8")
    return Index(target)


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


class _Scanner:
    """Scans shares of a resource's files. A copy in another process makes its own finder."""

    def __init__(self, form: str, names: list[tuple[str, str]]) -> None:
        self.form, self.names = form, names

    def __reduce__(self) -> Any:
        return type(self), (self.form, self.names)

    @cached_property
    def finder(self) -> "Mentions":
        """The finder of all names."""
        from medprobe.sources.mentions import Mentions

        return Mentions(self.names)

    def __call__(
        self, job: tuple[tuple[Path, ...], Path, int]
    ) -> tuple[Counter[str], Counter[str]]:
        """Scan one share, given its files, the folder to write and its number.

        Returns:
            The counts of `scan`, and counts of skipped documents.
        """
        files, folder, share = job
        folder.mkdir(parents=True)
        read, _ = READERS[self.form]
        skipped: Counter[str] = Counter()
        documents = (document for file in files for document in read(file, skipped))
        return scan(documents, self.finder, folder, share * NUMBERS), skipped


def scan(
    documents: Iterator[Document], finder: "Mentions", folder: Path, first_number: int = 0
) -> Counter[str]:
    """Find all mentions in one pass and write both tables.

    Args:
        documents: to scan.
        finder: of the names.
        folder: where the tables go.
        first_number: the number of the first document.

    Returns:
        Counts of `documents` read, of those `kept`, and of `mentions` in these.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text_type = pa.schema([("document", pa.int64()), ("id", pa.string()), ("text", pa.string())])
    fields = [("document", pa.int64()), ("start", pa.int32()), ("end", pa.int32())]
    mention_type = pa.schema([*fields, ("cui", pa.string())])
    counts: Counter[str] = Counter()
    with (
        pq.ParquetWriter(
            folder / "documents.parquet", text_type, compression="zstd"
        ) as text_writer,
        pq.ParquetWriter(
            folder / "mentions.parquet", mention_type, compression="zstd"
        ) as mention_writer,
    ):
        while batch := list(islice(documents, BATCH)):
            texts_of_interest, mentions = [], []
            for number, document in enumerate(batch, start=first_number + counts["documents"]):
                rows = [
                    (number, mention.start, mention.end, cui)
                    for mention in finder.find(document.text)
                    for cui in mention.ids
                ]
                if len({row[3] for row in rows}) > 1:
                    texts_of_interest.append((number, document.id, document.text))
                    mentions += rows
            counts.update(documents=len(batch), kept=len(texts_of_interest), mentions=len(mentions))
            text_writer.write_table(_columns(texts_of_interest, text_type))
            mention_writer.write_table(_columns(mentions, mention_type))
    return counts


def _columns(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
