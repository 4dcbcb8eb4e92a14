"""What holds for all tests: one thread a process, since as many run as there are cores."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples in docstrings run in a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


LONG = ["pipeline", "real_data", "suites", "tracking", "truth", "workflow"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest begin, so that no process is left with one of them at the end."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in LONG)
