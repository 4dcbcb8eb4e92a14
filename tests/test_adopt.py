"""A paper's settings in one step: what changes in params.yaml, and what stays."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from medprobe import check
from medprobe.cli import main
from medprobe.commands.adopt import adopt, difference, remarks
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, load_params, parse_section
from medprobe.papers import papers

ROOT = Path(__file__).parent.parent
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
    assert set(params.models.masked) == {"mine", "bert", "bluebert", "biobert"}
    assert params.models.masked["mine"].trained_until == "2021-06-30"
    assert params.train == params.continued == {}
    assert not {"taught", "further"} & {*params.models.all()}
    assert (params.rewire["batch"], params.rewire["learning_rate"]) == (192, 2e-5)
    assert len(params.sentence_sets) == 10
    assert params.benchmarks == {"medlama_released": {"medlama": {}}, "biolama": {"biolama": {}}}
    assert params.score.bootstrap == 9
    changes = difference(before, after).splitlines()
    assert "-  steps: 3 # too few" in changes and "+train: {}" in changes


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


def test_models_that_the_hub_lacks_are_reported() -> None:
    remark_text = "\n".join(remarks("contrastive-probe-acl2022"))
    assert "UmlsBERT: its authors give it out by a link" in remark_text
