"""Articles of PubMed Central: JATS XML and plain text."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree
from lxml.etree import Entity

from medprobe.core.errors import BadInput
from medprobe.papers.context.texts import GET, Document, files, keep_nonempty
from medprobe.sources.entity_names import entity_text
from medprobe.sources.records import read_text

LEFT_OUT: Final = {  # parts of an article that are not running text
    *("disp-formula", "disp-formula-group", "fig", "fig-group", "inline-formula"),
    *("table-wrap", "table-wrap-group", "tex-math"),
}
POINTERS: Final = {  # kinds of xref whose text is a number or label; others are words of the text
    *("aff", "app", "author-notes", "award", "bibr", "boxed-text", "chem", "contrib", "corresp"),
    *("disp-formula", "fig", "fn", "media", "plate", "scheme", "sec", "statement"),
    *("supplementary-material", "table", "table-fn"),
}
INLINE: Final = {  # elements within a word or a line; what is no such element ends a word
    *("abbrev", "bold", "email", "ext-link", "fixed-case", "hr", "institution", "italic"),
    *("milestone-end", "milestone-start", "monospace", "named-content", "overline", "roman"),
    *("sans-serif", "sc", "strike", "styled-content", "sub", "sup", "underline", "uri", "xref"),
}


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read articles: titles, abstract and body, paragraph by paragraph.

    Args:
        path: a folder of `.xml`, `.nxml` and `.txt` files, or one file.
        skipped: counts articles without text, which are left out, and elements of articles that
            are not running text, by their names.

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
                Document(_identifier(article) or file.stem, _text(article, skipped)), skipped
            )


def _root(file: Path) -> Any:
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


def _text(article: Any, skipped: Counter[str]) -> str:
    parts = [
        *article.iterfind("{*}front/{*}article-meta/{*}title-group/{*}article-title"),
        *article.iterfind("{*}front/{*}article-meta/{*}abstract"),
        *article.iterfind("{*}body"),
    ]
    return "\n".join(block for part in parts for block in _blocks(part, skipped))


def _blocks(part: Any, skipped: Counter[str]) -> Iterator[str]:
    """The text of each element that has text of its own; nested ones are read once."""
    if _is_left_out(part):
        skipped[f"element {_name(part)}"] += 1
    elif (part.text or "").strip() or any((child.tail or "").strip() for child in part):
        yield "".join(_running(part, skipped))
    else:
        for child in part:
            yield from _blocks(child, skipped)


def _running(node: Any, skipped: Counter[str]) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        if child.tag is Entity:
            yield entity_text(child)
        elif _is_left_out(child):
            skipped[f"element {_name(child)}"] += 1
        elif name := _name(child):
            end = "" if name in INLINE else " "
            yield end
            yield from _running(child, skipped)
            yield end
        yield child.tail or ""


def _is_left_out(node: Any) -> bool:
    name = _name(node)
    return name in LEFT_OUT or (name == "xref" and node.get("ref-type") in POINTERS)


def _name(node: Any) -> str:
    """The element's name without its namespace; "" for processing instructions and entities."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _plain(file: Path) -> str:
    """A text file; in PubMed Central's text format only the part between `Body` and `Refs`."""
    content = read_text(file, GET)
    body = content.partition("\n==== Body\n")[2] or content
    return body.partition("\n==== Refs\n")[0]
