"""What released code gives on invented inputs, and the table of how far ours agrees.

The inputs stand in `tests/fixtures/parity`, or in another folder of the same shape that the
environment variable MEDPROBE_PARITY names: nothing here may be fitted to one of them.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers import FIXTURES, ROOT
from medprobe.core.params import EngineParams
from medprobe.engine.load import Head, Model, load

OWN_FOLDER = FIXTURES / "parity"
FOLDER = Path(os.environ.get("MEDPROBE_PARITY") or OWN_FOLDER)
ENGINE = EngineParams(device="cpu")
DOCUMENT = ROOT / "docs/reference/papers.md"
HEADING = "## Parity with the released code"


def read(item: str, name: str) -> Any:
    """A file of one item, such as `xfactr/outputs.json`."""
    return json.loads((FOLDER / item / f"{name}.json").read_text(encoding="utf-8"))


def folder(name: str) -> Path:
    """The checkpoint of a tiny model."""
    return FOLDER / "models" / name


def model(name: str, head: Head) -> Model:
    """A tiny model, loaded as every method loads it."""
    return load(folder(name), head, ENGINE)


@dataclass(frozen=True)
class Row:
    """One row of the documented table: of `n` things compared, how many agree."""

    method: str
    compared: str
    n: int
    ours: int | None  # by default settings; none: not the same quantity
    released: int | None  # by the settings that are as released

    def line(self) -> str:
        """The row as it stands in the document."""
        shares = [
            "–" if count is None else "all" if count == self.n else f"{count:,}"
            for count in (self.ours, self.released)
        ]
        return f"| {self.method} | {self.compared} | {self.n:,} | {' | '.join(shares)} |"


def check_document(rows: list[Row]) -> None:
    """The document has these rows, and no other ones of their methods."""
    if FOLDER != OWN_FOLDER:
        pytest.skip("the document tells of the project's own set")
    section = DOCUMENT.read_text(encoding="utf-8").split(HEADING)[1]
    methods = {row.method for row in rows}
    documented = [
        line
        for line in section.splitlines()
        if (m := re.match(r"\| (.+?) \|", line)) and m[1] in methods
    ]
    expected = [row.line() for row in rows]
    assert documented == expected, "the document should say:\n" + "\n".join(expected)
