"""What commands print by `--json`: one object per command, documented in reference/scripts.md."""

import json
import math
from typing import Any


def to_json(content: Any) -> str:
    """Format an object of a command; named tuples are objects, and what is no number is null.

    >>> to_json({"low": float("nan")})
    '{\\n "low": null\\n}'
    """
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(content: Any) -> Any:
    if hasattr(content, "_asdict"):
        content = content._asdict()
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if hasattr(content, "item"):  # numpy's numbers
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content
