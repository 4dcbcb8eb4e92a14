"""MedLAMA's paper in one step: what changes in params.yaml, and what stays."""

from pathlib import Path

import pytest

from medprobe.core.params import load_params
from medprobe.pipeline.adopt import adopt, difference, remarks

OWN_PARAMS = """# mine
seed: 7 # a good number
engine: {precision: float32}
# where my model is
folders: {mine: checkpoints/mine}
train: {taught: {kind: masked, corpus: taught}}
continued: {further: {base: taught, corpus: taught, steps: 9}}
models:
  masked: {mine: {trained_until: "2021-06-30"}, taught: {}, further: {}}
rewire:
  steps: 3 # too few

  batch: 8
# how sure
score: {bootstrap: 9}
track: {text: false}
"""


@pytest.fixture
def params_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("params.yaml")
    path.write_text(OWN_PARAMS, encoding="utf-8")
    return path


def test_comments_and_models_of_ones_own_stay(params_path: Path) -> None:
    before, after = adopt("contrastive-probe-acl2022", params_path)
    for line in ("# mine", "seed: 7 # a good number", "# where my model is", "# how sure"):
        assert line in after.splitlines()
    params_path.write_text(after, encoding="utf-8")
    params = load_params(params_path)
    assert set(params.models.masked) == {
        *("mine", "bert-base-uncased", "bert-base-cased", "bluebert-base-pubmed", "biobert-v1-2")
    }
    assert "biobert-v1-1" in params.models.encoder  # it comes without a head
    assert params.models.masked["mine"].trained_until == "2021-06-30"
    assert params.train == params.continued == {}
    assert not {"taught", "further"} & {*params.models.all()}
    assert (params.rewire["batch"], params.rewire["learning_rate"]) == (192, 2e-5)
    assert len(params.sentence_sets) == 10
    assert params.benchmarks == {"medlama_released": {"medlama": {}}, "biolama": {"biolama": {}}}
    assert params.score.bootstrap == 9
    changes = difference(before, after).splitlines()
    assert "-  steps: 3 # too few" in changes and "+train: {}" in changes


def test_models_that_the_hub_lacks_are_reported(params_path: Path) -> None:
    remark_text = "\n".join(remarks("contrastive-probe-acl2022", params_path))
    assert (
        "UmlsBERT: table 5 cites Michalopoulos et al. 2021, who give it out by a link"
        in remark_text
    )
