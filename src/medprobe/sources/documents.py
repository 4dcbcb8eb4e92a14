"""Which documents of a text resource mention which entities, found in one pass and kept.

An index is a folder: `index.json` (what it was made from, and counts), and for each share of the
resource's files a folder with `documents.parquet` (`document, id, text`: those that mention two
entities or more) and `mentions.parquet` (`document, start, end, cui`). A resource is scanned anew
only where its files, the names looked for or the code have changed, so that another resource or
other triples cost a look-up. Memory does not grow with a resource.
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
        self.about: dict[str, Any] = json.loads((folder / "index.json").read_text("utf-8"))

    def shared(self, pairs: pd.DataFrame, most: int, seed: int) -> pd.DataFrame:
        """Documents that mention both entities of a pair: at most `most` a pair, drawn with the
        seed; the draw of one pair depends on no other and not on the order of documents.

        `pairs` has `subject_id, fact_id`; the result `subject_id, fact_id, document`.
        """
        postings = self._postings({*pairs["subject_id"], *pairs["fact_id"]})
        known = self._table("documents").select("document", "id").collect().sort("document")
        rows = []
        for subject, fact in sorted({*zip(pairs["subject_id"], pairs["fact_id"], strict=True)}):
            both = np.intersect1d(postings[subject], postings[fact], assume_unique=True)
            ids = known["id"].gather(known["document"].search_sorted(both))
            keys = (_digest(f"{seed}|{subject}|{fact}|{name}") for name in ids)
            drawn = heapq.nsmallest(most, zip(keys, ids, both.tolist(), strict=True))
            rows += [(document, subject, fact) for _, _, document in drawn]
        table = pd.DataFrame(sorted(rows), columns=["document", "subject_id", "fact_id"])
        return table[["subject_id", "fact_id", "document"]].astype(SHARED)

    def read(self, documents: Iterable[int]) -> Iterator[tuple[int, Document, pd.DataFrame]]:
        """These documents by their numbers, each with its mentions in the order of the text
        (`start, end, cui`; a mention of several entities has a row for each)."""
        wanted = sorted(set(documents))
        for begin in range(0, len(wanted), BATCH):
            batch = wanted[begin : begin + BATCH]
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
        found = {cui: some.to_numpy() for cui, some in zip(*table, strict=True)}
        return {cui: found.get(cui, np.empty(0, np.int64)) for cui in cuis}

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


def index(
    name: str,
    resource: Resource,
    data: Path,
    names: list[tuple[str, str]],
    folder: Path,
    *,
    executor: Executor = in_this_process,
) -> Index:
    """The index of a resource at `folder/name`: the one that is there where it was made from the
    same files and names by the same code, else made now. `names` are pairs of a name and its CUI.

    Raises BadInput where the resource is missing, broken or empty.
    """
    path = data / resource.path
    if not path.exists():
        raise BadInput(path, f"no such file or folder for resource {name}", "correct its path")
    spelled = hashlib.sha256(json.dumps(names).encode()).hexdigest()
    files, code = fingerprint([path]), code_fingerprint(__name__)
    made_from = {"form": resource.form, "files": files, "names": spelled, "code": code}
    target = folder / name
    if (target / "index.json").is_file() and Index(target).about["made_from"] == made_from:
        return Index(target)
    with replacing(target) as scratch:
        scratch.mkdir()
        jobs = []
        for number, share in enumerate(_shares(texts.files(path, READERS[resource.form][1]))):
            out = scratch / str(number)
            jobs.append(Job(f"mentions in {share[0]} and on", (share, out, number), share, (out,)))
        counts: Counter[str] = Counter(documents=0, kept=0, mentions=0)
        skipped: Counter[str] = Counter()
        for _, (counted, passed_over) in executor(_Scanner(resource.form, names), jobs):
            counts.update(counted)
            skipped.update(passed_over)
        if not counts["documents"]:
            raise BadInput(path, f"no document in resource {name}", "correct its path or form")
        about = {"made_from": made_from, **counts, "skipped": dict(sorted(skipped.items()))}
        (scratch / "index.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    return Index(target)


def _shares(files: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Files in their order, so many together as make a share."""
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
    """Scans shares of a resource's files. A copy sent elsewhere makes its own finder of names."""

    def __init__(self, form: str, names: list[tuple[str, str]]) -> None:
        self.form, self.names = form, names

    def __reduce__(self) -> Any:
        return type(self), (self.form, self.names)

    @cached_property
    def finder(self) -> "Mentions":
        """Of all names."""
        from medprobe.sources.mentions import Mentions

        return Mentions(self.names)

    def __call__(
        self, asked: tuple[tuple[Path, ...], Path, int]
    ) -> tuple[Counter[str], Counter[str]]:
        """Of some files, with the folder to write and the share's number: the counts, as of `scan`,
        and of what was skipped."""
        files, folder, share = asked
        folder.mkdir(parents=True)
        skipped: Counter[str] = Counter()
        documents = (one for file in files for one in READERS[self.form][0](file, skipped))
        return scan(documents, self.finder, folder, share * NUMBERS), skipped


def scan(
    documents: Iterator[Document], finder: "Mentions", folder: Path, first: int = 0
) -> Counter[str]:
    """Find all mentions in one pass; write both tables into `folder`, with documents numbered from
    `first`. Returns the counts of `documents` read, of those `kept`, and of `mentions` in these."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text_type = pa.schema([("document", pa.int64()), ("id", pa.string()), ("text", pa.string())])
    fields = [("document", pa.int64()), ("start", pa.int32()), ("end", pa.int32())]
    mention_type = pa.schema([*fields, ("cui", pa.string())])
    counts: Counter[str] = Counter()
    with (
        pq.ParquetWriter(folder / "documents.parquet", text_type, compression="zstd") as held,
        pq.ParquetWriter(folder / "mentions.parquet", mention_type, compression="zstd") as found,
    ):
        while batch := list(islice(documents, BATCH)):
            kept, mentions = [], []
            for number, document in enumerate(batch, start=first + counts["documents"]):
                rows = [
                    (number, mention.start, mention.end, cui)
                    for mention in finder.find(document.text)
                    for cui in mention.ids
                ]
                if len({row[3] for row in rows}) > 1:
                    kept.append((number, document.id, document.text))
                    mentions += rows
            counts.update(documents=len(batch), kept=len(kept), mentions=len(mentions))
            held.write_table(_columns(kept, text_type))
            found.write_table(_columns(mentions, mention_type))
    return counts


def _columns(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
