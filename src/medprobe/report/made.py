"""What a page says of its own making: versions, times, devices. It stands in a script beside the
page, which itself is the same for the same inputs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import pandas as pd

from medprobe.report.numbers import table_of

NAME: Final = "made.js"
CAPTION: Final = "For a stage that was stopped and resumed, the figures cover its last run only"


def script(state: Sequence[str], results: Mapping[str, pd.DataFrame]) -> str:
    """`state` in words, and a table a benchmark with a row a result; what is the same for all of
    them stands in its caption."""
    tables = {name: asdict(table_of(table, CAPTION)) for name, table in results.items()}
    content = {"state": [*state], "results": tables}
    return f"made({json.dumps(content, ensure_ascii=False, allow_nan=False)});\n"
