"""LIPID's prompts as released (Shaier et al., 2024), `LIPID.json`: 88,666 of them.

The release does not say how its JSON is built, so what counts is read wherever it stands: a text
with `[MASK]` is a prompt. Its entity and whether that is a chemical or a gene stand in fields
beside it, or are the names of what it stands in.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from medprobe.core.errors import BadInput, quoted

MASK: Final = "[MASK]"
KINDS: Final = ("chem", "gene")  # what the words for them begin with
PROMPTS: Final = ("prompt", "masked_sentence", "masked_sentences", "question", "sentence", "text")
ENTITIES: Final = ("entity", "answer", "obj_label", "masked_entity", "label", "object", "target")
FORM: Final = "expected objects with a prompt (a text with [MASK]), its entity, and chem or gene"


class Row(NamedTuple):
    """One prompt: `kind` is chem or gene."""

    kind: str
    prompt: str
    entity: str


def read(path: Path) -> list[Row]:
    """The prompts of a JSON or JSONL file in its order.

    Objects with fields, lists of them, tables by column, and prompts listed under their entity are
    read. Raises BadInput where there is none, and for the first one without an entity or a kind.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(path, "no such file", "run `medprobe import lipid` on LIPID.json") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "fetch the file anew") from None
    rows = []
    for number, row in enumerate(_rows(_parsed(text, path), ()), start=1):
        for name in ("kind", "entity"):
            if not getattr(row, name):
                raise BadInput(f"{path}, prompt {number}", f"{quoted(row.prompt)}: no {name}", FORM)
        rows.append(row)
    if not rows:
        raise BadInput(path, f"no text with {MASK} in it", FORM)
    return rows


def _parsed(text: str, path: Path) -> Any:
    """The file as one JSON value, or as one a line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise BadInput(path, f"not JSON: {error}", "fetch the file anew") from None


def _rows(node: Any, names: tuple[str, ...]) -> Iterator[Row]:
    """The prompts in a part of the file; `names` are those of what it stands in."""
    if isinstance(node, list):
        for one in node:
            yield from _rows(one, names)
    elif isinstance(node, str) and MASK in node:
        yield Row(_kind(names), node, names[-1] if names else "")
    elif isinstance(node, dict):
        field = next((name for name in PROMPTS if name in node), None)
        if field is None:
            for name, one in node.items():
                yield from _rows(one, (*names, name))
        elif isinstance(node[field], dict) or len(_texts(node[field])) > 1:
            yield from (row for one in _records(node) for row in _rows(one, names))
        else:
            entity = next((str(_first(node[name])) for name in ENTITIES if node.get(name)), "")
            kinds = [value for value in node.values() if isinstance(value, str)]
            yield Row(_kind((*names, *kinds)), "".join(_texts(node[field])), entity)


def _records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table that stands by column: lists, or maps from a row's name."""
    lists = {
        name: list(values.values()) if isinstance(values, dict) else values
        for name, values in columns.items()
        if isinstance(values, dict | list)
    }
    return [dict(zip(lists, row, strict=False)) for row in zip(*lists.values(), strict=False)]


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _kind(words: tuple[str, ...]) -> str:
    """The first word that says it, and only as a word of its own: not "general"."""
    for word in words:
        for kind in KINDS:
            parts = word.lower().replace("-", "_").split("_")
            if any(part in (kind, f"{kind}s", f"{kind}ical", f"{kind}icals") for part in parts):
                return kind
    return ""
