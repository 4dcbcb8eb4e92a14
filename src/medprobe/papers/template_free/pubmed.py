"""PubMed's update files (`pubmed*.xml.gz`), streamed: memory does not grow with a file.

The files carry new records, revisions of old ones and deletions, in the order of their names.
The date of a record is the day it came to PubMed (PubStatus `entrez`, else `received`): neither
DateRevised nor the file's name, for most records of a file are revisions of older papers.
"""

import gzip
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from lxml import etree
from pydantic import BeforeValidator, Field

from medprobe.core.errors import BadInput
from medprobe.sources.mentions import entity_text
from medprobe.sources.records import DOWNLOAD_AGAIN, Count, Record, validate

DATES = ("entrez", "received")  # by preference
RETRACTED = "Retracted Publication"  # a PublicationType


Number = Annotated[str, Field(pattern="^[0-9]{1,12}$")]


def _day(text: Any) -> Any:
    """Year, month and day of the file, as a date."""
    try:
        return date(*map(int, text.split("-"))) if isinstance(text, str) else text
    except (ValueError, OverflowError, TypeError):
        raise ValueError("a date that exists") from None


class Article(Record):
    """One record of PubMed.

    `abstract` has a text for each of its sections. `submitted` is None if the record has no date
    that counts.
    """

    pmid: Number
    version: Count
    abstract: tuple[str, ...]
    submitted: Annotated[date | None, BeforeValidator(_day)]
    retracted: bool = False


class Book(Record):
    """A record of a book or its chapter, which is no article."""

    pmid: Number


class Deletion(Record):
    """A record that PubMed deleted."""

    pmid: Number


def list_files(folder: Path) -> list[Path]:
    """List the update files of a folder, oldest first. Raises BadInput if there are none."""
    paths = sorted([*folder.glob("*.xml.gz"), *folder.glob("*.xml")], key=lambda path: path.name)
    if not paths:
        raise BadInput(folder, "contains no pubmed*.xml.gz", "put PubMed's update files there")
    return paths


def read_records(path: Path) -> Iterator[Article | Book | Deletion]:
    """Read the records of one file, in its order."""
    count = 0
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            for element in _elements(stream):
                count += 1
                yield from _parse(element, f"{path}, record {count}")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(path, f"broken gzip after record {count}: {error}", DOWNLOAD_AGAIN) from None
    except etree.XMLSyntaxError as error:
        raise BadInput(
            path, f"broken XML after record {count}: {error.msg}", DOWNLOAD_AGAIN
        ) from None


def _elements(stream: Any) -> Iterator[etree._Element]:
    """Each record's element; it is freed when the next one is read."""
    parsed = etree.iterparse(
        stream,
        events=("end",),
        tag=("PubmedArticle", "PubmedBookArticle", "DeleteCitation"),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,  # texts of ten million characters are no abstracts
    )
    for _, element in parsed:
        yield element
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def _parse(element: etree._Element, where: str) -> Iterator[Article | Book | Deletion]:
    if element.tag == "DeleteCitation":
        for pmid in element.iterfind("PMID"):
            yield validate(where, {"pmid": _text(pmid)}, Deletion)
        return
    if element.tag == "PubmedBookArticle":
        yield validate(where, {"pmid": element.findtext("BookDocument/PMID", "")}, Book)
        return
    pmid, article = (element.find(f"MedlineCitation/{name}") for name in ("PMID", "Article"))
    sections: list[Any] = [] if article is None else article.findall("Abstract/AbstractText")
    row = {
        "pmid": "" if pmid is None else _text(pmid),
        "version": "1" if pmid is None else pmid.get("Version", "1"),
        "abstract": tuple(text for part in sections if (text := _text(part))),
        "submitted": _submitted(element),
        "retracted": any(
            kind.text == RETRACTED
            for kind in element.iterfind("MedlineCitation/Article/PublicationTypeList/*")
        ),
    }
    yield validate(f"{where}, PMID {row['pmid'] or 'none'}", row, Article)


def _text(element: etree._Element) -> str:
    """All text below an element, through its tags (italics, subscripts), blanks made single."""
    return " ".join("".join(_running(element)).split())


def _running(node: etree._Element) -> Iterator[str]:
    """The text of a node and of all nodes below it. Bold labels that touch have a blank between."""
    yield node.text or ""
    for child in node:
        if child.tag is etree.Entity:
            yield entity_text(child)
        elif isinstance(child.tag, str):
            before = child.getprevious()
            if child.tag == "b" and before is not None and before.tag == "b" and not before.tail:
                yield " "
            yield from _running(child)
        yield child.tail or ""


def _submitted(element: etree._Element) -> str | None:
    """Year, month and day of the date that counts."""
    entries = {entry.get("PubStatus"): entry for entry in element.iterfind("PubmedData/History/*")}
    entry = next((entries[status] for status in DATES if status in entries), None)
    if entry is None:
        return None
    return "-".join(entry.findtext(part, "1").strip() for part in ("Year", "Month", "Day"))
