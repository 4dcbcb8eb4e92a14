"""A paper's settings in one step: what changes in params.yaml, and what stays."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from helpers import ROOT
from medprobe.cli import main
from medprobe.core.errors import BadInput
from medprobe.core.papers import papers
from medprobe.core.params import Params, load_params
from medprobe.core.settings import parse_section
from medprobe.pipeline import check
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


@pytest.mark.parametrize("name", papers())
def test_every_paper_can_be_adopt(name: str, tmp_path: Path) -> None:
    """By the project's own params.yaml, held against the code to its leaves; and only once."""
    path = tmp_path / "params.yaml"
    path.write_text((ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    before, after = adopt(name, path)
    assert before != after
    params = parse_section(Params, yaml.safe_load(after), name)  # as DVC and PyYAML read it
    check.check(params)
    hub = {model.hub: model.revision for model in papers()[name].models.values() if model.hub}
    assert {model.hub: model.revision for model in params.fetch.values()} == hub
    path.write_text(after, encoding="utf-8")
    assert adopt(name, path) == (after, after)


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


def test_what_a_paper_knows_of_its_models_is_adopted(params_path: Path) -> None:
    """Groups and sizes of models, and the one that Figure 2 leaves out of one data set."""
    params_path.write_text(adopt("template_free", params_path)[1], encoding="utf-8")
    models = load_params(params_path).models.all()
    groups = {"general": 7, "adapted": 6, "biomedical": 3}  # section 3.1
    assert Counter(model.group for name, model in models.items() if name != "mine") == groups
    pairs = {name: model.larger_than for name, model in models.items() if model.larger_than}
    assert pairs == {
        "bert-large-uncased": "bert-base-uncased",
        "roberta-large": "roberta-base",
        "albert-large": "albert-base",
    }
    (left_out,) = [name for name, model in models.items() if not model.counts_in("t-rex-free")]
    assert models[left_out].published == "BlueBERT-base PubMed+MIMIC"
    assert models[left_out].counts_in("google-re-free")


def test_a_paper_without_rewiring_leaves_it(params_path: Path) -> None:
    params_path.write_text(adopt("diskne", params_path)[1], encoding="utf-8")
    assert load_params(params_path).rewire == {"steps": 3, "batch": 8}
    assert list(load_params(params_path).benchmarks) == ["diskne_released"]


def test_nothing_is_written_unless_one_says_so(params_path: Path) -> None:
    command = CliRunner()
    result = command.invoke(main, ["adopt", "diskne"], input="n\n")
    assert result.exit_code == 0
    assert "+  diskne_released:" in result.output and "open question" in result.output
    assert params_path.read_text(encoding="utf-8") == OWN_PARAMS
    command.invoke(main, ["adopt", "diskne", "--yes"])
    assert params_path.read_text(encoding="utf-8") != OWN_PARAMS
    again = command.invoke(main, ["adopt", "diskne", "--yes"])
    assert again.output == "params.yaml already has these settings\n"


def test_an_unknown_paper_is_refused_with_the_list(params_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"no paper 'disknee' \(did you mean 'diskne'\?\); choose one of"
    ):
        adopt("disknee", params_path)


def test_models_that_the_hub_lacks_are_reported(params_path: Path) -> None:
    remark_text = "\n".join(remarks("contrastive-probe-acl2022", params_path))
    assert (
        "UmlsBERT: table 5 cites Michalopoulos et al. 2021, who give it out by a link"
        in remark_text
    )


def test_papers_that_print_one_name_for_two_checkpoints_share_no_model(params_path: Path) -> None:
    """BioBERT, BERT, SciBERT and BlueBERT are others in each of the papers."""
    wanted: dict[str, str] = {}
    for name, paper in papers().items():
        params_path.write_text(adopt(name, params_path)[1], encoding="utf-8")
        wanted |= {printed: model.hub for printed, model in paper.models.items() if model.hub}
    params = load_params(params_path)
    models = params.models.all()
    fetched = {models[name].published: model.hub for name, model in params.fetch.items()}
    assert fetched == wanted
    stays = (
        "PubMedBERT: your model pubmedbert, microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract"
    )
    remark = [line for line in remarks("template_free", params_path) if line.startswith(stays)]
    assert remark and "as encoder, stays" in remark[0] and "as masked" in remark[0]


def test_a_model_of_ones_own_that_stays_is_named(params_path: Path) -> None:
    own_text = OWN_PARAMS.replace(
        "folders: {mine: checkpoints/mine}", "fetch: {scibert-cased: {hub: my/copy}}"
    )
    params_path.write_text(own_text.replace("{mine: ", "{scibert-cased: "), encoding="utf-8")
    remark = "your model scibert-cased, my/copy as masked, stays; the paper has allenai/scibert"
    assert any(remark in line for line in remarks("diskne", params_path))
    params_path.write_text(OWN_PARAMS, encoding="utf-8")
    assert not any("your model" in line for line in remarks("diskne", params_path))
