"""PubMed's update files (`pubmed*.xml.gz`), streamed: memory does not grow with a file.

The files carry new records, revisions of old ones and deletions, in the order of their names.
The date of a record is the day it came to PubMed (PubStatus `entrez`, else `received`): neither
DateRevised nor the file's name, for most records of a file are revisions of older papers.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from lxml import etree

from medprobe.core.errors import BadInput, quoted

DATES = ("entrez", "received")  # by preference


@dataclass(frozen=True)
class Article:
    """One record: `abstract` has a text for each of its sections, `submitted` is None where the
    record has no date that counts."""

    pmid: str
    version: int
    title: str
    abstract: tuple[str, ...]
    submitted: date | None


@dataclass(frozen=True)
class Deletion:
    """A record that PubMed took back."""

    pmid: str


def files(folder: Path) -> list[Path]:
    """The update files of a folder, oldest first. Raises BadInput where there is none."""
    found = sorted([*folder.glob("*.xml.gz"), *folder.glob("*.xml")], key=lambda path: path.name)
    if not found:
        raise BadInput(folder, "no pubmed*.xml.gz in it", "put PubMed's update files there")
    return found


def records(path: Path) -> Iterator[Article | Deletion]:
    """The records of one file in its order.

    Raises BadInput with the file and the record where the file is broken: cut or damaged gzip,
    XML that is not well formed, a record without a PMID, a date that does not exist.
    """
    count = 0
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            for element in _elements(stream):
                count += 1
                yield from _read(element, f"{path}, record {count}")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(
            path, f"broken gzip after record {count}: {error}", "fetch the file anew"
        ) from None
    except etree.XMLSyntaxError as error:
        raise BadInput(
            path, f"broken XML after record {count}: {error.msg}", "fetch the file anew"
        ) from None


def _elements(stream: Any) -> Iterator[etree._Element]:
    """Each record's element, forgotten as soon as the next one is asked for."""
    parsed = etree.iterparse(
        stream,
        events=("end",),
        tag=("PubmedArticle", "DeleteCitation"),
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


def _read(element: etree._Element, where: str) -> Iterator[Article | Deletion]:
    if element.tag == "DeleteCitation":
        yield from (Deletion((pmid.text or "").strip()) for pmid in element.iterfind("PMID"))
        return
    pmid = element.find("MedlineCitation/PMID")
    number = "" if pmid is None else (pmid.text or "").strip()
    if pmid is None or not number.isdigit():
        raise BadInput(where, "no PMID", "expected a number in MedlineCitation/PMID")
    article = element.find("MedlineCitation/Article")
    sections: list[Any] = [] if article is None else article.findall("Abstract/AbstractText")
    title = None if article is None else article.find("ArticleTitle")
    yield Article(
        number,
        _version(pmid, where),
        "" if title is None else _text(title),
        tuple(text for part in sections if (text := _text(part))),
        _submitted(element, f"{where}, PMID {number}"),
    )


def _version(pmid: etree._Element, where: str) -> int:
    version = pmid.get("Version", "1")
    if not (version.isascii() and version.isdecimal()):
        raise BadInput(f"{where}, PMID {pmid.text}", f"Version is {quoted(version)}, no number")
    return int(version[:9])


def _text(element: etree._Element) -> str:
    """All text below an element, through its tags (italics, subscripts), blanks made single."""
    return " ".join("".join(element.itertext(etree.Element, etree.Entity)).split())


def _submitted(element: etree._Element, where: str) -> date | None:
    found = {entry.get("PubStatus"): entry for entry in element.iterfind("PubmedData/History/*")}
    entry = next((found[status] for status in DATES if status in found), None)
    if entry is None:
        return None
    parts = [entry.findtext(part, "1").strip() for part in ("Year", "Month", "Day")]
    try:
        return date(*(int(part) for part in parts))
    except ValueError:
        raise BadInput(where, f"no such date: {quoted('-'.join(parts))}") from None
