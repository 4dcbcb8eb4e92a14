"""LIPID's prompts as released (Shaier et al., 2024), `LIPID.json`: 88,666 of them.

The paper does not say how its JSON is built. One format is read: objects with `type`, `prompt` and
`answer`, in a list or one per line. Convert other formats first.
"""

import re
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.sources.records import Name, Record, parse_json, read_text, validate

MASK: Final = "[MASK]"
FORM: Final = "expected objects with type (chem or gene), prompt (a text with [MASK]) and answer"


class LipidPrompt(Record):
    """One prompt, of a chemical or a gene."""

    kind: Literal["chem", "gene"] = Field(alias="type")
    prompt: Name = Field(pattern=re.escape(MASK))
    entity: Name = Field(alias="answer")


def read(path: Path) -> list[LipidPrompt]:
    """Read the prompts of a JSON or JSONL file, in its order.

    Raises:
        BadInput: the file has no prompts, or a prompt has another format.
    """
    content = read_text(path, "run `medprobe import lipid` on LIPID.json").strip()
    if content.startswith("["):
        values = parse_json(path, content)
    else:
        lines = [line for line in content.split("\n") if line.strip()]
        values = [parse_json(f"{path}, prompt {n}", line) for n, line in enumerate(lines, 1)]
    prompts = [
        validate(f"{path}, prompt {n}", row, LipidPrompt, FORM) for n, row in enumerate(values, 1)
    ]
    if not prompts:
        raise BadInput(path, "contains no prompts", FORM)
    return prompts
