"""Contexts of BioLAMA's triples, which have no CUIs: what finds them, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers import gate_helpers
from medprobe.core.errors import BadInput
from medprobe.core.settings import parse_section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.papers.context.benchmarks import context_biolama

CASE = (
    "Since spring she had heartburn at night, felt sick in the morning, and with her nasal polyps "
    "came a runny nose and mucus in the throat; her nose was blocked. No wheeze was heard."
)


def triple(subject: str, objects: dict[str, list[str]], aliases: list[str]) -> dict[str, Any]:
    """A row of BioLAMA: subject and objects with their aliases; a URI is the label in capitals."""
    return {
        "uuid": f"{subject}-{len(objects)}",
        "predicate_id": "P780",
        "sub_uri": subject.upper(),
        "sub_label": subject,
        "sub_type": "",
        "sub_aliases": aliases,
        "obj_uris": [name.upper() for name in objects],
        "obj_labels": [*objects],
        "obj_types": [],
        "obj_aliases": [*objects.values()],
    }


@pytest.fixture
def data(working_folder: Path) -> Path:
    data = working_folder / "data"
    rows = {
        "train": [triple("nasal polyp", {"nasal discharge": ["runny nose"]}, ["nasal polyps"])],
        "dev": [triple("nasal polyp", {"postnasal drip": ["mucus in the throat"]}, [])],
        "test": [
            triple("nasal polyp", {"nasal stuffiness": ["nose was blocked"]}, []),
            triple("reflux", {"heartburn": [], "wheeze": []}, []),
        ],
    }
    folder = data / "biolama/wikidata"
    for split, triples in rows.items():
        path = folder / "triples_processed/P780" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in triples))
    (folder / "prompts").mkdir()
    prompt = {"relation": "P780", "template": "[X] has symptoms such as [Y]."}
    (folder / "prompts/manual.jsonl").write_text(json.dumps(prompt))
    (data / "clinic.jsonl").write_text(json.dumps({"id": "note-1", "text": CASE}))
    return data


def choose(**changes: Any) -> context_biolama.Settings:
    resources = {"clinic": {"form": "texts", "path": "clinic.jsonl"}}
    choices = {"resources": resources, "sources": ["wikidata"], **changes}
    return parse_section(context_biolama.Settings, choices, "test")


def build(data: Path, **changes: Any) -> BenchmarkTables:
    return context_biolama.build(data, choose(**changes), 1)


def test_a_triple_is_found_by_labels_and_aliases_of_all_splits(data: Path) -> None:
    benchmark = build(data)
    table = benchmark.queries
    is_main = (table["fact_id"] == "NASAL DISCHARGE") & (table["centre"] == "target")
    rows = table[is_main & (table["kind"] == "real")].sort_values("step")
    assert rows["added"].tolist() == [
        *("", "nasal discharge", "heartburn", "postnasal drip", "nasal stuffiness", "wheeze")
    ]
    roles = ["", "target", "incorrect", "correct", "correct", "incorrect"]
    assert rows["added_role"].tolist() == roles
    prompt = f"nasal polyp has symptoms such as {SLOT}."
    assert rows["prompt"].iloc[[0, -1]].tolist() == [prompt, f"{CASE} {prompt}"]
    names = ["nasal discharge", "nasal stuffiness", "postnasal drip"]
    assert sorted(rows["answers"].iloc[0]) == names
    every = {*names, "heartburn", "wheeze"}
    assert set(benchmark.candidates["name"]) == every  # the pool are the relation's objects


def test_entities_of_one_label_are_one(data: Path) -> None:
    path = data / "biolama/wikidata/triples_processed/P780/dev.jsonl"
    row = triple("nasal polyp", {"heartburn": ["pyrosis"]}, [])
    path.write_text(json.dumps({**row, "obj_uris": ["A0"]}) + "\n")
    candidates = build(data).candidates
    assert set(candidates.loc[candidates["name"] == "heartburn", "id"]) == {"A0"}


def test_the_gate_passes_it(data: Path, tmp_path: Path) -> None:
    benchmark = build(data)
    benchmark.write(tmp_path / "out")
    tables = {path.stem: pd.read_parquet(path) for path in (tmp_path / "out").glob("*.parquet")}
    assert gate_helpers.failing("context_biolama", tables, choose(), data) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relations": ["P781"]}, "no relation 'P781' .did you mean 'P780'"),
        ({"sources": ["ctd"]}, "ctd/triples_processed: no relations"),
    ],
)
def test_what_is_not_there_is_refused(data: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build(data, **change)
    prompts = data / "biolama/wikidata/prompts/manual.jsonl"
    prompts.write_text(prompts.read_text().replace("P780", "P1"))
    with pytest.raises(BadInput, match="no template for relation P780"):
        build(data)
