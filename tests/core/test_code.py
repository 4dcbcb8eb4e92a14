"""What stands for code in a key: a hash in a clone, a version in an installed package."""

import shutil
from pathlib import Path

import pytest

from medprobe.core import code, parts
from medprobe.core.code import code_key
from medprobe.core.plugins import Plugin, find_plugins

FILES = ("engine/masked.py", "engine/notes.md", "methods/one.py", "papers/a/tables.py")


@pytest.fixture
def clone(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose code runs."""
    root = working_folder / "src/medprobe"
    for name in (*FILES, "extensions/b/methods/two.py", "extensions/c/shared.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    Path("requirements.lock").write_text("torch==2.13.0\n")
    for module in (code, parts):
        monkeypatch.setattr(module, "ROOT", root)
    return root


def plugin(path: Path) -> Plugin:
    return Plugin("methods", path.stem, path.stem, path)


def moved_by(edited: Path, *rooms: str, **more: object) -> bool:
    """Whether an edit of a file changes the key."""
    before = code_key(*rooms, **more)
    edited.write_text(edited.read_text() + "# a comment\n")
    return code_key(*rooms, **more) != before


def test_in_a_clone_an_edit_of_what_computes_counts(clone: Path) -> None:
    assert moved_by(clone / "engine/masked.py", "engine", version=1)
    assert moved_by(Path("requirements.lock"), "engine", version=1)
    assert not moved_by(clone / "methods/one.py", "engine", version=1)
    assert not moved_by(clone / "engine/notes.md", "engine", version=1)


@pytest.mark.parametrize(
    ("method", "file", "counts"),
    [
        ("methods/one.py", "methods/one.py", True),
        ("methods/one.py", "papers/a/tables.py", False),
        ("papers/a/methods/three.py", "papers/a/tables.py", True),  # a paper's folder is its own
        ("extensions/b/methods/two.py", "extensions/c/shared.py", True),  # they use each other
    ],
)
def test_in_a_clone_a_method_has_its_own_folder(
    clone: Path, method: str, file: str, counts: bool
) -> None:
    assert moved_by(clone / file, plugins=[plugin(clone / method)], version=1) == counts


def test_in_an_installed_package_the_version_counts_alone(clone: Path) -> None:
    """None of a method's is medprobe's own."""
    shutil.move(clone, "installed")
    for module in (code, parts):
        pytest.MonkeyPatch().setattr(module, "ROOT", Path("installed"))
    edited = Path("installed/engine/masked.py")
    assert not moved_by(edited, "engine", version=1)
    assert code_key("engine", version=1) != code_key("engine", version=2)
    assert not moved_by(edited, "engine")


def test_a_projects_own_plugin_counts_with_the_files_that_plugins_share(
    working_folder: Path,
) -> None:
    for name in ("methods/mine.py", "methods/other.py", "shared.py"):
        path = Path("plugins") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    Path("params.yaml").touch()
    mine = find_plugins("methods")["mine"]
    assert moved_by(Path("plugins/methods/mine.py"), plugins=[mine], version=1)
    assert moved_by(Path("plugins/shared.py"), plugins=[mine], version=1)
    assert not moved_by(Path("plugins/methods/other.py"), plugins=[mine], version=1)
