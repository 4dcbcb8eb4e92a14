"""The files that code follows from, on a small package made for it."""

from pathlib import Path

import pytest

from medprobe.core.code import closure

PACKAGE = {
    "__init__.py": "",
    "empty.py": '"""Nothing to run."""\n',
    "low.py": "x = 1\n",
    "types.py": "x = 1\n",
    "later.py": "x = 1\n",
    "stage.py": "from medprobe.plugins import find\nimport medprobe.low\n",
    "typed.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from medprobe import types\n"
        "def f():\n    from medprobe import empty, later\n"
    ),
    "plugins/__init__.py": "import importlib\ndef find(x): return importlib.import_module(x)\n",
    "plugins/one.py": "from medprobe.low import x\n",
    "plugins/two.py": "from medprobe.plugins import helper\n",
    "plugins/helper.py": "x = 1\n",
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
    found = closure(*modules, plugins=plugins, root=root)
    return {path.relative_to(root).as_posix() for path in found}


def test_imports_inside_functions_count_and_those_for_types_do_not(root: Path) -> None:
    assert names(root, "medprobe.typed") == {"typed.py", "later.py"}


def test_a_registry_counts_with_all_its_modules_or_with_those_that_are_chosen(root: Path) -> None:
    core = {"stage.py", "low.py", "plugins/__init__.py"}
    every = {"plugins/one.py", "plugins/two.py", "plugins/helper.py"}
    assert names(root, "medprobe.stage") == core | every
    assert names(root, "medprobe.stage", plugins=["one"]) == core | {"plugins/one.py"}
    two = {"plugins/two.py", "plugins/helper.py"}
    assert names(root, "medprobe.stage", plugins=["two"]) == core | two


def test_a_packages_data_belongs_to_it(root: Path) -> None:
    found = {"page/__init__.py", "page/page.html", "page/fonts/a.txt"}
    assert names(root, "medprobe.page") == found
