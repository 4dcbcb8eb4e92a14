"""What the page is made of, before it is HTML: the sections give blocks, a template shows them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr


@dataclass(frozen=True)
class Drawing:
    """A drawing, its name, and its caption, which is also what a screen reader says."""

    name: str
    plot: str  # of plots.py
    caption: str

    @property
    def svg(self) -> str:
        """The drawing as it is on the page and in its file."""
        return self.plot.replace("<svg ", f"<svg aria-label={quoteattr(self.caption)} ", 1)

    @property
    def file(self) -> str:
        """The name of its file.

        >>> Drawing("medlama-contrastive:original-lengths", "<svg/>", "").file
        'medlama-contrastive-original-lengths.svg'
        """
        return re.sub(r"[^\w.-]+", "-", self.name) + ".svg"

    def _repr_svg_(self) -> str:
        """How a notebook shows it."""
        return self.svg


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    It has a text, the number it is sorted by, how strongly it is shaded (0 to 1), and a note in
    small letters below.
    """

    text: str
    sort: float | None = None
    shade: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table whose columns sort by a click on their heads."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Tag:
    """A small heading, such as a subset's name."""

    text: str


@dataclass(frozen=True)
class Links:
    """A list of links: `(address, title)`."""

    links: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Folded:
    """Blocks that open by a click."""

    summary: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True)
class Choice:
    """Tables of which one is shown, chosen by its name; the first is shown first."""

    label: str  # of the menu, such as "method"
    tables: Mapping[str, Table]


@dataclass(frozen=True)
class Part:
    """A part of a chapter."""

    title: str
    blocks: "Sequence[Block]"


Block = Table | Drawing | Paragraph | Tag | Links | Folded | Choice


@dataclass(frozen=True)
class Chapter:
    """A chapter of the page.

    Attributes:
        name: its anchor.
        title: its heading.
        about: lines printed below the heading.
        parts: what it contains.
        folds: whether parts after the first open by a click.
    """

    name: str
    title: str
    about: Sequence[str]
    parts: Sequence[Part]
    folds: bool = False


def anchor(title: str) -> str:
    """A part's place in the address.

    >>> anchor("Calibration: against the truth")
    'calibration-against-the-truth'
    """
    return "-".join(re.findall(r"\w+", title.lower()))


def paragraph(*sentences: str) -> list[Block]:
    """A paragraph; empty if no sentence has words.

    >>> paragraph("Two models.", "", "One is better.")
    [Paragraph(text='Two models. One is better.')]
    """
    text = " ".join(sentence for sentence in sentences if sentence)
    return [Paragraph(text)] if text else []


def folded(summary: str, blocks: Sequence[Block]) -> list[Block]:
    """Blocks that open by a click; empty if there are none."""
    return [Folded(summary, blocks)] if blocks else []


def part(title: str, *blocks: Iterable[Block]) -> list[Part]:
    """A part of a chapter made of these lists of blocks; empty if they are."""
    together = [block for group in blocks for block in group]
    return [Part(title, together)] if together else []


def drawings(blocks: Iterable[Part | Block]) -> dict[str, str]:
    """All drawings among parts or blocks, the folded ones too: the name of the file -> SVG."""
    svgs: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Part | Folded):
            svgs |= drawings(block.blocks)
        elif isinstance(block, Drawing):
            svgs[block.file] = block.svg
    return svgs
