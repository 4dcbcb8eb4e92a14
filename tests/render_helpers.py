"""What a reader sees of some parts of the page, and snapshots of it.

A snapshot is the text of a chapter or some parts, kept in tests/fixtures/pages and compared whole.
`MEDPROBE_SNAPSHOTS=write pytest tests/test_leaderboard.py` rewrites those of a test file; read the
diff before you commit it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from medprobe.figures.rows import Drawing
from medprobe.report.blocks import Block, Cell, Chapter, Choice, Folded, Links, Part, Table
from medprobe.report.page import render
from medprobe.report.results import Results

PAGES = Path(__file__).parent / "fixtures" / "pages"


def html(results: Results, parts: Sequence[Part]) -> str:
    """The HTML of a chapter with these parts."""
    page = render(results, [Chapter("chapter", "Chapter", [], parts)])
    return page[page.index('<section class="chapter"') : page.index("</main>")]


def check_snapshot(name: str, shown: Iterable[Chapter | Part | Block]) -> None:
    """Compare the text of chapters, parts or blocks with the snapshot of this name."""
    path, text = PAGES / f"{name}.txt", "".join(f"{x}\n" for one in shown for x in lines(one))
    if os.environ.get("MEDPROBE_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def lines(one: Chapter | Part | Block) -> Iterator[str]:
    """The text of a chapter, part or block: a line per row of a table, notes in brackets."""
    if isinstance(one, Chapter | Part | Folded):
        mark = {Chapter: "#", Part: "##", Folded: ">"}[type(one)]
        yield f"{mark} {one.summary if isinstance(one, Folded) else one.title}"
        yield from one.about if isinstance(one, Chapter) else ()
        for inner in one.parts if isinstance(one, Chapter) else one.blocks:
            yield from lines(inner)
    elif isinstance(one, Choice):
        for name, table in one.tables.items():
            yield f"> {one.asks}: {name}"
            yield from lines(table)
    elif isinstance(one, Table):
        yield from [one.caption] if one.caption else []
        for row in (one.heads, *one.rows):
            yield f"| {' | '.join(map(cell_text, row))} |"
    elif isinstance(one, Drawing | Links):
        yield f"[{one.file if isinstance(one, Drawing) else type(one).__name__.lower()}]"
    else:
        yield one.text


def cell_text(cell: str | Cell) -> str:
    """A cell and its note in one line."""
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({'; '.join(cell.note.splitlines())})" if cell.note else cell.text
