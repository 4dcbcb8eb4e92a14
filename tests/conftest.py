"""Fixtures that several test files share."""

import gc
import os
import signal
from pathlib import Path

import pytest

from helpers import FolderOf

gc.set_threshold(100_000, 20, 100)  # the libraries' objects are many, and none is garbage
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a script's background process has it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """`tiny_model("bert")`: the folder of a tiny random checkpoint, made once a session.

    Tests must not write into it.
    """
    from helpers import tiny

    folders: dict[str, Path] = {}

    def folder(arch: str) -> Path:
        if arch not in folders:
            folders[arch] = tiny.model(arch, tmp_path_factory.mktemp("tiny") / arch)
        return folders[arch]

    return folder


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small sample world in `data/`, and a table of its facts.

    Tests must not write into it.
    """
    import pandas as pd
    import yaml

    from helpers import ROOT
    from helpers.broken_files import FACTS
    from medprobe.pipeline.sample import sample

    data = tmp_path_factory.mktemp("sample") / "data"
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    sample(data, {**params["sample"], "queries": 20, "reserve": 12}, params["seed"])
    facts = pd.read_csv(data / "sample/facts.csv")
    facts = facts[facts["relation"].isin(["may_treat", "may_prevent"])]
    facts["prompt"] = facts["subject"] + " " + facts["relation"].str.replace("_", " ") + " [Y] ."
    (data / FACTS).parent.mkdir()
    facts[["relation", "subject", "object", "prompt"]].to_csv(data / FACTS, index=False)
    return data.parent


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small project with a stage of each kind, run once for all test processes.

    Tests work in a copy (`Project.copy`).
    """
    from filelock import FileLock

    from helpers.finished_project import run_project

    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with FileLock(base / "finished.lock"):
        if not (base / "finished.ready").exists():
            run_project(base / "finished")
            (base / "finished.ready").touch()
    return base / "finished"


@pytest.fixture(scope="session")
def released_data() -> FolderOf:
    """`released_data("lama")`: a folder of files as they were released.

    The environment variable MEDPROBE_RELEASED_DATA names the folder of them all: diskne,
    diskne-random, lama, medlama (seven relations), medlama-released (all), sentences and the
    checkpoint all-MiniLM-L6-v2. The test is skipped where one is missing.
    """

    def folder(name: str) -> Path:
        root = os.environ.get("MEDPROBE_RELEASED_DATA")
        if not root:
            pytest.skip("MEDPROBE_RELEASED_DATA names no folder of released files")
        path = Path(root).resolve() / name
        if not path.is_dir():
            pytest.skip(f"the folder that MEDPROBE_RELEASED_DATA names has no {name}")
        return path

    return folder
