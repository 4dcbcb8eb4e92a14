"""What a reader sees of some parts of the page, and snapshots of it.

A snapshot holds the titles, tables and drawings of a chapter or some parts, without their prose.
`MEDPROBE_SNAPSHOTS=write pytest tests/report/test_leaderboard.py` rewrites those of a test file;
read the diff before you commit it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence

from helpers import FIXTURES
from medprobe.report.blocks import (
    Block,
    Cell,
    Chapter,
    Choice,
    Drawing,
    Folded,
    Links,
    Part,
    Table,
)
from medprobe.report.page import render
from medprobe.report.page_data import PageData

PAGES = FIXTURES / "pages"


def html(results: PageData, parts: Sequence[Part]) -> str:
    """The HTML of a chapter with these parts."""
    page = render(results, [Chapter("chapter", "Chapter", [], parts)])
    return page[page.index('<section class="chapter"') : page.index("</main>")]


def check_snapshot(name: str, shown_blocks: Iterable[Chapter | Part | Block]) -> None:
    """Compare the numbers of chapters, parts or blocks with the snapshot of this name."""
    path = PAGES / f"{name}.txt"
    text = "".join(f"{x}\n" for block in shown_blocks for x in lines(block) if x[:1] in "#>|[")
    if os.environ.get("MEDPROBE_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def lines(block: Chapter | Part | Block) -> Iterator[str]:
    """The text of a chapter, part or block: a line per row of a table, notes in brackets."""
    if isinstance(block, Chapter | Part | Folded):
        mark = {Chapter: "#", Part: "##", Folded: ">"}[type(block)]
        yield f"{mark} {block.summary if isinstance(block, Folded) else block.title}"
        yield from block.about if isinstance(block, Chapter) else ()
        for inner in block.parts if isinstance(block, Chapter) else block.blocks:
            yield from lines(inner)
    elif isinstance(block, Choice):
        for name, table in block.tables.items():
            yield f"> {block.label}: {name}"
            yield from lines(table)
    elif isinstance(block, Table):
        yield from [block.caption] if block.caption else []
        for row in (block.heads, *block.rows):
            yield f"| {' | '.join(map(cell_text, row))} |"
    elif isinstance(block, Drawing | Links):
        yield f"[{block.file if isinstance(block, Drawing) else type(block).__name__.lower()}]"
    else:
        yield block.text


def cell_text(cell: str | Cell) -> str:
    """A cell and its note in one line."""
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({'; '.join(cell.note.splitlines())})" if cell.note else cell.text
