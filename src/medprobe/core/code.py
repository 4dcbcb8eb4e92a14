"""The files that a piece of code depends on, of this package and of plugins, by its imports.

The part cache keys its parts by these files, and the stage `code` lists them for each stage. Both
use `closure`, so that they cannot disagree.
"""

import ast
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput
from medprobe.core.files import list_files
from medprobe.core.places import CODE
from medprobe.core.plugins import KINDS, PACKAGE, ROOT, Plugin, find_plugins, source_folders

SOURCES: Final = Path("src") / PACKAGE  # of the code in a clone
# Files that nothing reads: hidden ones, those of editors and of merges, documents.
SCRATCH_FILE: Final = re.compile(r"\..*|#.*#|.*(~|\.orig|\.rej|\.md)")
# Modules that only write messages: progress and errors. No number depends on them.
MESSAGE_MODULES: Final = ("medprobe.core.errors", "medprobe.core.progress")


def closure(
    *modules: str, plugins: Mapping[str, Collection[str]] | None = None, root: Path = ROOT
) -> list[Path]:
    """Return the files that are read when these modules are imported and run, themselves included.

    All imports count, also those inside functions, except under `if TYPE_CHECKING` and in functions
    of a section of params.yaml, from which no number follows (`core.params`). A module that
    finds plugins (`plugins.KINDS`) counts with all plugins of its kind, or with those that
    `plugins` lists. The files of a plugin's own package count like ours. Data files of a
    package (templates, YAML) count with the package. Four kinds of file do not count: a file with
    nothing but a docstring, the package's own `__init__`, which only re-exports names for
    notebooks, `MESSAGE_MODULES`, and documents and files of editors (`SCRATCH_FILE`).

    Args:
        modules: Full names, such as `medprobe.pipeline.stages.probe`.
        plugins: For a kind of plugin, such as `methods`, the names of those that are used.
        root: The folder of the package `medprobe`.

    Returns:
        Paths in sorted order, those of the project's plugins relative to the project.

    Raises:
        BadInput: A file is not Python.

    >>> [path.name for path in closure("medprobe.core.answers")]
    ['__init__.py', 'answers.py', 'files.py', 'spreadsheets.py', 'tables.py']
    """
    used = dict(plugins or {})
    kinds: dict[str, list[str]] = {}
    for kind, (finder, *_) in KINDS.items():
        kinds.setdefault(finder, []).append(kind)
    folders = {**source_folders(), PACKAGE: root}
    sections = {plugin.path for plugin in find_plugins("settings", root).values()}
    files: dict[Path, None] = {}
    queue = list(modules)
    while queue:
        name = queue.pop()
        parent = name.rpartition(".")[0]
        path = _file(folders, name)
        if path in files or name == PACKAGE or name in MESSAGE_MODULES:
            continue
        files[path] = None
        if parent and _file(folders, parent).is_file():
            queue.append(parent)
        queue += _imports(folders, name, path, inner=path not in sections)
        for kind in kinds.get(name, ()):
            found = find_plugins(kind, root)
            chosen = [found[plugin] for plugin in used.get(kind, found)]
            is_data = KINDS[kind].suffix != ".py"
            files.update(dict.fromkeys(plugin.path for plugin in chosen if is_data))
            queue += [plugin.module for plugin in chosen if not is_data]
        if path.name == "__init__.py":
            files.update(dict.fromkeys(_data(path.parent)))
    return sorted(path for path in files if path.suffix != ".py" or _has_code(path))


def package_files(root: Path = ROOT) -> list[Path]:
    """Return all files of the package in sorted order, without compiled and scratch files."""
    files = (path.relative_to(root) for path in list_files(root))
    return sorted(root / file for file in files if not any(map(is_scratch, file.parts)))


def stage_module(stage: str) -> str:
    """Return the full name of the module of a stage, such as `probe`."""
    return find_plugins("stages")[stage].module


def list_path(stage: str, name: str = "") -> Path:
    """Return the path of the list of a stage's code, such as `outputs/code/build-medlama.txt`.

    Args:
        stage: The name of its module in `medprobe.pipeline.stages`.
        name: What tells its blocks of dvc.yaml apart, such as a builder or a kind of model.
    """
    return CODE / f"{'-'.join(filter(None, [stage, name]))}.txt"


def list_lines(files: Iterable[Path], root: Path) -> dict[str, str]:
    """Return the lines of the list of a stage's code, by the path in a clone.

    Args:
        files: The stage's closure. Plugins are not listed: DVC depends on their files directly.
        root: The folder of the package.

    Returns:
        Lines as `sha256sum` writes them, such as `2dc403a2…  src/medprobe/core/tables.py`.
    """
    names = {path: SOURCES / path.relative_to(root) for path in files if path.is_relative_to(root)}
    return {
        name.as_posix(): f"{_hash(path, path.stat().st_mtime_ns)}  {name.as_posix()}\n"
        for path, name in names.items()
    }


def installed_plugins(
    files: Collection[Path], used: Mapping[str, Collection[str]]
) -> Iterator[Plugin]:
    """Yield the plugins of installed packages among the files of a closure.

    Args:
        files: What `closure` returned.
        used: Its argument `plugins`.
    """
    for kind, (finder, *_) in KINDS.items():
        is_found = bool(finder) and _file({PACKAGE: ROOT}, finder) in files
        plugins = find_plugins(kind) if is_found else {}
        for name, plugin in plugins.items():
            if plugin.lock and name in used.get(kind, [name]):
                yield plugin


def plugin_files(plugin: Plugin) -> list[Path]:
    """Return the files outside this package that a plugin depends on, its own included."""
    files = closure(plugin.module, plugins={plugin.kind: [plugin.name]})
    return [path for path in files if not path.is_relative_to(ROOT)]


def _file(folders: Mapping[str, Path], name: str) -> Path:
    package, *rest = name.split(".")
    path = folders[package].joinpath(*rest)
    init = path / "__init__.py"  # a folder without it can be left of a package that is a file now
    return init if init.is_file() else path.with_suffix(".py")


@cache
def _hash(path: Path, mtime_ns: int) -> str:
    """The SHA-256 of a file. `mtime_ns` is when it last changed: it keys the cache."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_scratch(name: str) -> bool:
    """Return whether a file or folder is compiled code, or one of `SCRATCH_FILE`."""
    return name == "__pycache__" or SCRATCH_FILE.fullmatch(name) is not None


@cache
def _tree(path: Path, mtime_ns: int) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise BadInput(path, f"not Python: {error}", "correct it") from None


def _has_code(path: Path) -> bool:
    """Return whether a file holds more than a docstring."""
    body = _tree(path, path.stat().st_mtime_ns).body
    return any(not (isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant)) for x in body)


@cache
def _nodes(path: Path, mtime_ns: int, *, inner: bool) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree that can be imports, without type-checking blocks.

    `mtime_ns` is when the file last changed: it keys the cache. `inner`: those in functions too.
    """
    nodes: list[ast.AST] = []
    queue: list[ast.AST] = [_tree(path, mtime_ns)]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute):
            nodes.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            queue += node.orelse
        elif inner or not isinstance(node, ast.FunctionDef):
            queue += ast.iter_child_nodes(node)
    return nodes


def _imports(folders: Mapping[str, Path], module: str, path: Path, *, inner: bool) -> Iterator[str]:
    """Yield the modules of these packages that a module imports."""
    package = module.split(".")[: None if path.name == "__init__.py" else -1]
    for node in _nodes(path, path.stat().st_mtime_ns, inner=inner):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            names = [source, *(f"{source}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.split(".")[0] in folders and _file(folders, name).is_file():
                yield name


def _data(folder: Path) -> list[Path]:
    """Return the files of a package that are not Python, also those in its folders of data."""
    files: list[Path] = []
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            files.append(path)
        elif path.is_dir() and not any(path.rglob("*.py")):
            files += list_files(path)
    return [file for file in files if not any(map(is_scratch, file.relative_to(folder).parts))]
