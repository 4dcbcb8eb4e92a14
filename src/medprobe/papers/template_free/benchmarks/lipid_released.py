"""LIPID as released: the prompts of `LIPID.json`, which `medprobe import lipid FILE` brings.

Source: Shaier et al., "Comparing Template-based and Template-free Language Model Probing", section
3.2.3. The candidates are the entities of the prompts, as in the paper. It does not say how its JSON
of 88,666 prompts is built. One format is read: objects with `type`, `prompt` and `answer`, in a
list or one per line. Convert other formats first.
"""

import re
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
    """Read the prompts of a JSON or JSONL file, in its order."""
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
    """
    prompts = pd.DataFrame([row.model_dump() for row in read(data / SOURCE)])
    texts, rule = prompts["prompt"], pd.Series("", prompts.index)
    rule[[is_too_long(text, settings.max_words) for text in texts]] = TOO_LONG
    rule[[text.count(MASK) != 1 or SLOT in text for text in texts]] = "not one mask"
    rows = prompts[rule == ""].reset_index(drop=True)
    kind, names = rows["kind"], [[name] for name in rows["entity"]]
    number = rows.groupby("kind").cumcount() + 1
    sentences = zip(rows["prompt"], rows["entity"], strict=True)
    queries = pd.DataFrame(
        {
            "query_id": "lipid/" + kind + "/" + number.astype(str),
            "benchmark": "lipid",
            "relation": kind,
            "subject": "",
            "subject_id": "",
            "prompt": rows["prompt"].str.replace(MASK, SLOT, regex=False),
            "answers": names,
            "answer_ids": names,
            "subset": kind,
            "sentence": [prompt.replace(MASK, name) for prompt, name in sentences],
            "cut_off": CUT_OFF,
        }
    )
    listed = rows[["kind", "entity"]].drop_duplicates().sort_values(["kind", "entity"])
    columns = ["entity", "entity", "kind", "kind"]
    candidates = listed[columns].set_axis(CANDIDATE_COLUMNS, axis=1).reset_index(drop=True)
    left_out = prompts.assign(rule=rule)[rule != ""]
    dropped = left_out.groupby(["kind", "rule"]).size().rename_axis(["subset", "rule"])
    notes = {
        "dropped": dropped.reset_index(name="count"),
        "appearances": lipid.appearances(queries),
    }
    counted = [
        *counts.by_name(SOURCE, "prompts", prompts["kind"]),
        *counts.by_name(SOURCE, "dropped", left_out["kind"]),
        *counts.by_name("", "queries", kind),
    ]
    return BenchmarkTables(queries, candidates, notes, {"sources": counts.table(counted)})


BENCHMARK = Benchmark(METADATA, Settings, build, tables=())
