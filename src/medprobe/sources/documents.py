"""Which documents of a text resource mention which entities, found in one pass and kept.

An index is a folder: `index.json` (what it was made from, and counts), and for each share of the
resource's files a folder with `documents.parquet` (`document, id, text`: those that mention two
entities or more) and `mentions.parquet` (`document, start, end, cui`). A resource is scanned anew
only where its files, the names looked for or the code have changed, so that another resource or
other triples cost a look-up. Memory does not grow with a resource.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Section
from medprobe.core.parts import Executor, Job, code_fingerprint, fingerprint, local
from medprobe.sources import articles, notes, texts
from medprobe.sources.texts import Document

if TYPE_CHECKING:
    from medprobe.sources.mentions import Mentions

BATCH: Final = 500  # documents in memory at a time
SHARE: Final = 64 * 2**20  # bytes of files that are scanned together
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
    path: Path


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
        return self._query(
            """
            with wanted as (select subject_id as cui from pairs union select fact_id from pairs),
            postings as (
                select distinct document, cui from mentions where cui in (from wanted)
            )
            select subject_id, fact_id, s.document
            from pairs
            join postings as s on s.cui = subject_id
            join postings as f on f.cui = fact_id and f.document = s.document
            join documents as d on d.document = s.document
            qualify row_number() over (
                partition by subject_id, fact_id
                order by md5(concat_ws('|', $seed, subject_id, fact_id, id)), id
            ) <= $most
            order by s.document, subject_id, fact_id
            """,
            {"seed": str(seed), "most": most},
            pairs=pairs[["subject_id", "fact_id"]].drop_duplicates(),
        )

    def read(self, documents: Iterable[int]) -> Iterator[tuple[int, Document, pd.DataFrame]]:
        """These documents by their numbers, each with its mentions in the order of the text
        (`start, end, cui`; a mention of several entities has a row for each)."""
        wanted = sorted(set(documents))
        for begin in range(0, len(wanted), BATCH):
            chosen = pd.DataFrame({"document": wanted[begin : begin + BATCH]})
            rows = self._query(
                "select * from mentions semi join chosen using (document)"
                " order by document, start, cui",
                chosen=chosen,
            )
            found = dict(iter(rows.groupby("document")))
            held = self._query(
                "select * from documents semi join chosen using (document) order by document",
                chosen=chosen,
            )
            for row in held.itertuples():
                mentions = found[row.document][["start", "end", "cui"]]
                yield row.document, Document(row.id, row.text), mentions

    def frequencies(self) -> "pd.Series[int]":
        """How many documents mention each entity."""
        table = self._query("select cui, count(distinct document) as n from mentions group by cui")
        return table.set_index("cui")["n"]

    def _query(self, sql: str, values: dict[str, Any] | None = None, **tables: Any) -> Any:
        import duckdb

        with duckdb.connect() as connection:
            for name in ("documents", "mentions"):
                view = connection.read_parquet(str(self.folder / f"*/{name}.parquet"))
                view.create_view(name)
            for name, table in tables.items():
                connection.register(name, table)
            return connection.execute(sql, values or {}).df()


def index(
    name: str,
    resource: Resource,
    data: Path,
    names: list[tuple[str, str]],
    folder: Path,
    *,
    executor: Executor = local,
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
