"""LIPID as released: the prompts of `LIPID.json`, which `medprobe import lipid FILE` brings.

Source: Shaier et al., "Comparing Template-based and Template-free Language Model Probing", section
3.2.3. The candidates are the entities of the prompts, as in the paper. It does not say how its JSON
of 88,666 prompts is built. One format is read: objects with `type`, `prompt` and `answer`, in a
list or one per line. Convert other formats first.
"""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pandas as pd
from pydantic import Field

from medprobe.benchmarks import Benchmark, counts
from medprobe.core.errors import BadInput
from medprobe.core.tables import CANDIDATE_COLUMNS, SLOT, BenchmarkTables
from medprobe.papers.template_free.benchmarks import lipid
from medprobe.papers.template_free.entities import (
    TOO_LONG,
    SentenceSettings,
    is_too_long,
)
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
    prompts = read(data / SOURCE)
    rows, dropped = [], Counter[tuple[str, str]]()
    for row in prompts:
        if row.prompt.count(MASK) != 1 or SLOT in row.prompt:
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
                "prompt": row.prompt.replace(MASK, SLOT),
                "answers": [row.entity],
                "answer_ids": [row.entity],
                "subset": row.kind,
                "sentence": row.prompt.replace(MASK, row.entity),
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
    counted = [
        *counts.by_name(SOURCE, "prompts", (row.kind for row in prompts)),
        *counts.by_name(SOURCE, "dropped", (kind for kind, _ in dropped.elements())),
        *counts.by_name("", "queries", table["subset"]),
    ]
    return BenchmarkTables(table, candidates, notes, {"sources": counts.table(counted)})


BENCHMARK = Benchmark(METADATA, Settings, build, tables=())
