"""Pieces of HTML that the sections are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Cell:
    """A table's cell: its text, the number it is sorted by, how strongly it is shaded (0 to 1)."""

    text: str
    sort: float | None = None
    shade: float | None = None


def table(header: Sequence[str], rows: Iterable[Sequence[str | Cell]], caption: str = "") -> str:
    """A table whose columns sort by a click on their heads. Texts are escaped."""
    head = "".join(f'<th scope="col"><button>{escape(name)}</button></th>' for name in header)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    number = "" if cell.sort is None else f' class="number" data-sort="{cell.sort:.6g}"'
    shade = "" if cell.shade is None else f' style="--shade:{100 * cell.shade:.0f}%"'
    return f"<td{number}{shade}>{escape(cell.text)}</td>"


def figure(svg: str, caption: str) -> str:
    """A drawing with its caption, which is also what a screen reader says."""
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def paragraph(*sentences: str) -> str:
    """A paragraph of escaped sentences, or nothing."""
    text = " ".join(sentence for sentence in sentences if sentence)
    return f"<p>{escape(text)}</p>" if text else ""


def folded(summary: str, content: str) -> str:
    """Content that opens by a click."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def section(title: str, content: str) -> str:
    """A part of a benchmark's chapter, or nothing where there is no content."""
    return f"<section><h3>{escape(title)}</h3>{content}</section>" if content else ""
