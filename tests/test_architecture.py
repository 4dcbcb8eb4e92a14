"""The architecture, as docs/concepts/architecture.md draws it: which room may import which."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from medprobe import methods
from medprobe.core.code import ROOT, closure

DOCUMENT = ROOT.parent.parent / "docs/concepts/architecture.md"
PROBING = 28  # files of the package that probing may reach
BACKENDS = 8  # more of methods that ask a backend
FREE = 1  # more of the method that reads free answers


def rooms() -> dict[str, set[str]]:
    """Each room and those it may import, from the document's table, lowest first."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", text, re.MULTILINE)
    return {name: set(re.findall(r"\w+", may)) for name, may in rows}


def room(module: str) -> str:
    """The room of a module; the package's own `__init__` is in none."""
    return module.partition(".")[2].partition(".")[0] or "__init__"


def imports() -> Iterator[tuple[str, str]]:
    """`(module, module it imports)` of the package, imports inside functions too."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import, which code.py does not follow"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                if name.split(".")[0] == "medprobe" and (target := existing(name)):
                    yield module, target


def existing(name: str) -> str:
    """The module that an imported name is, or is in; none for the package itself."""
    while name != "medprobe":
        path = ROOT.joinpath(*name.split(".")[1:])
        if path.is_dir() or path.with_suffix(".py").is_file():
            return name
        name = name.rpartition(".")[0]
    return ""


def test_every_room_stands_in_the_table() -> None:
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert set(rooms()) == modules - {"__init__", "__pycache__"}


def test_no_arrow_runs_up() -> None:
    """In the table a room imports from rooms above it only, so that there is no circle."""
    above: set[str] = set()
    for name, may in rooms().items():
        assert may <= above, f"{name} may import {may - above}, which stand below it"
        above.add(name)


def test_no_room_imports_what_it_may_not() -> None:
    may = rooms()
    wrong = [
        f"{module} imports {target}"
        for module, target in imports()
        if room(module) != "__init__"
        and room(target) != room(module)
        and room(target) not in may[room(module)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_room_has_a_circle_in_it() -> None:
    graph: dict[str, set[str]] = {}
    for module, target in imports():
        package = target in module  # a module of a package may use what its package defines
        if module != target and not package:
            graph.setdefault(module, set()).add(target)
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_modules_are_imported_by_name_only_where_the_closure_sees_it() -> None:
    """`code.closure` follows a registry: the `__init__` of a package."""
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "import_module" in text and path.name not in ("code.py", "fork_server.py", "plugins.py"):
            assert path.name == "__init__.py", path
            assert 'import_module(f"{__name__}.{' in text, path


@pytest.mark.parametrize("method", methods.list_names())
def test_probing_reaches_few_files(method: str) -> None:
    files = closure("medprobe.pipeline.stages.probe", plugins={"methods": [method]})
    limit = PROBING + BACKENDS * (len(methods.find(method).NEEDS - {"weights"}) > 0)
    limit += FREE * (method == "answering")
    assert len(files) <= limit, [path.relative_to(ROOT).as_posix() for path in files]


def test_nobody_asks_a_plugin_what_it_is() -> None:
    """`getattr` is for what other libraries' objects may lack; a plugin is a type."""
    pattern = re.compile(
        r"(hasattr|getattr)\((method|plugin|prober|module|benchmark|scorer|found)\b"
    )
    for path in ROOT.rglob("*.py"):
        assert not pattern.search(path.read_text(encoding="utf-8")), path
