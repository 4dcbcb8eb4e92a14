"""What holds for all tests: one thread a process, and the markers that follow by a rule."""

import os
import re

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

USES_HYPOTHESIS = re.compile(r"^from (hypothesis|helpers\.reader_tests) import ", re.MULTILINE)
STARTS_DVC = {"Project", "Repo"}  # of helpers.project and of dvc.repo
# Files of whole projects, of the documents' commands, of the browser and of another's server: `make
# test-all`. Tests of the finished project are of it, too.
FULL = {
    *("test_browser", "test_document_commands", "test_diskne_pipeline", "test_edits"),
    *("test_faults", "test_first_screen", "test_gate_command", "test_init", "test_install"),
    *("test_privacy", "test_real_data", "test_served_project", "test_taken_out"),
    *("test_transformers_serve", "test_tutorial", "test_workflow"),
}
# Files that take longest. Of two processes each takes every other one: of those that use the
# finished project one process, which the other would wait for.
COSTLY = (
    *("test_document_commands", "test_real_data", "test_pipeline", "test_taken_out"),
    *("test_edits", "test_served_project", "test_diskne_pipeline", "test_plugins"),
    *("test_privacy", "test_browser", "test_faults", "test_init", "test_workflow"),
    *("test_dvc_yaml", "test_tracking", "test_broken", "test_ahead", "test_score"),
    *("test_likeliest", "test_servers", "test_fingerprint", "test_answering", "test_load"),
)
SLOW_FILES = {"test_medlama_tracking", "test_store", "test_tracking"}


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Set up hypothesis before a file that uses it; other files start without it."""
    if not isinstance(collector, pytest.Module):
        return
    if not USES_HYPOTHESIS.search(collector.path.read_text(encoding="utf-8")):
        return
    from hypothesis import settings

    # How fast a machine is fails no test. The quick examples are the same in each run, so that no
    # change fails for another one's fault; the nightly ones are drawn anew.
    settings.register_profile("quick", deadline=None, max_examples=25, derandomize=True)
    settings.register_profile("nightly", deadline=None, max_examples=1000)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
    settings.register_profile("few", max_examples=settings().max_examples // 5)  # that cost much


@pytest.fixture(autouse=True)
def _examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    """Examples in docstrings run in a folder of their own, which no other test needs."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that use DVC, are slow or take long, and those of released data.

    The files that take longest begin, so that no process is left with one at the end.
    """
    for item in items:
        if isinstance(item, pytest.Function):
            if vars(item.module).keys() & STARTS_DVC:
                item.add_marker("dvc")
            if item.path.stem in SLOW_FILES:
                item.add_marker("slow")
            if item.path.stem in FULL or "finished_project" in item.fixturenames:
                item.add_marker("full")
            if "released_data" in item.fixturenames:
                item.add_marker("released")
    places = {name: place for place, name in enumerate(COSTLY)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
