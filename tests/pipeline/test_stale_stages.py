"""What `medprobe plan` and `medprobe repro` take to be left, in a small project of DVC's."""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from dvc.repo import Repo

from medprobe.core import dvc_records
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.pipeline.plan import plan
from medprobe.pipeline.stale_stages import Stage, describe_data, find_stale_stages
from medprobe.report.page import describe_state
from medprobe.tracking.runs import read_inputs

STAGES = """\
stages:
  build:
    cmd: cp data/facts built
    deps: [data/facts]
    outs: [built]
  train:
    cmd: cp code trained
    deps: [code]
    outs: [trained]
  probe:
    cmd: cat built trained > probed
    deps: [built, trained]
    outs: [probed]
"""
PROBE = "cat built trained > probed"


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduced")
    with chdir(folder):
        Path("data").mkdir()
        Path("data/facts").write_text("facts")
        Path("code").write_text("code")
        Path("dvc.yaml").write_text(STAGES)
        with Repo.init(no_scm=True) as repo:
            repo.add("data")
            repo.reproduce()
    return folder


@pytest.fixture(autouse=True)
def up_to_date(reproduced: Path, working_folder: Path) -> None:
    """The working folder is a project whose stages have run."""
    shutil.copytree(reproduced, working_folder, dirs_exist_ok=True)


def test_nothing_is_left_where_nothing_changed() -> None:
    assert find_stale_stages() == {}


def test_what_changed_and_what_is_behind_it_is_left() -> None:
    Path("code").write_text("other code")
    assert find_stale_stages() == {
        "train": Stage("now", "cp code trained", ()),
        "probe": Stage("after train", PROBE, ("train",)),
    }


def test_a_stage_whose_command_changed_is_left() -> None:
    Path("dvc.yaml").write_text(STAGES.replace(PROBE, f"{PROBE} && true"))
    assert find_stale_stages() == {"probe": Stage("now", f"{PROBE} && true", ())}


@pytest.mark.parametrize("text", ["", "# all stages are gone\n", None])
def test_a_project_without_stages_is_not_up_to_date(text: str | None) -> None:
    Path("dvc.yaml").unlink()
    if text is not None:
        Path("dvc.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"^dvc\.yaml: no stages; `medprobe init`"):
        find_stale_stages()


def test_data_that_data_dvc_does_not_pin_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """By `medprobe repro` and `medprobe doctor`, the page and MLflow."""
    assert describe_data() == ""
    find_stale_stages(tidy=True)
    assert capsys.readouterr().out == ""
    Path("data/facts").unlink()
    Path("data/facts").write_text("other facts")
    assert describe_data() == "the files in data/ are not those in data.dvc"
    find_stale_stages(tidy=True)
    assert capsys.readouterr().out == f"{describe_data()}; `dvc add data` records them\n"
    Path("data.dvc").unlink()
    assert describe_data() == "the files in data/ are not pinned by data.dvc"
    find_stale_stages(tidy=True)
    assert capsys.readouterr().out == f"{describe_data()}; `dvc add data` records them\n"
    assert read_inputs("a", "b", [])["data"] == "not pinned by data.dvc"
    assert "data not pinned by data.dvc" in describe_state()


def test_data_may_be_pinned_source_by_source() -> None:
    """One that no file pins is named; the hash of the data follows from those of all sources."""
    subprocess.run(["dvc", "remove", "--quiet", "data.dvc"], check=True)
    Path("data/more").write_text("more facts")
    subprocess.run(["dvc", "add", "--quiet", "data/facts"], check=True)
    assert describe_data() == "DVC does not track data/more"
    before = dvc_records.data_hash()
    assert dvc_records.hashes()["data/facts"] == dvc_records.pinned()["data/facts"]
    subprocess.run(["dvc", "add", "--quiet", "data/more"], check=True)
    assert describe_data() == ""
    assert dvc_records.data_hash() not in (before, dvc_records.NOT_PINNED)
    Path("data/more").unlink()
    Path("data/more").write_text("other facts")
    assert describe_data() == "the files in data/ are not those in data/more.dvc"
    assert find_stale_stages() == {"data/more.dvc": Stage("now", None, ())}


def test_changed_data_are_taken_down_first() -> None:
    """They are a stage without a command."""
    Path("data/facts").write_text("other facts")
    assert find_stale_stages() == {
        "data.dvc": Stage("now", None, ()),
        "build": Stage("now", "cp data/facts built", ("data.dvc",)),
        "probe": Stage("after build", PROBE, ("build",)),
    }


def test_outputs_that_the_cache_lost_are_stored_again_and_not_made_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those that are as in dvc.lock, of stages whose dependencies are: an edited output is made."""
    shutil.rmtree(".dvc/cache")
    assert find_stale_stages() == {}
    assert not Path(".dvc/cache/files").exists()
    Path("trained").unlink()
    Path("trained").write_text("edited")
    stale = {
        "train": Stage("now", "cp code trained", ()),
        "probe": Stage("now", PROBE, ("train",)),
    }
    assert find_stale_stages(tidy=True) == stale
    lost = "DVC's cache had no outputs of 2 stages, and has them again: they are as in dvc.lock\n"
    assert capsys.readouterr().out == lost
    with Repo() as repo:
        assert "data.dvc" not in repo.status() and "build" not in repo.status()
    Path("trained").write_text("code")
    assert find_stale_stages(tidy=True) == {}
    with Repo() as repo:
        assert repo.status() == {}
        assert repo.reproduce() == []


def test_an_output_that_is_gone_like_the_cache_is_made_again() -> None:
    shutil.rmtree(".dvc/cache")
    Path("probed").unlink()
    assert find_stale_stages(tidy=True) == {"probe": Stage("now", PROBE, ())}


def test_what_dvc_cannot_read_is_one_line() -> None:
    Path("dvc.yaml").write_text(STAGES.replace("deps: [code]", "deps: {code"))
    with pytest.raises(BadInput, match=r"dvc\.yaml"):
        find_stale_stages()


def test_a_lock_that_a_kill_cut_is_named_with_the_remedy() -> None:
    lock = Path("dvc.lock")
    lock.write_text(lock.read_text()[:-9])
    with pytest.raises(BadInput, match=r"dvc\.lock: incomplete, .*delete it"):
        plan(Params())
    lock.unlink()
    plan(Params())


SOURCES = {  # how a source can be absent in a colleague's clone, after `dvc pull`
    "pinned, not pulled": lambda: shutil.rmtree("data"),
    "pinned by nobody": lambda: (shutil.rmtree("data"), Path("data.dvc").unlink()),
    "beside the data": lambda: Path("code").unlink(),
}


@pytest.mark.parametrize("absent", SOURCES.values(), ids=SOURCES)
def test_without_sources_what_was_made_of_them_stays_and_the_rest_runs(
    absent: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    absent()
    assert find_stale_stages(tidy=True) == {}
    assert capsys.readouterr().out.startswith("not here: ")
    Path("dvc.yaml").write_text(STAGES.replace(PROBE, f"{PROBE} && true"))
    [(name, stage)] = find_stale_stages().items()
    assert (name, stage.lacks_sources) == ("probe", False)
    subprocess.run(["dvc", "repro", "--quiet", "--allow-missing"], check=True)
    assert Path("built").is_file() and Path("trained").is_file()
    assert find_stale_stages() == {}
    assert find_stale_stages(allow_missing=False) != {}  # the gate reads the sources


@pytest.mark.parametrize("absent", SOURCES.values(), ids=SOURCES)
def test_a_stage_that_cannot_run_keeps_what_it_made(absent: Callable[[], object]) -> None:
    """DVC deletes a stage's outputs before it finds that a dependency is missing."""
    Path("dvc.yaml").write_text(STAGES.replace("cp data", "cp -p data").replace("cp c", "cp -p c"))
    absent()
    with pytest.raises(BadInput, match=r"(facts|code): is not here, and (build|train) has to read"):
        find_stale_stages(tidy=True)
    assert Path("built").is_file() and Path("trained").is_file()


@pytest.mark.parametrize("absent", SOURCES.values(), ids=SOURCES)
def test_a_new_stage_that_cannot_run_is_said_before_others_work(
    absent: Callable[[], object],
) -> None:
    absent()
    Path("built").unlink()
    Path("trained").unlink()
    Path("dvc.lock").unlink()
    with pytest.raises(BadInput, match=r"is not here, and .* has to read it; .* `medprobe doctor`"):
        find_stale_stages(tidy=True)
    assert "probe" in find_stale_stages()  # `medprobe plan` lists them nevertheless
