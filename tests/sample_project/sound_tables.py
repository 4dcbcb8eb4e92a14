"""Sound tables of every builder, which the gate passes: those of a small sample world, and what the
builders of released files would make of it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import ROOT
from helpers.broken_tables import Tables
from medprobe import benchmarks
from medprobe.core.params import Params
from medprobe.core.settings import parse_section
from medprobe.papers.template_free.benchmarks import lipid_released
from medprobe.pipeline.sample import sample
from medprobe.sample import corpus

BuiltTables = dict[str, tuple[Tables, dict[str, Any]]]  # by builder, and its settings
BUILT = ("medlama", "biolama", "diskne", "context", "lama", "lipid")  # of the sample world


def make() -> BuiltTables:
    """All of them. The working folder becomes a project, whose sources the gate reads too."""
    params = Params.model_validate(yaml.safe_load((ROOT / "params.yaml").read_text()))
    tables_by_builder: BuiltTables = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CASES", 1)  # which the models read, and no gate
        sample(Path("data"), {**params.sample, "queries": 20, "reserve": 12}, params.seed)
    for builder in BUILT:
        choices = params.benchmarks[builder][builder]
        if builder == "context":
            choices = {**choices, "triples": 4}
        settings = parse_section(benchmarks.find(builder).settings, choices, builder)
        benchmark = benchmarks.find(builder).build(Path("data"), settings, params.seed)
        tables = {
            "queries": benchmark.queries,
            "candidates": benchmark.candidates,
            **benchmark.others,
        }
        resolved = settings.model_dump(mode="json")
        if builder == "biolama":  # which asks for all relations by naming none
            resolved["relations"] = list(benchmark.queries["relation"].unique())
        tables_by_builder[builder] = tables, resolved
    add_released(tables_by_builder)
    return tables_by_builder


def add_released(tables_by_builder: BuiltTables) -> None:
    lipid, _ = tables_by_builder["lipid"]
    tables_by_builder |= {"table": ({}, {}), "ratings": ({}, {})}  # their suites alone
    tables_by_builder["lipid_released"] = released_prompts(lipid["queries"]), {}
    medlama, settings = tables_by_builder["medlama"]
    tables_by_builder["medlama_released"] = {**medlama, "sources": released_rows(medlama)}, settings
    chosen = benchmarks.find("diskne_released").settings(without_negatives="keep")
    tables_by_builder["diskne_released"] = released_annotation(), chosen.model_dump(mode="json")
    lines = pd.DataFrame(
        {"line": range(1, 121), "text": [f"Drug {i} cures it ." for i in range(120)]}
    )
    tables_by_builder["sentences"] = {"lines": lines.assign(text="On day " + lines["text"])}, {}


def released_rows(tables: Tables) -> pd.DataFrame:
    sources = tables["sources"].query("what == 'queries'")
    rows = sources.assign(what="rows", name=sources["name"] + "_1000.csv")
    return pd.concat([rows, sources], ignore_index=True)


def released_prompts(queries: pd.DataFrame) -> Tables:
    """LIPID's prompts as their authors would release them, in data/lipid."""
    prompts = queries["prompt"].str.replace("[Y]", "[MASK]", regex=False)
    answers = queries["answers"].str[0]
    rows = pd.DataFrame({"type": queries["subset"], "prompt": prompts, "answer": answers})
    Path("data/lipid").mkdir()
    rows.to_json("data/lipid/LIPID.json", orient="records")
    built = lipid_released.build(Path("data"), lipid_released.Settings(), 0)
    return {"queries": built.queries, "candidates": built.candidates, **built.others}


def released_annotation() -> Tables:
    """As many positives as the released files have, of invented diseases; five of each category
    have their negatives here."""
    cuis = [f"C{number:07d}" for number in range(40)]
    counts = {"symptoms": 112, "treatments": 60, "tests": 116, "procedures": 69}
    rows = []
    for category, count in {**counts, "terminological": 234}.items():
        for number in range(count):
            target_cui = cuis[number % len(cuis)]
            others = [cuis[(number + step) % len(cuis)] for step in range(1, 21)]
            kinds = ["positive", *(["similar"] * 10 + ["random"] * 10 if number < 5 else [])]
            for kind, cui in zip(kinds, [target_cui, *others][: len(kinds)], strict=True):
                rows.append(
                    (f"{category} {number}", category, kind, kind == "positive", cui, target_cui)
                )
    columns = ["pair_id", "category", "kind", "label", "cui", "original_cui"]
    examples = pd.DataFrame(rows, columns=columns).astype({"label": int})
    examples = examples.assign(
        example_id=examples.index.astype(str),
        hypothesis="sickness " + examples["cui"],
        disease="sickness " + examples["original_cui"],
        premise=examples["pair_id"],
        full_hypothesis="y",
        start=0,
        end=0,
        origin="released",
    )
    splits = [examples.assign(target=examples["original_cui"], split="test")]
    for target in cuis:
        others = examples[(examples[["cui", "original_cui"]] != target).all(axis=1)]
        tested = examples.loc[examples["original_cui"] == target, "pair_id"]
        others = others[~others["pair_id"].isin(tested)].assign(target=target, split="train")
        first = others["pair_id"] == others["pair_id"].iloc[0]
        splits.append(others.assign(split=others["split"].mask(first, "validation")))
    names = pd.DataFrame({"cui": cuis, "name": [f"sickness {cui}" for cui in cuis]})
    names["preferred"] = True
    sources = examples["kind"].value_counts().rename_axis("name").reset_index(name="rows")
    return {
        "examples": examples,
        "splits": pd.concat(splits, ignore_index=True)[["target", "split", "example_id"]],
        "names": names,
        "ancestors": pd.DataFrame({"cui": ["C0000099"], "ancestor": ["C0000098"]}),
        "sources": pd.concat(
            [sources.assign(source="diskne", what=what) for what in ("annotations", "rows")],
            ignore_index=True,
        ),
    }
