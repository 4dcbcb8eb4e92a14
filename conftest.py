"""What holds for all tests: one thread a process, and the markers that follow by a rule."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

STARTS_DVC = {"Project", "Repo"}  # of medprobe.testing.project and of dvc.repo
SLOW_FILES = {"test_faults", "test_fork_server", "test_store", "test_suites", "test_tracking"}


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Set up hypothesis before a file that uses it; other files start without it."""
    if not isinstance(collector, pytest.Module):
        return
    if "\nfrom hypothesis import " not in collector.path.read_text(encoding="utf-8"):
        return
    from hypothesis import settings

    # How fast a machine is fails no test.
    settings.register_profile("quick", deadline=None, max_examples=25)
    settings.register_profile("nightly", deadline=None, max_examples=1000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples in docstrings run in a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that use DVC or are slow as a whole, and those of released data.

    The files that use DVC take longest and begin, so that no process is left with one at the end.
    """
    for item in items:
        if isinstance(item, pytest.Function):
            if vars(item.module).keys() & STARTS_DVC:
                item.add_marker("dvc")
            if item.path.stem in SLOW_FILES:
                item.add_marker("slow")
            if "released_data" in item.fixturenames:
                item.add_marker("released")
    items.sort(key=lambda item: item.get_closest_marker("dvc") is None)
