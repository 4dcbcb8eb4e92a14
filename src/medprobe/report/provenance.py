"""How the results of a page were computed: versions, times, devices.

They are in a separate script, so that the page itself is the same for the same inputs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import pandas as pd

from medprobe.report.numbers import table_of

NAME: Final = "provenance.js"
CAPTION: Final = "If a stage was stopped and resumed, the figures cover its last run only"


def script(state: Sequence[str], results: Mapping[str, pd.DataFrame]) -> str:
    """Write the script that the page opens.

    Args:
        state: facts about the whole page, such as its commit.
        results: by benchmark, a table with one row per result; a column with one value moves to the
            caption.
    """
    tables = {name: asdict(table_of(table, CAPTION)) for name, table in results.items()}
    content = {"state": [*state], "results": tables}
    return f"showProvenance({json.dumps(content, ensure_ascii=False, allow_nan=False)});\n"
