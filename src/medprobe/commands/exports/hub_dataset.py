"""A benchmark as a data set that the library `datasets` loads: parquet files and a card."""

from pathlib import Path
from typing import Any, Final

import yaml

from medprobe.commands.exports import Exported
from medprobe.core.tables import CANDIDATE_COLUMNS, QUERY_COLUMNS, write_table

QUERIES: Final = "queries"
CANDIDATES: Final = "candidates"


def write(benchmark: Exported, folder: Path) -> None:
    """Write a parquet file for each table, and README.md, whose head names them."""
    tables = benchmark.tables
    write_table(tables.queries, folder / f"{QUERIES}.parquet", QUERY_COLUMNS)
    write_table(tables.candidates, folder / f"{CANDIDATES}.parquet", CANDIDATE_COLUMNS)
    for name, table in tables.others.items():
        write_table(table, folder / f"{name}.parquet", [])
    (folder / "README.md").write_text(_card(benchmark), encoding="utf-8")


def _card(benchmark: Exported) -> str:
    about = benchmark.metadata
    names = [QUERIES, CANDIDATES, *benchmark.tables.others]
    configs = [
        {
            "config_name": name,
            "data_files": [{"split": "test", "path": f"{name}.parquet"}],
            **({"default": True} if name == QUERIES else {}),
        }
        for name in names
    ]
    head: dict[str, Any] = {
        "pretty_name": benchmark.name,
        "language": ["en"],
        "license": "other" if about.terms == "open" else "unknown",  # in the words of the hub
        "tags": ["biology", "medical", "knowledge probing"],
        "configs": configs,
    }
    subsets = "\n".join(
        f"| {subset} | {len(queries)} | {queries['relation'].nunique()} | {len(names)} |"
        for subset, queries, names in benchmark.tables.subsets()
    )
    return f"""---
{yaml.safe_dump(head, sort_keys=False)}---
# {benchmark.name}: {about.description}

| subset | queries | relations | candidates |
| --- | --- | --- | --- |
{subsets}

- `queries`: `prompt` has one slot `[Y]`. All `answers` are right; those of one `answer_ids` are
  names of one thing. Rank the candidates of the query's `subset`.
- `candidates`: the names to rank. Those of the type `distractor` are in some measurements only.

Two texts are equal by the rule `{benchmark.tables.normalise}`. The main metric is
`{about.primary_metric}`, the mean over relations; chance draws the queries of one `{about.cluster}`
together.

```python
from datasets import load_dataset

queries = load_dataset("FOLDER", "queries", split="test")
candidates = load_dataset("FOLDER", "candidates", split="test")
```

Citation: {about.citation}

Licence: {about.licence}
"""
