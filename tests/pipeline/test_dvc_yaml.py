"""dvc.yaml tells the truth: a block names what its stage reads and runs, so that after an edit `dvc
status` names the stages whose outputs may change.

The project here has every stage of the project's own dvc.yaml and params.yaml. Its outputs are
stand-ins, and recorded as up to date.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.architecture import imports
from dvc.repo import Repo

from helpers import ROOT, nightly
from helpers.project import NEEDED, NEEDED_SECTIONS
from medprobe import benchmarks, methods, metrics
from medprobe.core.code import own_code
from medprobe.core.params import MODEL_KINDS, find_settings
from medprobe.core.plugins import ROOT as PACKAGE_ROOT
from medprobe.core.plugins import find_plugins
from medprobe.gate.suites import folders
from medprobe.metrics.results import scorers_code
from medprobe.pipeline.probing import CODE, method_code

SRC = "src/medprobe"
BLOCKS = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


def named(block: str) -> list[str]:
    """The dependencies of a block."""
    entry = BLOCKS[block]
    return [*entry.get("do", entry)["deps"]]


def is_named(path: str, block: str) -> bool:
    """Whether a block names a path, or a folder above it."""
    return any(path == name or path.startswith(f"{name}/") for name in named(block))


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    targets: dict[str, set[str]] = {}
    for module, target in imports():
        targets.setdefault(module, set()).add(target)
    return targets


def imported(*roots: str) -> set[str]:
    """The modules that these import, also inside functions, themselves included."""
    found, queue = set[str](), [*roots]
    while queue:
        if (module := queue.pop()) not in found:
            found.add(module)
            queue += graph().get(module, ())
    return found


def code(*modules: str, aside: tuple[str, ...]) -> list[str]:
    """The paths of all that modules import, without rooms that are left aside."""
    found = sorted(f"src/{name.replace('.', '/')}" for name in imported(*modules))
    existing = [path if (ROOT / path).is_dir() else f"{path}.py" for path in found]
    return [path for path in existing if path.split("/")[2] not in aside]


def test_what_a_builder_and_its_gate_read_and_run_is_named() -> None:
    """`pipeline` aside, which only calls them."""
    plugins = find_plugins("benchmarks")
    for name in benchmarks.list_names():
        builder, build, gate = benchmarks.find(name), f"build-{name}", f"validate-{name}"
        with chdir(ROOT):
            suites = [folder.as_posix() for folder in folders(Path("expectations") / name)]
        assert {f"data/{source}" for source in builder.metadata.sources} <= {*named(build)}
        assert {*(f"data/{source}" for source in builder.gate_sources), *suites} <= {*named(gate)}
        for path in code(plugins[name].module, aside=("pipeline",)):
            assert is_named(path, build) and is_named(path, gate), f"{name}: {path}"


def test_what_a_method_reads_and_runs_is_named_for_each_kind_of_model() -> None:
    """`sources` aside: a method gets tables."""
    plugins, stage = find_plugins("methods"), "medprobe.pipeline.stages.probe"
    for kind in MODEL_KINDS:
        for name in methods.find_by_kind([kind]):
            block, method = f"probe-{kind}", methods.find(name)
            assert {*method.READS, "plugins"} <= {*named(block)}
            assert {"seed", f"methods.{kind}"} <= {*BLOCKS[block]["params"]}
            for path in code(stage, plugins[name].module, aside=("sources",)):
                assert is_named(path, block), f"{block} does not name {path}, of {name}"


def test_what_a_method_runs_is_in_the_key_of_its_results() -> None:
    for name, plugin in find_plugins("methods").items():
        own = [f"{SRC}/{path.relative_to(PACKAGE_ROOT)}" for path in own_code(plugin)]
        rooms = [*own, *(f"{SRC}/{room}" for room in CODE)]
        for path in code(plugin.module, aside=("sources",)):
            file = f"{path}/__init__.py" if (ROOT / path).is_dir() else path
            hashed = any(file == room or file.startswith(f"{room}/") for room in rooms)
            assert hashed, f"{name}: an edit of {file} leaves its results as they are"


def test_an_edit_of_a_paper_computes_nothing_of_other_papers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`probe` and `score` run again after it, and keep what has the same key."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("medprobe.core.code.fingerprint", lambda files: " ".join(map(str, files)))
    keys = {("methods", name): method_code(name, Path("model")) for name in methods.list_names()}
    keys |= {("metrics", name): scorers_code([name]) for name in metrics.list_names()}
    paths = {(kind, name): find_plugins(kind)[name].path for kind, name in keys}
    for paper in (PACKAGE_ROOT / "papers").glob("[a-z]*/"):
        own = {plugin for plugin, path in paths.items() if paper in path.parents}
        assert {plugin for plugin, key in keys.items() if f"{paper}/" in key} == own, paper


def test_a_section_of_params_that_is_left_out_is_empty_in_dvc_yaml() -> None:
    text = (ROOT / "dvc.yaml").read_text()
    empty = yaml.safe_load(text)["vars"][0]
    assert all(empty[name] == {} for name in find_settings() if f"${{{name}}}" in text)
    assert {*empty["models"]} == {*MODEL_KINDS}
    assert {*empty["benchmarks"]} == {*benchmarks.list_names()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    for name in NEEDED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, target, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    with opened(folder) as repo:
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


@pytest.fixture(scope="module")
def repo(project: Path) -> Iterator[Repo]:
    """DVC, for edits that leave params.yaml as it is."""
    with opened(project) as opened_repo:
        yield opened_repo


def test_nothing_is_stale_at_first(repo: Repo) -> None:
    assert not repo.status()


EDITED = {  # a comment added to a file, or a line to a data file: the stages that are stale
    f"{SRC}/methods/xfactr.py": ["probe-*", "score"],  # the results of other methods stay (`_key`)
    f"{SRC}/papers/diskne/recipe.py": [
        *("build-diskne*", "validate-diskne*", "probe-masked@*"),
        *("score", "compare"),
    ],
    f"{SRC}/report/page/page.js": ["compare"],
    "requirements.lock": ["*"],
    "data/umls/MRREL.RRF": [  # the gates of two builders read it again
        *("build-medlama@*", "build-diskne@*", "build-context@*"),
        *("validate-medlama@*", "validate-context@*"),
    ],
    "outputs/benchmarks/lama/content": [  # what reads it, and the stage that made it
        *("build-lama@*", "validate-lama@*", "probe-*"),
        *("score", "track", "compare"),
    ],
}
FURTHER_EDITED = {
    f"{SRC}/sample/training.py": ["train*"],
    f"{SRC}/tracking/runs.py": ["track", "compare"],
    f"{SRC}/cli/results.py": [],
    f"{SRC}/papers/medlama/README.md": [],
    "plugins/README.md": ["probe-*", "score", "compare"],
    "requirements-tools.lock": ["validate-*", "compare"],
    "data/sentences/set-0.txt": ["validate-sentences@set-0"],  # rewiring reads what passed
    "expectations/lama/queries.json": ["validate-lama@*"],
}


@contextmanager
def edited(repo: Repo, name: str) -> Iterator[None]:
    """A file of the project has one more line while the block lasts."""
    path = Path(repo.root_dir) / name
    assert path.is_file(), name
    before = path.read_bytes()
    with restored_after(path):
        path.unlink()  # outputs may be links into DVC's cache
        path.write_bytes(before + (b"\n" if path.suffix == ".json" else b"\n# a comment\n"))
        yield


@pytest.mark.parametrize("name", [*EDITED, *nightly(*FURTHER_EDITED)])
def test_an_edited_file(repo: Repo, name: str) -> None:
    with edited(repo, name):
        assert stale(repo) == matching(repo, {**EDITED, **FURTHER_EDITED}[name])


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
            *("validate-sentences@set-2", "rewire@*", "score"),
        ],
    ),
    "one more model": (
        NEW_MODEL,
        ["*@newcomer*", "score", "track", "compare"],
    ),  # others follow `check`
    "the seed": (
        set_to("seed", 1),
        [
            *("build-*", "train*", "validate-sentences@*", "rewire@*", "probe-*"),
            *("score", "track", "compare"),
        ],
    ),
}

FURTHER_PARAMS: dict[str, tuple[Edit, list[str]]] = {
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
    "a model's name in the papers": (
        set_to("models.masked.taught.published", "BERT-base-cased"),
        ["score", "track", "compare"],
    ),
}


@pytest.mark.parametrize("name", [*PARAMS, *nightly(*FURTHER_PARAMS)])
def test_an_edit_of_params(project: Path, name: str) -> None:
    edit, patterns = {**PARAMS, **FURTHER_PARAMS}[name]
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
        *("check", "build-lama@lama", "validate-lama@lama", "fetch-folder@mine"),
        *("probe-causal@mine", "score", "track", "compare"),
    }
