"""git's filter: last bits of another machine are no change to git, and all else is one."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from medprobe import warm
from medprobe.commands import filter
from medprobe.core import places

ROOT = Path(__file__).resolve().parents[1]
SCORES = places.SCORES / "taught/perplexity.json"
MODEL, TABLE, BENCHMARK = "outputs/models/taught", "outputs/predictions/a", "outputs/benchmarks/a"
Change = Callable[[dict[str, Any]], None]


def record(perplexity: float, model: str, table: str, change: Change = lambda stages: None) -> None:
    """What a run leaves: a number, and a lock of four stages, with `change` made to it."""
    SCORES.parent.mkdir(parents=True, exist_ok=True)
    SCORES.write_text(json.dumps({"lama": {"perplexity": perplexity, "n": 20, "share": 0.5}}))
    scores = filter._hash(places.SCORES)

    def files(**hashes: str) -> list[dict[str, str]]:
        return [{"path": path, "hash": "md5", "md5": told} for path, told in hashes.items()]

    stages: dict[str, Any] = {
        "build": {"cmd": "build", "deps": files(code="c"), "outs": files(**{BENCHMARK: "b"})},
        "train": {
            "cmd": "train",
            "params": {"params.yaml": {"seed": 1}},
            "deps": files(code="c"),
            "outs": files(**{MODEL: model}),
        },
        "probe": {
            "cmd": "probe",
            "deps": files(**{MODEL: model, BENCHMARK: "b", "code": "c"}),
            "outs": files(**{TABLE: table}),
        },
        "score": {
            "cmd": "score",
            "deps": files(**{"outputs/predictions": f"of {table}", "code": "c"}),
            "outs": files(**{str(places.SCORES): scores}),
        },
    }
    change(stages)
    Path("dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))


def git(*words: str) -> str:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    done = subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True)
    return done.stdout


def changed() -> list[str]:
    """The files that git takes for changed."""
    return [line[3:] for line in git("status", "--porcelain", ".").splitlines()]


BOTH = ["project/dvc.lock", f"project/{SCORES}"]


@pytest.fixture(autouse=True)
def _committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project below the root of its repository, as one machine left it."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / ".gitattributes").write_bytes((ROOT / ".gitattributes").read_bytes())
    record(13.467953, model="1", table="1")
    git("init", "--quiet", "..")
    git("add", ".")
    git("commit", "--quiet", "--message", "as recorded")
    filter.install()


def test_last_bits_are_no_change_to_git_and_stay_on_disk() -> None:
    record(13.467989, model="2", table="2")
    assert changed() == []
    assert git("diff", "HEAD") == ""
    assert "13.467989" in SCORES.read_text() and "md5: '2'" in Path("dvc.lock").read_text()


def test_numbers_of_another_length_are_no_change_either() -> None:
    record(13.46798, model="2", table="2")
    filter.settle()
    assert changed() == []
    assert git("diff", "--cached", "--name-only") == ""


def test_what_moved_is_not_staged() -> None:
    record(14.0, model="2", table="2")
    filter.settle()
    assert changed() == BOTH
    assert git("diff", "--cached", "--name-only") == ""


def test_what_a_person_has_staged_stays_so() -> None:
    SCORES.write_text("{}")
    git("add", ".")
    record(13.46798, model="2", table="2")
    filter.settle()
    assert git("show", f":./{SCORES}") == "{}"


def test_last_bits_are_not_committed() -> None:
    record(13.467989, model="2", table="2")
    Path("note").write_text("of another machine")
    git("add", ".")
    git("commit", "--quiet", "--message", "a note")
    assert git("show", "--name-only", "--format=", "HEAD").split() == ["project/note"]


def test_last_bits_are_committed_where_the_filter_is_told_to_rest() -> None:
    record(13.467989, model="2", table="2")
    assert changed() == []
    git("-c", f"{filter.PROCESS}=", "add", "--renormalize", "dvc.lock", "metrics")
    assert git("diff", "--cached", "--name-only").split() == BOTH
    git("commit", "--quiet", "--message", "another machine's")
    assert changed() == [] and "13.467989" in git("show", f"HEAD:./{SCORES}")


def test_a_number_that_moved_shows_all_that_differs() -> None:
    record(14.0, model="2", table="2")
    assert changed() == BOTH


def _another_seed(stages: dict[str, Any]) -> None:
    stages["train"]["params"]["params.yaml"]["seed"] = 2


def _other_code(stages: dict[str, Any]) -> None:
    stages["probe"]["deps"][-1]["md5"] = "d"


def _another_command(stages: dict[str, Any]) -> None:
    stages["train"]["cmd"] = "train longer"


def _a_new_stage(stages: dict[str, Any]) -> None:
    stages["more"] = stages["train"]


def _a_further_file_read(stages: dict[str, Any]) -> None:
    stages["probe"]["deps"].append({"path": "more", "md5": "m"})


def _a_benchmark_that_no_model_touched(stages: dict[str, Any]) -> None:
    stages["build"]["outs"][0]["md5"] = stages["probe"]["deps"][1]["md5"] = "x"


@pytest.mark.parametrize(
    "change",
    [
        _another_seed,
        _other_code,
        _another_command,
        _a_new_stage,
        _a_further_file_read,
        _a_benchmark_that_no_model_touched,
    ],
)
def test_whatever_is_no_last_bit_shows_all_that_differs(change: Change) -> None:
    record(13.467989, model="2", table="2", change=change)
    assert changed() == BOTH


def test_numbers_edited_by_hand_show() -> None:
    record(13.467989, model="2", table="2")
    SCORES.write_text(SCORES.read_text().replace("13.467989", "13.46799"))
    assert changed() == BOTH


@pytest.mark.parametrize("text", ["", "stages: [", "stages: 1", "schema: '2.0'"])
def test_a_lock_that_cannot_be_read_shows(text: str) -> None:
    Path("dvc.lock").write_text(text)
    assert changed() == BOTH[:1]


def test_a_project_without_a_commit_of_results_shows_all() -> None:
    git("rm", "--quiet", "-r", "--cached", "dvc.lock", "metrics")
    git("commit", "--quiet", "--message", "no results")
    assert changed() == ["project/dvc.lock", "project/metrics/"]
    git("add", ".")
    assert git("diff", "--cached", "--name-only").split() == BOTH


def test_files_of_any_size_pass_whole() -> None:
    """git's protocol has lines of 65,516 bytes."""

    def lengthen(stages: dict[str, Any]) -> None:
        stages["build"]["cmd"] = "build " * 40_000

    record(13.467953, "1", "1", lengthen)
    git("commit", "--quiet", "--all", "--message", "long")
    assert git("show", "HEAD:./dvc.lock") == Path("dvc.lock").read_text()
    record(13.467989, "2", "2", lengthen)
    assert changed() == []


def test_nothing_is_installed_where_no_attributes_name_it() -> None:
    git("config", "--unset", filter.PROCESS)
    Path(".gitattributes").unlink()
    filter.install()
    assert filter.PROCESS not in git("config", "--local", "--list")


def test_folders_are_hashed_as_dvc_hashes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    told = dict(filter._metrics(filter._stages(Path("dvc.lock").read_text())))
    assert told.keys() >= {str(places.SCORES), str(places.SUMMARY), str(places.SWEEPS)}
    assert {path: filter._hash(Path(path)) for path in told} == told


PIPELINE = """stages:
  train:
    cmd: mkdir -p outputs/models/taught && cp ../machine outputs/models/taught/weights
    outs: [outputs/models/taught]
  score:
    cmd: mkdir -p metrics/scores/taught && cp outputs/models/taught/weights {scores}
    deps: [outputs/models]
    outs:
      - metrics/scores: {{cache: false}}
"""


def test_a_run_on_another_machine_leaves_git_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC, `medprobe repro` and git as they are; the model is what the machine makes of it."""
    shutil.copy(ROOT / "params.yaml", ".")
    Path("dvc.yaml").write_text(PIPELINE.format(scores=SCORES))
    Path(".gitignore").write_text("/outputs\n")
    for path in (SCORES, Path("dvc.lock")):
        path.unlink()
    monkeypatch.setenv(warm.SOCKET, "none")  # no server, whose imports take longer than this
    machine = tmp_path / "machine"
    git("config", "--unset", filter.PROCESS)
    subprocess.run(["dvc", "init", "--subdir", "--quiet"], check=True)

    def reproduce(perplexity: float) -> None:
        machine.write_text(json.dumps({"lama": {"perplexity": perplexity}}))
        shutil.rmtree("outputs", ignore_errors=True)
        shutil.rmtree(".dvc/cache", ignore_errors=True)
        subprocess.run(["medprobe", "repro", "--jobs", "1"], check=True)

    reproduce(13.467953)
    git("add", ".")
    git("commit", "--quiet", "--message", "on one machine")
    recorded = Path("dvc.lock").read_text()
    reproduce(13.46798)
    assert changed() == []
    assert "13.46798}" in SCORES.read_text() and Path("dvc.lock").read_text() != recorded
