"""The template-free paper in one step: what params.yaml then knows of its models."""

from collections import Counter
from pathlib import Path

from helpers.needed import SECTIONS
from medprobe.core.params import load_params
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
