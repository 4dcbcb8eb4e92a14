"""No name of params.yaml reaches a shell or a path, with `dvc repro` alone too."""

import shlex
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

from helpers import ROOT
from helpers.project import NEEDED_SECTIONS

SHELL = "x; touch pwned #"
EVIL = [SHELL, "$(touch pwned)", "`touch pwned`", "a > pwned", "it's", "a\ntouch pwned", "--help"]


def project(folder: Path, sections: dict[str, object]) -> None:
    """The project's pipeline with these sections in params.yaml, and without code or data."""
    for name in ("dvc.yaml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    few = {name: content[name] for name in NEEDED_SECTIONS}
    (folder / "params.yaml").write_text(yaml.safe_dump(few | sections))
    (folder / ".dvc").mkdir()
    (folder / ".dvc/config").write_text("[core]\nno_scm = true\nanalytics = false\n")


def sections_with(name: str) -> dict[str, object]:
    """Sections in which one name stands at every place where a name may stand."""
    return {
        "train": {name: {}},
        "continued": {f"{name} k": {"base": name}},
        "fetch": {f"{name} f": {"hub": "a/b"}},
        "folders": {f"{name} o": "model"},
        "models": {"masked": {name: {}}, "causal": {f"{name} c": {}}},
        "sentence_sets": {name: {}},
        "benchmarks": {"lama": {name: {}}},
        "methods": {"masked": {"mask_average": {name: {}}}, "causal": {"perplexity": {name: {}}}},
    }


@pytest.mark.parametrize("name", EVIL)
def test_a_shell_sees_every_name_as_one_word(tmp_path: Path, name: str) -> None:
    project(tmp_path, sections_with(name))
    with chdir(tmp_path), Repo(tmp_path) as repo:
        lines = [
            line
            for stage in repo.index.stages
            for line in (stage.cmd if isinstance(stage.cmd, list) else [stage.cmd])
        ]
    assert any(name in shlex.split(line) for line in lines)
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "medprobe"
        for option, value in zip(words[2::2], words[3::2], strict=True):
            assert option in {"--model", "--method", "--benchmark", "--set"}
            assert value.removesuffix(" c").removesuffix(" f") in {
                *(name, "mask_average", "perplexity")
            }


def test_a_list_in_place_of_names_is_no_pipeline(tmp_path: Path) -> None:
    """DVC would write the keys of maps in a list without quotes."""
    project(tmp_path, {"models": {"masked": [{SHELL: 1}]}})
    process = dvc(tmp_path, "stage", "list")
    assert process.returncode and "cannot redefine 'models.masked'" in process.stderr


@pytest.mark.parametrize("name", [SHELL, "../../notes"])
def test_dvc_repro_stops_before_any_stage_has_a_wrong_name(tmp_path: Path, name: str) -> None:
    """A stage's outputs are removed before it runs: with `../../notes` that would be notes."""
    project(tmp_path, {"train": {name: {}}})
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "notes").mkdir()
    process = dvc(tmp_path, "repro")
    assert process.returncode
    assert f"params.yaml: train: {name!r} is not a valid name" in process.stdout + process.stderr
    assert (tmp_path / "notes").is_dir()
    assert not (tmp_path / "pwned").exists()
    assert "Running stage 'train" not in process.stdout


def dvc(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["dvc", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
