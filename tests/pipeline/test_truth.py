"""dvc.yaml tells the truth: after an edit, and the stage `code` where the edit is of code, `dvc
status` names the stages whose numbers may change, all of them and no others.

The project here has every stage of the project's own dvc.yaml and params.yaml. Its outputs are
stand-ins but for the lists of code, and recorded as up to date.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.repo import Repo

from helpers import ROOT
from helpers.project import NEEDED_SECTIONS
from medprobe.pipeline import dvc_yaml as pipeline
from medprobe.pipeline.stale_stages import find_stale_stages

NEEDED = ["dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", "expectations", "src"]
LOCKS = ["requirements.lock", "requirements-tools.lock"]
SRC = "src/medprobe"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    for name in [*NEEDED, *LOCKS]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    with opened(folder) as repo:
        pipeline.write_code_lists()
        for output in [*repo.index.outs, *repo.index.deps]:
            stand_in(Path(output.fs_path))
        repo.commit(force=True)
    return folder


@contextmanager
def opened(project: Path) -> Iterator[Repo]:
    """DVC, in the project's folder."""
    with chdir(project), Repo(project) as repo:
        yield repo


def stand_in(path: Path) -> None:
    """A file, or a folder with a file, at a path where there is nothing."""
    if path.name == "params.yaml" or path.exists():
        return
    if path.suffix or path.name == "passed" or path.parent.name == "passed":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {path.name}\n")
    else:
        path.mkdir(parents=True)
        (path / "content").write_text(f"of {path.name}\n")


def stages(repo: Repo) -> set[str]:
    return {stage.addressing for stage in repo.index.stages}


def stale(repo: Repo) -> set[str]:
    """The stages that `dvc status` names, from one reading of dvc.yaml."""
    with repo.lock:
        return {stage.addressing for stage in repo.index.stages if stage.status()}


@contextmanager
def restored_after(path: Path) -> Iterator[None]:
    """The file or folder is as before after the block."""
    before = path.read_bytes() if path.is_file() else None
    try:
        yield
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)


Edit = Callable[[dict[str, Any]], None]


def edited_params(path: Path, edit: Edit) -> None:
    content = yaml.safe_load(path.read_text())
    edit(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def set_to(dotted: str, value: Any) -> Edit:
    """An edit of params.yaml: a value under dotted keys, in place of what is there or new."""

    def edit(content: dict[str, Any]) -> None:
        *parents, last = dotted.split(".")
        for key in parents:
            content = content[key]
        content[last] = value

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(content: dict[str, Any]) -> None:
        for single_edit in edits:
            single_edit(content)

    return edit


def test_dvc_yaml_is_what_the_code_asks_for() -> None:
    assert (ROOT / "dvc.yaml").read_text() == pipeline.text(), "run `medprobe pipeline`"


@pytest.fixture(scope="module")
def repo(project: Path) -> Iterator[Repo]:
    """DVC, for edits that leave params.yaml as it is."""
    with opened(project) as opened_repo:
        yield opened_repo


def test_nothing_is_stale_at_first(repo: Repo) -> None:
    assert not repo.status()


# One file of each kind; that a stage names all that it imports is tested in test_pipeline.py.
FILES = {  # a comment added to a file, or a line to a data file: the stages that are stale
    f"{SRC}/methods/xfactr.py": ["probe-masked@*"],  # the parts of its other methods stay
    f"{SRC}/methods/generative.py": ["probe-seq2seq@*"],
    f"{SRC}/papers/medlama/benchmarks/medlama/queries.py": [
        "build-medlama@*",
        "validate-medlama@*",
    ],
    f"{SRC}/papers/context/metrics/ucm.py": ["score", "significance", "track", "compare"],
    f"{SRC}/report/page/page.js": ["compare"],  # a data file of the package
    f"{SRC}/papers/medlama/settings/sweeps.py": [  # a section: who uses it
        *("validate-sentences@*", "rewire@*", "rewire-none@*", "probe-masked@*")
    ],
    f"{SRC}/papers/medlama/expectations/medlama.py": ["validate-medlama@*", "validate-context@*"],
    f"{SRC}/sample/training.py": ["train*"],
    f"{SRC}/cli/results.py": [],
    f"{SRC}/core/benchmark_statistics.py": [
        *("build-*", "score", "significance", "track", "compare")
    ],
    # core: what a stage imports of it, and nothing that only tells people something
    f"{SRC}/core/progress.py": [],
    f"{SRC}/core/answers.py": [
        *("build-*", "probe-*"),
        *("score", "significance", "track", "compare"),
    ],
    "requirements.lock": ["*"],
    "requirements-tools.lock": ["validate-*", "compare"],
    "data/umls/MRREL.RRF": [  # the gates of two builders read it again
        *("build-medlama@*", "build-diskne@*", "build-context@*"),
        *("validate-medlama@*", "validate-context@*"),
    ],
    "data/sentences/set-0.txt": ["validate-sentences@set-0", "rewire*@*-set-0"],
    "expectations/lama/queries.json": ["validate-lama@*"],
    "outputs/benchmarks/lama/content": [  # what reads it, and the stage that made it
        *("build-lama@*", "validate-lama@*", "probe-*"),
        *("score", "significance", "track", "compare"),
    ],
}


@contextmanager
def edited(repo: Repo, names: Iterable[str]) -> Iterator[None]:
    """Files of the project have one more line while the block lasts."""
    with ExitStack() as restoring:
        for name in names:
            path = Path(repo.root_dir) / name
            assert path.is_file(), name
            before = path.read_bytes()
            restoring.enter_context(restored_after(path))
            if not name.startswith(SRC):
                path.chmod(0o644)
            path.unlink()  # outputs may be links into DVC's cache
            path.write_bytes(before + (b"\n" if path.suffix == ".json" else b"\n# a comment\n"))
        yield


def test_edited_files_that_no_stage_follows(repo: Repo) -> None:
    with edited(repo, [name for name, patterns in FILES.items() if not patterns]):
        assert stale(repo) == {"code"}
        assert find_stale_stages().keys() == {"code"}


@pytest.fixture(scope="module")
def changed_paths(repo: Repo) -> dict[str, set[Path]]:
    """The dependencies and outputs that `dvc status` names of each stage, after all edits.

    For a list of code, they are the files whose lines changed.
    """
    before = pipeline.code_lists()
    with edited(repo, [name for name, patterns in FILES.items() if patterns]):
        pipeline.write_code_lists()
        after = pipeline.code_lists()
        with repo.lock:
            states = {stage.addressing: stage.status() for stage in repo.index.stages}
    pipeline.write_code_lists()
    changed_lines = {
        path: {
            Path(line.split()[1]) for line in {*text.splitlines()} - {*before[path].splitlines()}
        }
        for path, text in after.items()
    }
    paths: dict[str, set[Path]] = {}
    for name, state in states.items():
        for change in state.get(name, []):
            for path in (Path(text) for by_path in change.values() for text in by_path):
                paths.setdefault(name, set()).update(changed_lines.get(path, {path}))
    return paths


@pytest.mark.parametrize("name", [name for name, patterns in FILES.items() if patterns])
def test_an_edited_file(repo: Repo, changed_paths: dict[str, set[Path]], name: str) -> None:
    folders = {Path(name), *Path(name).parents}
    names = {stage for stage, paths in changed_paths.items() if paths & folders}
    lists_code = {"code"} if name.startswith((SRC, "expectations")) else set()
    assert names == matching(repo, FILES[name]) - {"code"} | lists_code


def test_an_edit_of_code_is_planned_before_the_stage_code_runs(repo: Repo) -> None:
    with edited(repo, [f"{SRC}/methods/xfactr.py"]):
        stages = find_stale_stages()
    probes = matching(repo, ["probe-masked@*"])
    assert {name for name, stage in stages.items() if stage.reason == "now"} == {"code", *probes}
    assert all("code" in stages[name].needs for name in probes)


def matching(repo: Repo, patterns: list[str]) -> set[str]:
    """The stages whose names match a pattern; a pattern that matches none is a mistake."""
    stale_stages = {
        pattern: {name for name in stages(repo) if fnmatch(name, pattern)} for pattern in patterns
    }
    assert all(stale_stages.values()), stale_stages
    return set().union(*stale_stages.values())


NEW_MODEL = all_of(
    set_to("train.newcomer", {"kind": "masked", "corpus": "taught"}),
    set_to("models.masked.newcomer", {}),
)

PARAMS: dict[str, tuple[Edit, list[str]]] = {
    "where and how parts are computed": (
        all_of(
            set_to("engine.device", "cpu"),
            set_to("engine.executor", "ray"),
            set_to("engine.offline", True),
            set_to("engine.token_budget", 64),
        ),
        [],
    ),
    "the precision": (set_to("engine.precision", "bfloat16"), ["probe-*"]),
    "settings of one stage each, and more stages": (
        all_of(
            set_to("methods.masked.xfactr.medlama.masks", 4),
            set_to("methods.masked.fill_mask.lama", {}),
            set_to("benchmarks.medlama.medlama.per_relation", 30),
            set_to("train.untaught-causal.steps", 5),
            set_to("sentence_sets.set-2", {}),
            set_to("sweeps.models", {"taught": None}),
            set_to("sweeps.sets", {"set-0": None}),
            set_to("sweeps.learning_rate", {"0.001": None}),
        ),
        [
            "probe-masked@*",
            *("build-medlama@medlama", "validate-medlama@medlama"),
            *("train@untaught-causal", "train-continued@taught-causal"),
            *("validate-sentences@set-2", "rewire*@*-set-2"),
            "rewire-learning_rate@taught-set-0-0.001",
        ],
    ),
    "one more model": (NEW_MODEL, ["*@newcomer*", "track", "compare"]),  # others follow `check`
    "a model's name in the papers": (
        set_to("models.masked.taught.published", "BERT-base-cased"),
        ["track", "compare"],
    ),
    "the seed": (
        set_to("seed", 1),
        [
            *("build-*", "train*", "validate-sentences@*", "rewire@*", "probe-*"),
            *("score", "significance", "track", "compare"),
        ],
    ),
}


@pytest.mark.parametrize("name", PARAMS)
def test_an_edit_of_params(project: Path, name: str) -> None:
    edit, patterns = PARAMS[name]
    with restored_after(project / "params.yaml"):
        edited_params(project / "params.yaml", edit)
        with opened(project) as repo:
            names = stale(repo)
            assert names == matching(repo, ["check", *patterns])
            if name == "one more model":
                assert names == set(repo.status())


def test_sections_that_are_left_out_are_empty(project: Path) -> None:
    """Models of one kind only, from a folder, on one benchmark: no stage of anything else."""
    with restored_after(project / "params.yaml"):
        content = yaml.safe_load((project / "params.yaml").read_text())
        small = {name: content[name] for name in NEEDED_SECTIONS}
        (project / "model").mkdir(exist_ok=True)
        small |= {
            "folders": {"mine": "model"},
            "models": {"causal": {"mine": {}}},
            "benchmarks": {"lama": {"lama": {}}},
            "methods": {"causal": {"perplexity": {"lama": {}}}},
        }
        (project / "params.yaml").write_text(yaml.safe_dump(small))
        with opened(project) as repo:
            stale_stages = stages(repo)
    assert stale_stages == {
        *("check", "code", "build-lama@lama", "validate-lama@lama", "fetch-folder@mine"),
        *("probe-causal@mine", "score", "significance", "track", "compare"),
    }
