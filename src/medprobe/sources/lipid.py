"""LIPID's prompts as released (Shaier et al., 2024), `LIPID.json`: 88,666 of them.

The paper does not say how its JSON is built. One form is read: objects with `type`, `prompt` and
`answer`, in a list or one per line. Another form is an error that says so; convert it first.
"""

import re
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, checked, json_value, text

MASK: Final = "[MASK]"
FORM: Final = "expected objects with type (chem or gene), prompt (a text with [MASK]) and answer"


class Row(Record):
    """One prompt, of a chemical or a gene."""

    kind: Literal["chem", "gene"] = Field(alias="type")
    prompt: Name = Field(pattern=re.escape(MASK))
    entity: Name = Field(alias="answer")


def read(path: Path) -> list[Row]:
    """The prompts of a JSON or JSONL file, in its order.

    Raises BadInput for a file without prompts and for the first one of another form.
    """
    content = text(path, "run `medprobe import lipid` on LIPID.json").strip()
    if content.startswith("["):
        values = json_value(path, content)
    else:
        lines = [line for line in content.split("\n") if line.strip()]
        values = [json_value(f"{path}, prompt {n}", line) for n, line in enumerate(lines, 1)]
    rows = [checked(f"{path}, prompt {n}", row, Row, FORM) for n, row in enumerate(values, 1)]
    if not rows:
        raise BadInput(path, "no prompt in it", FORM)
    return rows
