"""A paper's settings in one step: what changes in params.yaml, and what stays."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import made_up_paper
from medprobe.cli import main
from medprobe.core.errors import BadInput
from medprobe.core.params import load_params
from medprobe.pipeline.adopt import adopt, difference, remarks

OWN_PARAMS = """# mine
seed: 7 # a good number
engine: {precision: float32}
# where my model is
folders: {mine: checkpoints/mine, other: checkpoints/other}
train: {taught: {kind: masked, corpus: taught}}
continued: {further: {base: taught, corpus: taught, steps: 9}}
models:
  masked: {mine: {trained_until: "2021-06-30"}, taught: {}, further: {}}
  causal: {other: {}}
benchmarks:
  table: # one file

    old: {facts: tables/old.csv} # too few
# how sure
score: {bootstrap: 9}
track: {text: false}
"""


@pytest.fixture
def params_path(working_folder: Path) -> Iterator[Path]:
    """The params.yaml of a project that has a paper of its own."""
    path = Path("params.yaml")
    path.write_text(OWN_PARAMS, encoding="utf-8")
    with made_up_paper.published(working_folder):
        yield path


def test_comments_and_models_of_ones_own_stay(params_path: Path) -> None:
    before, after = adopt("made_up", path=params_path)
    for line in ("# mine", "seed: 7 # a good number", "# where my model is", "# how sure"):
        assert line in after.splitlines()
    params_path.write_text(after, encoding="utf-8")
    params = load_params(params_path)
    assert set(params.models.masked) == {"mine", "old-bert", "new-bert"}
    assert params.models.masked["mine"].trained_until == "2021-06-30"
    assert params.train == params.continued == {}
    assert not {"taught", "further"} & {*params.models.all()}
    assert params.benchmarks == {"table": {"facts": {"facts": "tables/facts.csv"}}}
    masked = {"mask_average": {"facts": {}}, "fill_mask": {"facts": {}}}
    assert params.methods == {"masked": masked, "causal": {}}, "of a kind that the paper has not"
    assert params.score.bootstrap == 9
    changes = difference(before, after).splitlines()
    assert "-    old: {facts: tables/old.csv} # too few" in changes and "+train: {}" in changes
    assert adopt("made_up", path=params_path) == (after, after)


def test_what_a_paper_knows_of_its_models_is_adopted(params_path: Path) -> None:
    """The group of each, the smaller model of its family, and that means leave it out."""
    params_path.write_text(adopt("made_up", path=params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    old, new = (params.models.masked[name] for name in ("old-bert", "new-bert"))
    assert (old.published, old.group, old.larger_than) == ("Old BERT", "general", None)
    assert (new.published, new.group, new.larger_than) == ("New BERT", "biomedical", "old-bert")
    assert old.counts_in("facts") and not new.counts_in("facts")
    fetched = params.fetch["old-bert"]
    assert (fetched.hub, fetched.revision) == ("someone/old", "abc")


def test_nothing_is_written_unless_one_says_so(params_path: Path) -> None:
    command = CliRunner()
    result = command.invoke(main, ["adopt", "made_up"], input="n\n")
    assert result.exit_code == 0
    assert "+    facts: {facts: tables/facts.csv}" in result.output
    assert "open question" in result.output
    assert params_path.read_text(encoding="utf-8") == OWN_PARAMS
    command.invoke(main, ["adopt", "made_up", "--yes"])
    assert params_path.read_text(encoding="utf-8") != OWN_PARAMS
    again = command.invoke(main, ["adopt", "made_up", "--yes"])
    assert again.output == "params.yaml already has these settings\n"


def test_a_table_adopts_what_its_numbers_need(params_path: Path) -> None:
    """Its models, methods and benchmarks; models of other tables go, those of one's own stay."""
    params_path.write_text(adopt("made_up", path=params_path)[1], encoding="utf-8")
    params_path.write_text(adopt("made_up", "1", params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    assert set(params.models.masked) == {"mine", "old-bert"} and set(params.fetch) == {"old-bert"}
    assert params.methods["masked"] == {"fill_mask": {"facts": {}}}
    assert not any("New BERT" in line for line in remarks("made_up", "1", params_path))
    assert "open question: how prompts were made" in remarks("made_up", "1", params_path)
    assert "open question: which facts it asks" not in remarks("made_up", "1", params_path)
    assert "open question: which facts it asks" in remarks("made_up", "2", params_path)
    params_path.write_text(adopt("made_up", "2", params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    assert set(params.models.masked) == {"mine", "old-bert", "new-bert"}, "a mean over all models"
    assert params.benchmarks == {"table": {"others": {"facts": "tables/others.csv"}}}
    assert params.methods["masked"] == {"fill_mask": {"others": {}}}


@pytest.mark.parametrize("table", ["3", "figure 1"])
def test_a_table_without_numbers_is_refused_with_the_list(params_path: Path, table: str) -> None:
    with pytest.raises(
        BadInput,
        match=f"nothing measures .*{table} of made_up alone; choose one of table 1, table 2",
    ):
        adopt("made_up", table, params_path)


def test_where_nobody_can_be_asked_the_option_is_named(params_path: Path) -> None:
    result = CliRunner().invoke(main, ["adopt", "made_up"])
    assert result.exit_code == 2 and "+    facts" in result.output
    assert "no terminal to ask on: nothing was changed; add --yes" in result.output
    assert params_path.read_text(encoding="utf-8") == OWN_PARAMS


def test_an_unknown_paper_is_refused_with_the_list(params_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"no paper 'made_upp' \(did you mean 'made_up'\?\); choose one of"
    ):
        adopt("made_upp", path=params_path)


def test_models_that_the_hub_lacks_are_reported(params_path: Path) -> None:
    assert "Lost BERT: section 2 gives it out by a link" in remarks("made_up", path=params_path)


def test_a_model_of_ones_own_that_stays_is_named(params_path: Path) -> None:
    own_text = OWN_PARAMS.replace(
        "folders: {mine: checkpoints/mine, ", "fetch: {new-bert: {hub: my/copy}}\nfolders: {"
    )
    params_path.write_text(own_text.replace("{mine: ", "{new-bert: "), encoding="utf-8")
    remark = "your model new-bert, my/copy as masked, stays; the paper has someone/new"
    assert any(remark in line for line in remarks("made_up", path=params_path))
    params_path.write_text(OWN_PARAMS, encoding="utf-8")
    assert not any("your model" in line for line in remarks("made_up", path=params_path))
