"""Articles of PubMed Central: JATS XML and plain text."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.sources.records import text
from medprobe.sources.texts import GET, Document, files, kept

LEFT_OUT: Final = {  # parts of a paragraph that are no running text
    "disp-formula",
    "fig",
    "inline-formula",
    "table-wrap",
    "tex-math",
    "xref",
}


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The articles of a folder of `.xml`, `.nxml` and `.txt` files (or of one file): titles,
    abstract and body, paragraph by paragraph. An id is the article's PMC or PubMed number, else
    the file's name.

    Articles without text are left out and counted in `skipped`. Raises BadInput with the file and
    line of broken XML.
    """
    for file in files(path, (".xml", ".nxml", ".txt")):
        if file.suffix.lower() == ".txt":
            yield from kept(Document(file.stem, _plain(file)), skipped)
            continue
        for article in _root(file).iter("{*}article"):
            yield from kept(Document(_identifier(article) or file.stem, _text(article)), skipped)


def _root(file: Path) -> Any:
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
    )
    try:
        return etree.parse(file, parser).getroot()
    except OSError as error:  # so lxml says that an encoding is broken
        reason = str(error).rpartition(": ")[2]
        raise BadInput(file, f"cannot be read ({reason})", "fetch the article anew") from None
    except etree.XMLSyntaxError as error:
        where = f"{file}, line {error.lineno or 1}"
        reason = str(error.msg).split(", line ", maxsplit=1)[0]
        raise BadInput(where, f"broken XML ({reason})", "fetch the article anew") from None


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
    """The text of each title and paragraph; one inside another is read once."""
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
    """A text file; of PubMed Central's own text form the part between `Body` and `Refs`."""
    content = text(file, GET)
    body = content.partition("\n==== Body\n")[2] or content
    return body.partition("\n==== Refs\n")[0]
