"""The architecture, as docs/concepts/architecture.md draws it: which room may import which."""

import ast
import re
from graphlib import TopologicalSorter
from typing import Final

from bench.architecture import DOCUMENT, declared_needs, imports, room, with_drawing

from medprobe.core.plugins import KINDS, ROOT, find_plugins, own_folders

TAKEN_OUT: Final = ("papers", "extensions")
# Names of plugins that are words of the kernel too: they name something else there.
WORDS: Final = {
    *("averaged", "chat", "classifier", "context", "families", "results"),
    *("sentences", "servers", "sweeps", "unanswered"),
}
# What a plugin of a kind may import of the gate and the command line.
REGISTERS: Final = {("medprobe.gate.checks", "expectations"), ("medprobe.cli.group", "commands")}
RULE: Final = "biolama"  # also the name of a rule for equal answers, from its evaluator


def rooms() -> dict[str, set[str]]:
    """Each room and those it may import, from the document's table, lowest first."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", text, re.MULTILINE)
    return {name: set(re.findall(r"\w+", may)) for name, may in rows}


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


def folder_of(module: str) -> str:
    """The folder of `papers/` or `extensions/` that a module is in; empty for the kernel."""
    parts = module.split(".")[1:3]
    return "/".join(parts) if parts and parts[0] in TAKEN_OUT else ""


def test_a_folder_imports_the_kernel_and_what_the_document_says_that_it_needs() -> None:
    pairs = {(folder_of(module), folder_of(target)) for module, target in imports()}
    assert {pair for pair in pairs if pair[1] and pair[0] != pair[1]} == {*declared_needs()}


def test_a_folder_imports_of_the_gate_and_the_command_line_what_registers_its_own() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, target in imports()
        if folder_of(module)
        and room(target) in {"gate", "cli"}
        and not {(target, part) for part in module.split(".")} & REGISTERS
    ]
    assert not wrong, "\n".join(wrong)


def strings(tree: ast.Module) -> list[str]:
    """The strings of a module, without docstrings and what follows a setting as its docstring."""
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [
        node.value
        for node in constants
        if isinstance(node.value, str) and id(node) not in documents
    ]


def test_the_kernel_names_no_paper_and_no_extension() -> None:
    plugins = [plugin for kind in KINDS for plugin in find_plugins(kind).values()]
    own = own_folders()
    names = {path.name for path in own}
    names |= {p.name for p in plugins if any(p.path.is_relative_to(path) for path in own)}
    names -= WORDS
    pattern = re.compile(rf"(?<![\w-])({'|'.join(sorted(names))})(?![\w-])")
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] in TAKEN_OUT:
            continue
        for text in strings(ast.parse(path.read_text(encoding="utf-8"))):
            is_example = text.startswith("medprobe ")  # of a command, on the sample world
            assert is_example or text == RULE or not pattern.search(text), f"{path}: {text!r}"


def test_a_test_of_the_kernel_imports_no_paper_and_no_extension() -> None:
    pattern = re.compile(r"^(from|import) (medprobe\.)?(papers|extensions)\b", re.MULTILINE)
    for name in {*rooms()} - {*TAKEN_OUT}:
        for path in (DOCUMENT.parents[2] / "tests" / name).rglob("*.py"):
            assert not pattern.search(path.read_text(encoding="utf-8")), path


def test_the_drawing_is_of_the_imports() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_drawing(text), "run `python -m bench.architecture`"
