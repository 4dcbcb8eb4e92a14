"""The drawing of docs/concepts/architecture.md, made from the imports of the code.

`python -m bench.architecture` writes it.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1] / "src/medprobe"
DOCUMENT: Final = Path(__file__).parents[1] / "docs/concepts/architecture.md"
BEGIN: Final = "<!-- drawing:"
END: Final = "<!-- end of the drawing -->"


@cache
def imports() -> tuple[tuple[str, str], ...]:
    """Each `(module, module it imports)` of the package, imports inside functions too."""
    return tuple(_read_imports())


def _read_imports() -> Iterator[tuple[str, str]]:
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
                if name.split(".")[0] == ROOT.name and (target := _existing(name)):
                    yield module, target


def _existing(name: str) -> str:
    """The module that an imported name is, or is in; none for the package itself."""
    while name != ROOT.name:
        path = ROOT.joinpath(*name.split(".")[1:])
        if path.is_dir() or path.with_suffix(".py").is_file():
            return name
        name = name.rpartition(".")[0]
    return ""


def declared_needs() -> list[tuple[str, str]]:
    """Pairs of folders of extensions: one, and another that the page says it needs."""
    lists = re.findall(r"`(\w+)` \(which needs ([^)]+)\)", DOCUMENT.read_text(encoding="utf-8"))
    return [
        (f"extensions/{folder}", f"extensions/{needed}")
        for folder, words in lists
        for needed in re.findall(r"`(\w+)`", words)
    ]


def room(module: str) -> str:
    """Return the room of a module; the package's own `__init__` is in none."""
    return module.partition(".")[2].partition(".")[0] or "__init__"


def draw() -> str:
    """Draw the rooms as a Mermaid graph, without the arrows that follow from others."""
    graph: dict[str, set[str]] = {}
    for module, target in imports():
        if room(module) != "__init__":
            graph.setdefault(room(module), set()).add(room(target))
    graph = {name: targets - {name} for name, targets in graph.items()}
    reached: dict[str, set[str]] = {}
    lines = []
    for name in TopologicalSorter(graph).static_order():
        targets = graph.get(name, set())
        further = set().union(*(reached[target] for target in targets))
        reached[name] = targets | further
        lines += [f"  {name} --> {target}" for target in sorted(targets - further)]
    return "\n".join(["```mermaid", "graph TD", *sorted(lines), "```"])


def with_drawing(text: str) -> str:
    """Put the drawing into the text of the page."""
    head, _, rest = text.partition(BEGIN)
    line, _, rest = rest.partition("\n")
    return f"{head}{BEGIN}{line}\n{draw()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_drawing(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
