"""The files that code follows from, on a small package made for it."""

import re
from pathlib import Path

import pytest

from medprobe.core.code import MESSAGE_MODULES, ROOT, closure

# The stage that a message tells the user to run; no number depends on it.
FOR_A_MESSAGE = "from medprobe.core.dvc_records import stage_of"
PACKAGE = {
    "__init__.py": "",
    "empty.py": '"""Nothing to run."""\n',
    "low.py": "x = 1\n",
    "types.py": "x = 1\n",
    "later.py": "x = 1\n",
    "stage.py": "from medprobe.metrics import find\nimport medprobe.low\n",
    "typed.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from medprobe import types\n"
        "def f():\n    from medprobe import empty, later\n"
    ),
    "metrics/__init__.py": "def find(x): ...\n",
    "metrics/one.py": "from medprobe.low import x\n\nSCORER = x\n",
    "papers/a/metrics/two.py": "from medprobe.metrics import helper\n\nSCORER = helper.x\n",
    "metrics/helper.py": "x = 1\n",
    "page/__init__.py": "x = 1\n",
    "page/page.html": "<p>",
    "page/fonts/a.txt": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(root: Path, *modules: str, **plugins: list[str]) -> set[str]:
    files = closure(*modules, plugins=plugins, root=root)
    return {path.relative_to(root).as_posix() for path in files}


def test_imports_inside_functions_count_and_those_for_types_do_not(root: Path) -> None:
    assert names(root, "medprobe.typed") == {"typed.py", "later.py"}


def test_what_finds_plugins_counts_with_all_of_them_or_with_those_that_are_chosen(
    root: Path,
) -> None:
    core = {"stage.py", "low.py", "metrics/__init__.py"}
    every = {"metrics/one.py", "papers/a/metrics/two.py", "metrics/helper.py"}
    assert names(root, "medprobe.stage") == core | every
    assert names(root, "medprobe.stage", metrics=["one"]) == core | {"metrics/one.py"}
    two = {"papers/a/metrics/two.py", "metrics/helper.py"}
    assert names(root, "medprobe.stage", metrics=["two"]) == core | two


def test_modules_that_only_print_are_no_dependency(root: Path) -> None:
    (root / "core").mkdir()
    (root / "core/progress.py").write_text("x = 1\n")
    (root / "low.py").write_text("from medprobe.core.progress import x\n")
    assert names(root, "medprobe.low") == {"low.py"}
    for module in MESSAGE_MODULES:
        path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
        found = re.findall(r"^ *(?:from|import) medprobe.*$", path.read_text(), re.MULTILINE)
        assert [line for line in found if line.split("  #")[0].strip() != FOR_A_MESSAGE] == []


def test_a_packages_data_belongs_to_it(root: Path) -> None:
    expected_files = {"page/__init__.py", "page/page.html", "page/fonts/a.txt"}
    assert names(root, "medprobe.page") == expected_files
