"""Files of names that params.yaml no longer has: listed, and removed after asking."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from dvc.repo import Repo

from medprobe.cli import main
from medprobe.core import dvc_records
from medprobe.core.errors import BadInput
from medprobe.core.files import size
from medprobe.core.params import ModelParams, Models, Params
from medprobe.core.parts import record_used
from medprobe.core.places import PARTS
from medprobe.pipeline.clean import leftovers, remove, unused_parts
from medprobe.pipeline.doctor import doctor
from medprobe.pipeline.stale_stages import find_stale_stages

PREDICTIONS = "outputs/predictions/{}/fill_mask/facts.parquet"
MODELS = ("here", "gone")
# What DVC runs: the stages of one model are a matrix over the models of params.yaml.
STAGES = {
    "vars": [{"models": {}}],
    "stages": {
        "train": {
            "matrix": {"model": "${models}"},
            "cmd": "train ${item.model}",
            "outs": ["outputs/models/${item.model}"],
        },
        "probe": {
            "matrix": {"model": "${models}"},
            "cmd": "probe ${item.model}",
            "outs": [PREDICTIONS.format("${item.model}")],
        },
        "score": {"cmd": "score", "outs": ["outputs/summary"]},
    },
}
NEEDED = {
    section: yaml.safe_load(Path("params.yaml").read_text())[section]
    for section in ("seed", "engine", "rewire", "score", "track")
}


def record(name: str, *outs: str) -> dict[str, object]:
    """What DVC records of a stage that ran."""
    return {"cmd": name, "outs": [{"path": out, "hash": "md5", "md5": "0" * 32} for out in outs]}


def write_lock(stages: dict[str, object]) -> None:
    """Write dvc.lock."""
    Path("dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))


@pytest.fixture
def project(working_folder: Path) -> Path:
    """A project in which stages ran for both models; params.yaml names one of them now. A
    checkpoint and a note were put beside their outputs by hand."""
    Repo.init(no_scm=True).close()
    Path("params.yaml").write_text(yaml.safe_dump({**NEEDED, "models": {"here": {}}}))
    Path("dvc.yaml").write_text(yaml.safe_dump(STAGES))
    stages: dict[str, object] = {"score": record("score", "outputs/summary", "metrics/old.json")}
    for model in MODELS:
        stages[f"train@{model}"] = record("train", f"outputs/models/{model}")
        stages[f"probe@{model}"] = record("probe", PREDICTIONS.format(model))
        Path(f"outputs/models/{model}").mkdir(parents=True)
        Path(f"outputs/models/{model}/weights").write_bytes(b"x" * 1500)
        Path(PREDICTIONS.format(model)).parent.mkdir(parents=True)
        Path(PREDICTIONS.format(model)).write_bytes(b"x" * 10)
    write_lock(stages)
    for path in ("outputs/models/mine/weights", "metrics/old.json", "outputs/note", "outside"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("x")
    return working_folder


def files() -> set[str]:
    """All there is, DVC's own files and scratch aside."""
    paths = {path for path in Path().rglob("*") if path.is_file()}
    return {f"{path}" for path in paths if path.parts[0] != ".dvc" and ".repro" not in path.name}


def test_what_stages_made_of_other_names_is_removed_and_folders_that_are_empty_then(
    project: Path,
) -> None:
    before = files()
    found = leftovers()
    assert {path: size(path) for path in found} == {
        Path("outputs/models/gone"): 1500,
        Path(PREDICTIONS.format("gone")): 10,
    }
    remove(found)
    assert before - files() == {"outputs/models/gone/weights", PREDICTIONS.format("gone")}
    assert sorted(path.name for path in Path("outputs/predictions").iterdir()) == ["here"]
    assert leftovers() == []


@pytest.mark.parametrize(
    "path",
    ["outputs/../outside", "outside", "outputs/models", "outputs", "outputs/models/here/weights"],
)
def test_a_record_of_another_place_removes_nothing(project: Path, path: str) -> None:
    """Of a place outside, of a folder that a stage of today writes into, or in its output."""
    write_lock({"old": record("old", path)})
    assert leftovers() == []


def test_a_link_is_removed_and_not_what_it_points_to(project: Path) -> None:
    Path("elsewhere").mkdir()
    Path("elsewhere/weights").write_text("x")
    (Path("outputs/models/gone") / "weights").unlink()
    Path("outputs/models/gone").rmdir()
    Path("outputs/models/gone").symlink_to(project / "elsewhere")
    remove(leftovers())
    assert Path("elsewhere/weights").is_file()
    assert not Path("outputs/models/gone").is_symlink()


def test_without_dvc_there_is_nothing(working_folder: Path) -> None:
    assert leftovers() == []


def test_stages_that_dvc_cannot_read_remove_nothing(project: Path) -> None:
    Path("dvc.yaml").write_text("stages: 1\n")
    with pytest.raises(BadInput, match="`dvc status` says more"):
        leftovers()


def test_the_command_asks_first(project: Path) -> None:
    Path("params.yaml").write_text(yaml.safe_dump(NEEDED))
    before = files()
    refused = CliRunner().invoke(main, ["clean"], input="n\n")
    assert refused.exit_code == 0
    assert "outputs/models/gone" in refused.output and "1.5 kB" in refused.output
    assert files() == before
    nobody = CliRunner().invoke(main, ["clean"])
    assert nobody.exit_code == 2 and "--yes" in nobody.output
    assert files() == before
    assert CliRunner().invoke(main, ["clean", "--yes"]).exit_code == 0
    assert not any("gone" in path for path in files())
    assert (
        "nothing of other names, and no unused parts" in CliRunner().invoke(main, ["clean"]).output
    )


def test_a_wrong_file_removes_nothing(project: Path) -> None:
    Path("params.yaml").write_text(yaml.safe_dump({**NEEDED, "methods": {"masked": {"x": {}}}}))
    before = files()
    assert CliRunner().invoke(main, ["clean", "--yes"]).exit_code == 2
    assert files() == before


def test_the_doctor_lists_it(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    doctor(Params(), Path("data"))
    printed = capsys.readouterr().out
    assert "No longer in params.yaml" in printed and "`medprobe clean` removes them" in printed
    assert "outputs/models/gone" in printed


def test_repro_removes_what_a_name_left_if_the_cache_has_it(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What compares results depends on whole folders: of a clone, they would not be the same."""
    code = "import os; os.makedirs('{0}'); open('{0}/x', 'w').write('{0}')"
    train = {
        "matrix": {"model": "${models}"},
        "cmd": f'python -c "{code.format("outputs/models/${item.model}")}"',
        "outs": ["outputs/models/${item.model}"],
    }
    score = {"cmd": "echo > scores", "deps": ["outputs/models"], "outs": ["scores"]}
    stages = {"vars": [{"models": {}}], "stages": {"train": train, "score": score}}
    Path("dvc.yaml").write_text(yaml.safe_dump(stages))
    Path("params.yaml").write_text(yaml.safe_dump({"models": {key: {} for key in "abc"}}))
    Repo.init(no_scm=True).reproduce()
    Path("outputs/models/mine").mkdir()
    Path("params.yaml").write_text(yaml.safe_dump({"models": {"a": {}}}))
    lost = dvc_records.hashes()["outputs/models/c"]
    Path(".dvc/cache/files/md5", lost[:2], lost[2:]).unlink()
    capsys.readouterr()
    assert "score" in find_stale_stages(tidy=True)
    assert sorted(path.name for path in Path("outputs/models").iterdir()) == ["a", "c", "mine"]
    line = "outputs/models/b removed: no longer in params.yaml; DVC's cache has it\n"
    assert capsys.readouterr().out == line


def test_parts_that_no_result_is_made_of_are_removed_once_all_stages_are_up_to_date(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medprobe.pipeline.check.check", lambda params: None)
    write_lock({})
    for name in ("old.parquet", "new.parquet", "gone.parquet", "state.pt", "rewire-0/step-1/x"):
        (PARTS / name).parent.mkdir(parents=True, exist_ok=True)
        (PARTS / name).write_text("x")
    (PARTS / "cui2vec-1").mkdir()
    record_used("here/fill_mask/facts", [PARTS / "old.parquet"])
    record_used("here/fill_mask/facts", [PARTS / "new.parquet"])
    record_used("gone/fill_mask/facts", [PARTS / "gone.parquet"])
    models = Models(masked={"here": ModelParams()})
    named = {"masked": {"fill_mask": {"facts": {}}}}
    params = Params(models=models, methods=named, benchmarks={"table": {"facts": {}}})
    Path("params.yaml").write_text(yaml.safe_dump(NEEDED))
    output = CliRunner().invoke(main, ["clean"], input="n\n").output
    assert output.endswith("and no unused parts\n"), "stages are left to run"
    with monkeypatch.context() as patch:
        patch.setattr("medprobe.pipeline.stale_stages.find_stale_stages", dict)
        output = CliRunner().invoke(main, ["clean"], input="n\n").output
    assert output.startswith("5 unused parts of 5 bytes in outputs/parts\n")
    unused = {"old.parquet", "gone.parquet", "state.pt", "rewire-0"}
    assert {path.name for path in unused_parts(params)} == unused
    remove(unused_parts(params))
    remaining = sorted(path.name for path in PARTS.glob("[!.]*"))
    assert remaining == ["cui2vec-1", "new.parquet", "used"]
