"""Which files of this package a piece of code follows from, read off the code itself.

The part cache keys its parts by these files, and dvc.yaml names them as its stages' dependencies:
both ask here, so that neither can forget one.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = "medprobe"
ROOT: Final = Path(__file__).parent.parent
# Modules that only tell people something: how far work is, and what is wrong with an input. They
# compute nothing that a stage writes, so no number follows from them. .dvcignore names their files.
TELLING: Final = ("medprobe.core.errors", "medprobe.core.progress")


def closure(
    *modules: str, plugins: Mapping[str, Collection[str]] | None = None, root: Path = ROOT
) -> list[Path]:
    """The files that importing and running these modules reads, themselves included, in order.

    All imports count, those inside functions too, but for `if TYPE_CHECKING`. A package that
    imports its modules by name (`importlib.import_module` in its `__init__`) counts with all of
    them, or with those that `plugins` gives for it. A package's data (templates, YAML) belongs
    to it; a file with nothing but a docstring does not count, nor does the package's own
    `__init__`, which hands names on to notebooks, nor do the modules of `TELLING`. `root` is the
    package's folder.

    >>> [path.name for path in closure("medprobe.core.answers")]
    ['answers.py', 'files.py', 'tables.py']
    """
    chosen = dict(plugins or {})
    seen: dict[Path, None] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        parent = name.rpartition(".")[0]
        path = _file(root, name)
        if path in seen or name == PACKAGE or name in TELLING:
            continue
        seen[path] = None
        if parent:
            waiting.append(parent)
        waiting += _imports(root, path)
        if path.name == "__init__.py":
            if _imports_by_name(path):
                short = name.removeprefix(f"{PACKAGE}.")
                below = chosen.get(short, _modules_below(path.parent))
                waiting += [f"{name}.{module}" for module in below]
            seen.update(dict.fromkeys(_data(path.parent)))
    return sorted(path for path in seen if path.suffix != ".py" or _runs(path))


def countable(folder: Path) -> set[Path]:
    """The files of a folder of the package that `closure` may give."""
    telling = {_file(ROOT, name) for name in TELLING}
    files = {path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    return {path for path in files - telling if path.suffix != ".py" or _runs(path)}


def _file(root: Path, name: str) -> Path:
    inside = root.joinpath(*name.split(".")[1:])
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")


@cache
def _tree(path: Path, changed: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _runs(path: Path) -> bool:
    """Does a file hold more than a docstring?"""
    body = _tree(path, path.stat().st_mtime_ns).body
    return any(not (isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant)) for x in body)


@cache
def _nodes(path: Path, changed: int) -> list[ast.AST]:
    """The nodes of a file's syntax tree that may import, without what only a type checker runs."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [_tree(path, changed)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute):
            found.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
    return found


def _imports(root: Path, path: Path) -> Iterator[str]:
    """The modules of the package that a file imports."""
    for node in _nodes(path, path.stat().st_mtime_ns):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.split(".")[0] == PACKAGE and _file(root, name).is_file():
                yield name


def _imports_by_name(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "import_module"
        for node in _nodes(path, path.stat().st_mtime_ns)
    )


def _modules_below(folder: Path) -> list[str]:
    files = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    return files + [path.parent.name for path in folder.glob("*/__init__.py")]


def _data(folder: Path) -> list[Path]:
    """Files of a package that are no Python, those in folders of data below it too."""
    found = []
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            found.append(path)
        elif path.is_dir() and not any(path.rglob("*.py")) and path.name != "__pycache__":
            found += [file for file in path.rglob("*") if file.is_file()]
    return found
