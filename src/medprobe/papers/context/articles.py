"""Articles of PubMed Central: JATS XML and plain text."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree
from lxml.etree import Entity

from medprobe.core.errors import BadInput
from medprobe.papers.context.texts import GET, Document, Reader, unzipped
from medprobe.sources.mentions import entity_text
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


def _read_file(file: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read the articles of a file: titles, abstract and body, paragraph by paragraph.

    Elements that are not running text, and parts in another language than English, are counted by
    their names.
    """
    name = unzipped(file)
    if name.suffix == ".txt":
        yield Document(name.stem, _plain(file), place=str(file))
        return
    for article in _root(file).iter("{*}article"):
        place = f"{file}, line {article.sourceline}"
        yield Document(_identifier(article) or name.stem, _text(article, skipped), place=place)


read: Final = Reader(_read_file, (".xml", ".nxml", ".txt"))


def _root(file: Path) -> Any:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
    )
    opened: Any = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rb") as stream:
            return etree.parse(stream, parser).getroot()
    except (OSError, EOFError, zlib.error) as error:  # OSError: lxml's for a broken encoding, too
        reason = str(error).rpartition(": ")[2]
        raise BadInput(file, f"cannot be read ({reason})", "download the article again") from None
    except etree.XMLSyntaxError as error:
        where = f"{file}, line {error.lineno or 1}"
        reason = str(error.msg).split(", line ", maxsplit=1)[0]
        raise BadInput(where, f"broken XML ({reason})", "download the article again") from None


def _identifier(article: Any) -> str:
    numbers = {
        number.get("pub-id-type"): (number.text or "").strip().removeprefix("PMC")
        for number in article.iterfind("{*}front/{*}article-meta/{*}article-id")
    }
    return next((numbers[kind] for kind in ("pmc", "pmcid", "pmid") if numbers.get(kind)), "")


def _text(article: Any, skipped: Counter[str]) -> str:
    parts = [
        *article.iterfind("{*}front/{*}article-meta/{*}title-group/{*}article-title"),
        *article.iterfind("{*}front/{*}article-meta/{*}abstract"),
        *article.iterfind("{*}body"),
    ]
    english = [part for part in parts if _is_english(part)]
    skipped.update(f"{_name(part)} in another language" for part in {*parts} - {*english})
    return "\n".join(block for part in english for block in _blocks(part, skipped))


def _is_english(part: Any) -> bool:
    """Whether the nearest `xml:lang` says so, or there is none."""
    languages = part.xpath("ancestor-or-self::*/@xml:lang")
    return not languages or languages[-1].lower().startswith("en")


def _blocks(part: Any, skipped: Counter[str]) -> Iterator[str]:
    """The text of each element that has text of its own; nested ones are read once."""
    if _is_left_out(part):
        skipped[f"element {_name(part)}"] += 1
    elif (part.text or "").strip() or any(map(_is_text, part)):
        yield "".join(_running(part, skipped))
    else:
        for child in part:
            yield from _blocks(child, skipped)


def _is_text(child: Any) -> bool:
    """Whether a child is a character of its parent's own text, or stands before some."""
    return child.tag is Entity or bool((child.tail or "").strip())


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
