"""Rows of a Parquet file, read as a stream, and the fields that its folders give them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from medprobe.core.errors import BadInput

MOST_ROWS: Final = 10_000_000
PARTITION: Final = re.compile(r"(\w+)=(.*)")  # of a folder, as pandas, Spark and Polars name it
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # what they name a folder of rows without a value


def partition_fields(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the fields that folders give the rows of their files.

    >>> partition_fields(["data", "relation=may%20treat", f"year={NO_VALUE}"])
    {'relation': 'may treat', 'year': None}
    """
    parts = filter(None, map(PARTITION.fullmatch, folders))
    return {part[1]: None if part[2] == NO_VALUE else unquote(part[2]) for part in parts}


def read_parquet_rows(
    file: Path, largest: int | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield `(file and row, fields by name)`; a missing value is None, or NaN."""
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as table:
            groups = map(table.metadata.row_group, range(table.num_row_groups))
            size, count = sum(group.total_byte_size for group in groups), table.metadata.num_rows
            if largest and (size > largest or count > MOST_ROWS):
                problem = f"{count:,} rows of {size:,} bytes unzipped"
                limit = f"expected at most {MOST_ROWS:,} rows of {largest:,} bytes"
                raise BadInput(file, f"{problem}, {limit}", "save it as several files in a folder")
            rows = (row for batch in table.iter_batches(1000) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield f"{file}, row {number}", row
    except BadInput:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise BadInput(file, f"not parquet ({type(error).__name__})", "save it again") from None
