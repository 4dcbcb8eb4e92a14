"""The template-free paper in one step: what params.yaml then knows of its models."""

from collections import Counter
from pathlib import Path

import pytest

from helpers.needed import SECTIONS
from medprobe.core.papers import papers
from medprobe.core.params import load_params
from medprobe.core.settings import parse_section
from medprobe.papers.template_free.benchmarks import lama
from medprobe.pipeline.adopt import adopt


def test_what_a_paper_knows_of_its_models_is_adopted(working_folder: Path) -> None:
    """Groups and sizes of models, and the one that Figure 2 leaves out of one data set."""
    params_path = Path("params.yaml")
    params_path.write_text(SECTIONS, encoding="utf-8")
    params_path.write_text(adopt("template_free", path=params_path)[1], encoding="utf-8")
    models = load_params(params_path).models.all()
    groups = {"general": 7, "adapted": 6, "biomedical": 3}  # section 3.1
    assert Counter(model.group for model in models.values()) == groups
    pairs = {name: model.larger_than for name, model in models.items() if model.larger_than}
    assert pairs == {
        "bert-large-uncased": "bert-base-uncased",
        "roberta-large": "roberta-base",
        "albert-large": "albert-base",
    }
    (left_out,) = [name for name, model in models.items() if not model.counts_in("t-rex-free")]
    assert models[left_out].published == "BlueBERT-base PubMed+MIMIC"
    assert models[left_out].counts_in("google-re-free")
    assert {model.trained_until for model in models.values()} == {"2021-12-31"}  # section 3.2.3


@pytest.mark.parametrize(
    "table", [number for number, found in papers()["template_free"].tables.items() if found.rows]
)
def test_a_table_asks_the_data_sets_that_it_prints(table: str, working_folder: Path) -> None:
    """Of LAMA, whose T-REx has most of all sentences, table 6 needs SQuAD alone."""
    params_path = Path("params.yaml")
    params_path.write_text(SECTIONS, encoding="utf-8")
    params_path.write_text(adopt("template_free", table, params_path)[1], encoding="utf-8")
    chosen = load_params(params_path).benchmarks["lama"]["lama"]
    subsets = {row.subset for row in papers()["template_free"].tables[table].rows}
    names = {name.removesuffix("-template").removesuffix("-free") for name in subsets}
    assert {*parse_section(lama.Settings, chosen, "lama").sets} == names & {*lama.SETS}
