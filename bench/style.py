"""The house style (docs/style.md), as far as a program can see it.

    python -m bench.style              # count the places that break a rule; fail if there are any
    python -m bench.style documents    # print the places of one room, or of the documents

Four rules are checked. No name that the code, a test or a bench binds is in `UNCLEAR`. No two
public classes share a name, those of `SHARED` aside. Everything public in the modules of `PUBLIC`
has a Google-style docstring. No text has a phrase of `PHRASES`: the documents, and the strings and
docstrings of the code, prompts aside.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "src/medprobe"
CHECKED_FOR_NAMES: Final = (ROOT / "tests", ROOT / "bench")
DOCUMENTS: Final = "documents"

UNCLEAR: Final = frozenset(  # pronouns and participles, which do not say what they hold
    {
        *("asked", "done", "found", "given", "kept", "known", "left", "made"),
        *("one", "own", "said", "shown", "some", "there", "told"),
    }
)
FORMAT_KEYS: Final = {("shared.py", "made"), ("params.py", "own")}  # names that a file format fixes
SHARED: Final = {  # names of several public classes -> why
    "Settings": "every method and builder has its own, by the contract of plugins",
    "Judgment": "a method and the family that scores it, each named as its module",
    "Perplexity": "a method and the family that scores it, each named as its module",
    "Model": "a checkpoint: the library's holds it, the engine's is loaded from it",
    "Results": "a project's results as tables: the library's for notebooks, the report's for pages",
}
PUBLIC: Final = tuple(  # what people call, or implement
    PACKAGE / name
    for name in (
        "library/__init__.py",
        "library/model.py",
        "library/probing.py",
        "library/project.py",
        "methods/__init__.py",
        "benchmarks/__init__.py",
        "metrics/__init__.py",
    )
)
PHRASES: Final = {  # what is not written -> what to write
    r"anew": "again",
    r"mend(s|ed|ing)?": "fix, repair",
    r"one's own": "your own",
    r"(that|which) (is|are) none": "invalid",
    r"is no (name|number|rating|text)": "is not a …",
    r"no other but": "only",
    r"beside": "next to, with, besides",
    r"told(?! apart)|tells (that|what|how|you|no)": "print, record, compute",
    r"elsewhere": "say where",
    r"a (line|row|file|folder|query|number|table) an? \w+": "one line per …",
    r"stands? (in|on|under|below|at|as|behind|there|before|for itself)": "is in, is",
    r"whoever|somebody": "you, anyone who",
    r"lies|lives": "is in",
    r"in the place of": "in place of, instead of",
    r"is there already": "already exists",
    r"of that name is there": "exists",
}
FORBIDDEN: Final = {
    re.compile(rf"\b({phrase})\b", re.IGNORECASE): remedy for phrase, remedy in PHRASES.items()
}


@dataclass(frozen=True)
class Place:
    """A place that breaks a rule."""

    path: Path
    line: int
    problem: str

    @property
    def room(self) -> str:
        """The room of a file of the package, `tests`, `bench` or `DOCUMENTS`."""
        for folder in CHECKED_FOR_NAMES:
            if folder in self.path.parents:
                return folder.name
        if PACKAGE not in self.path.parents:
            return DOCUMENTS
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.problem}"


def places() -> Iterator[Place]:
    """All places that break a rule."""
    for path in documents():
        yield from phrases(path, 1, path.read_text(encoding="utf-8"))
    for path in sorted(path for folder in CHECKED_FOR_NAMES for path in folder.glob("*.py")):
        yield from names(path, ast.parse(path.read_text(encoding="utf-8")))
    homes: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from names(path, tree)
        yield from classes(path, tree, homes)
        if path in PUBLIC:
            yield from docstrings(path, tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if "[X]" in node.value and "\n" not in node.value:  # a prompt, which is data
                    continue
                yield from phrases(path, node.lineno, node.value)


def documents() -> list[Path]:
    """The documents. What CHANGELOG.md says of the past stays as it is."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def phrases(path: Path, line: int, text: str) -> Iterator[Place]:
    """The phrases of a text that are not written. In a document, code is left out, and so is the
    page that lists them."""
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```$", _blank, text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"`[^`]*`", _blank, text)
    if path.name == "style.md":
        return
    for pattern, remedy in FORBIDDEN.items():
        for match in pattern.finditer(text):
            at = line + text.count("\n", 0, match.start())
            yield Place(path, at, f"'{match[0]}' is not written: {remedy}")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def names(path: Path, tree: ast.Module) -> Iterator[Place]:
    """The names that are bound and do not say what they hold.

    >>> tree = ast.parse("for one in found: told = one.made")
    >>> [place.problem for place in names(Path("x.py"), tree)]
    ["the name 'one' does not say what it holds", "the name 'told' does not say what it holds"]
    """
    for node in ast.walk(tree):
        for name in _bound(node):
            if name.strip("_").lower() in UNCLEAR and (path.name, name) not in FORMAT_KEYS:
                line = getattr(node, "lineno", 1)
                yield Place(path, line, f"the name '{name}' does not say what it holds")


def classes(path: Path, tree: ast.Module, homes: dict[str, Path]) -> Iterator[Place]:
    """The public classes whose name another class of the package has; `homes` says which.

    >>> homes = {"Pair": ROOT / "y.py"}
    >>> [place.problem for place in classes(ROOT / "x.py", ast.parse("class Pair: ..."), homes)]
    ["y.py has a class 'Pair' too"]
    """
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            home = homes.setdefault(node.name, path)
            if home != path and node.name not in SHARED:
                problem = f"{home.relative_to(ROOT)} has a class '{node.name}' too"
                yield Place(path, node.lineno, problem)


def _bound(node: ast.AST) -> list[str]:
    """The names that a node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return [name]
        case (
            ast.alias(asname=str(name))
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            return [name]
        case _:
            return []


def docstrings(path: Path, tree: ast.Module) -> Iterator[Place]:
    """What is public and lacks a docstring, or has arguments and no `Args:` in it. `Returns:` is
    left out where the summary line says what is returned.

    >>> tree = ast.parse("'Numbers.'\\ndef double(x): 'Twice x.'\\ndef halve(x): ...")
    >>> [place.problem for place in docstrings(Path("x.py"), tree)]
    ["double: its docstring has no 'Args:'", 'halve has no docstring']
    """
    if not ast.get_docstring(tree):
        yield Place(path, 1, "the module has no docstring")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield Place(path, node.lineno, f"{node.name} has no docstring")
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    yield from _function(path, part, f"{node.name}.{part.name}")
        elif isinstance(node, ast.FunctionDef):
            yield from _function(path, node, node.name)


def _function(path: Path, node: ast.FunctionDef, name: str) -> Iterator[Place]:
    if node.name.startswith("_"):
        return
    text = ast.get_docstring(node)
    if not text:
        yield Place(path, node.lineno, f"{name} has no docstring")
        return
    if any(isinstance(by, ast.Name) and by.id == "property" for by in node.decorator_list):
        return
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    if any(argument.arg not in ("self", "cls") for argument in arguments) and "Args:" not in text:
        yield Place(path, node.lineno, f"{name}: its docstring has no 'Args:'")


def main(rooms: list[str]) -> int:
    """Print the places of some rooms, or how many each room has; how many there are."""
    chosen = [place for place in places() if not rooms or place.room in rooms]
    if rooms:
        print(*chosen, sep="\n", end="\n" if chosen else "")
    for room, count in sorted(Counter(place.room for place in chosen).items()):
        print(f"{room}: {count}")
    return len(chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
