"""Articles of PubMed Central: JATS XML and plain text."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.sources.records import read_text
from medprobe.sources.texts import GET, Document, files, keep_nonempty

LEFT_OUT: Final = {  # parts of a paragraph that are not running text
    "disp-formula",
    "fig",
    "inline-formula",
    "table-wrap",
    "tex-math",
    "xref",
}


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read articles: titles, abstract and body, paragraph by paragraph.

    Args:
        path: a folder of `.xml`, `.nxml` and `.txt` files, or one file.
        skipped: counts articles without text, which are left out.

    Yields:
        Documents. An id is the article's PMC or PubMed number, otherwise the file's name.

    Raises:
        BadInput: broken XML, with file and line.
    """
    for file in files(path, (".xml", ".nxml", ".txt")):
        if file.suffix.lower() == ".txt":
            yield from keep_nonempty(Document(file.stem, _plain(file)), skipped)
            continue
        for article in _root(file).iter("{*}article"):
            yield from keep_nonempty(
                Document(_identifier(article) or file.stem, _text(article)), skipped
            )


def _root(file: Path) -> Any:
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
    )
    try:
        return etree.parse(file, parser).getroot()
    except OSError as error:  # lxml's error for a broken encoding
        reason = str(error).rpartition(": ")[2]
        raise BadInput(file, f"cannot be read ({reason})", "download the article again") from None
    except etree.XMLSyntaxError as error:
        where = f"{file}, line {error.lineno or 1}"
        reason = str(error.msg).split(", line ", maxsplit=1)[0]
        raise BadInput(where, f"broken XML ({reason})", "download the article again") from None


def _identifier(article: Any) -> str:
    numbers = {
        number.get("pub-id-type"): (number.text or "").strip()
        for number in article.iterfind("{*}front/{*}article-meta/{*}article-id")
    }
    return next((numbers[kind] for kind in ("pmc", "pmcid", "pmid") if numbers.get(kind)), "")


def _text(article: Any) -> str:
    parts = [
        *article.iterfind("{*}front/{*}article-meta/{*}title-group/{*}article-title"),
        *article.iterfind("{*}front/{*}article-meta/{*}abstract"),
        *article.iterfind("{*}body"),
    ]
    return "\n".join(block for part in parts for block in _blocks(part))


def _blocks(part: Any) -> Iterator[str]:
    """The text of each title and paragraph; nested ones are read once."""
    name = _name(part)
    if name in ("p", "title", "article-title"):
        yield "".join(_running(part))
    elif name not in LEFT_OUT:
        for child in part:
            yield from _blocks(child)


def _running(node: Any) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        if _name(child) not in LEFT_OUT and _name(child):
            yield from _running(child)
        yield child.tail or ""


def _name(node: Any) -> str:
    """The element's name without its namespace; "" for processing instructions and entities."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _plain(file: Path) -> str:
    """A text file; in PubMed Central's text format only the part between `Body` and `Refs`."""
    content = read_text(file, GET)
    body = content.partition("\n==== Body\n")[2] or content
    return body.partition("\n==== Refs\n")[0]
