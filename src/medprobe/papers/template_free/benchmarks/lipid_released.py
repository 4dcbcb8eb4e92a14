"""LIPID as released: the prompts of `LIPID.json`, which `medprobe import lipid FILE` brings.

Source: Shaier et al., "Comparing Template-based and Template-free Language Model Probing", section
3.2.3. The candidates are the entities of the prompts, as in the paper.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.benchmarks import Benchmark, counts
from medprobe.core.tables import CANDIDATE_COLUMNS, SLOT, BenchmarkTables
from medprobe.papers.template_free import lipid as released
from medprobe.papers.template_free.benchmarks import lipid
from medprobe.papers.template_free.sentence_length import (
    TOO_LONG,
    SentenceSettings,
    is_too_long,
)

SOURCE: Final = "lipid/LIPID.json"
CUT_OFF: Final = "2021-12-31"  # the paper's: its abstracts came to PubMed later
METADATA = replace(lipid.METADATA, sources=(SOURCE,))


class Settings(SentenceSettings):
    """The longest sentence."""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    """Build both subsets in the file's order.

    Every prompt with one mask is a query, unless it is too long.

    Raises:
        BadInput: a file that is amiss.
    """
    prompts = released.read(data / SOURCE)
    rows, dropped = [], Counter[tuple[str, str]]()
    for row in prompts:
        if row.prompt.count(released.MASK) != 1 or SLOT in row.prompt:
            dropped[row.kind, "not one mask"] += 1
        elif is_too_long(row.prompt, settings.max_words):
            dropped[row.kind, TOO_LONG] += 1
        else:
            rows.append(row)
    numbers: Counter[str] = Counter()
    queries = []
    for row in rows:
        numbers[row.kind] += 1
        queries.append(
            {
                "query_id": f"lipid/{row.kind}/{numbers[row.kind]}",
                "benchmark": "lipid",
                "relation": row.kind,
                "subject": "",
                "subject_id": "",
                "prompt": row.prompt.replace(released.MASK, SLOT),
                "answers": [row.entity],
                "answer_ids": [row.entity],
                "subset": row.kind,
                "sentence": row.prompt.replace(released.MASK, row.entity),
                "cut_off": CUT_OFF,
            }
        )
    table = pd.DataFrame(queries)
    names = {(row.kind, row.entity) for row in rows}
    candidates = pd.DataFrame(
        [(entity, entity, kind, kind) for kind, entity in sorted(names)], columns=CANDIDATE_COLUMNS
    )
    rule = pd.DataFrame(
        [(*key, count) for key, count in sorted(dropped.items())],
        columns=["subset", "rule", "count"],
    )
    notes = {"dropped": rule, "appearances": lipid.appearances(table)}
    read = [
        *counts.by_name(SOURCE, "prompts", (row.kind for row in prompts)),
        *counts.by_name(SOURCE, "dropped", (kind for kind, _ in dropped.elements())),
        *counts.by_name("", "queries", table["subset"]),
    ]
    return BenchmarkTables(table, candidates, notes, {"sources": counts.table(read)})


BENCHMARK = Benchmark(METADATA, Settings, build, tables=())
