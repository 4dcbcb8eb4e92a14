"""The published numbers of DisKnE are those that it prints, and so is what is adopted."""

from pathlib import Path

import pytest

from helpers.needed import SECTIONS
from helpers.printed import check_adopted, hubs, rows_of
from medprobe import benchmarks
from medprobe.core.papers import concepts, papers
from medprobe.core.params import load_params
from medprobe.core.settings import parse_section
from medprobe.pipeline.adopt import adopt

PRINTED_SETTINGS = {  # section 4.1; tables 2 to 8: over three runs
    ("classifier", "diskne"): {"learning_rate": 2e-5, "batch": 8, "epochs": 8, "seeds": [0, 1, 2]}
}


@pytest.mark.parametrize(
    ("begins", "hub", "where"),
    [
        ("BERT", "google-bert/bert-base-cased", "section 4.1: BERTbase-cased"),
        ("SciBERT", "allenai/scibert_scivocab_cased", "4.1: cased"),
    ],
)
def test_a_number_is_of_the_checkpoint_that_made_it(begins: str, hub: str, where: str) -> None:
    assert hubs("diskne", "diskne", "classifier", begins) == {hub}, where


def test_what_is_adopted_is_what_is_printed() -> None:
    check_adopted("diskne", PRINTED_SETTINGS)


def test_the_biobert_of_diskne_has_read_pmc_too() -> None:
    """Section 4.1: the version where PubMed and PMC were utilized, which only v1.0 has."""
    [name] = {row.model for row in rows_of(papers()["diskne"]) if row.model.startswith("BioBERT")}
    assert "pubmed_pmc" in str(papers()["diskne"].models[name].hub)


@pytest.mark.parametrize("name", papers()["diskne"].variants)
def test_further_settings_of_disknes_builder_can_be_set(name: str) -> None:
    variant = papers()["diskne"].variants[name]
    parse_section(benchmarks.find("diskne_released").settings, variant, name)


def test_the_names_that_a_paper_prints_are_known() -> None:
    rows = rows_of(papers()["diskne"])
    printed = {row.relation for row in rows} - {"macro", "weighted"}
    assert printed == set(concepts().values()), "a disease in the tables has no concept"
    assert len(concepts()) == len(printed), "two diseases of the tables have one concept"


@pytest.mark.parametrize(
    ("table", "models", "variants"),
    [
        ("", 4, ["", "always-true"]),
        ("6", 4, ["", "always-true"]),
        ("7", 1, ["", "hypothesis-only", "full", "full-hypothesis-only"]),
        ("8", 4, ["random"]),
    ],
)
def test_all_tables_are_of_one_benchmark(
    table: str, models: int, variants: list[str], tmp_path: Path
) -> None:
    """Diseases of table 6, whole hypotheses of ClinicalBERT, and random negatives."""
    path = tmp_path / "params.yaml"
    path.write_text(SECTIONS, encoding="utf-8")
    path.write_text(adopt("diskne", table, path)[1], encoding="utf-8")
    params = load_params(path)
    assert len(params.fetch) == models and params.benchmark_names == {"diskne"}
    for by_method in params.methods.values():
        for settings in by_method["classifier"].values():
            assert settings["variants"] == variants
            printed = PRINTED_SETTINGS["classifier", "diskne"]
            assert printed.items() <= settings.items()
    settings = params.benchmarks["diskne_released"]["diskne"]
    assert settings["shared_premises"] and len(settings["parts"]["24"]["targets"]) == 24
