"""Files of JSON objects, one a line."""

import json
from pathlib import Path
from typing import Any


def write_lines(path: Path, *rows: dict[str, Any]) -> None:
    """Write an object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
