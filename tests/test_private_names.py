"""No private name of another library: one with a leading underscore, or of an undocumented module.

Names are read off the syntax: imports, attributes of what was imported, and the modules that a call
such as `import_module("torch.nn")` names in a string. What an object of a library has is not seen.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from helpers import ROOT
from medprobe.pipeline import fork_server

LIBRARIES: Final = {
    *("dvc", "mlflow", "torch", "transformers", "great_expectations", "pandas", "polars"),
    *("atexit", "multiprocessing", "threading", "weakref"),
}
BY_NAME: Final = {"import_module", "setattr", "delattr", "patch"}  # calls that name modules
UNDOCUMENTED: Final = (
    r"dvc\.(?!api\b|exceptions\b)\w+",
    r"mlflow\.(store|utils)",
    r"torch\.ops\.mkldnn",
    r"transformers\.(conversion_mapping|core_model_loading|integrations|modeling_utils)",
    r"great_expectations\.(compatibility|data_context\.types)",
    r"great_expectations\.expectations\.(registry|metrics\.\w+)",
)
PRIVATE: Final = re.compile(rf"(?:{'|'.join(UNDOCUMENTED)})\b|[\w.]*?\._(?!_)\w+")
ALLOWED: Final = {  # at most three, each with its reason
    "dvc.repo": "DVC's public modules do not say which stages are out of date",
    "great_expectations.expectations.metrics.map_metric_provider": "the document Create a Custom"
    " Multicolumn Map Expectation imports its classes from there; nothing else gives them",
}


def names(tree: ast.Module) -> Iterator[str]:
    """The dotted names of a file's imports, and of what it reads or sets of them."""
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
                module = alias.name if alias.asname else alias.name.split(".")[0]
                origins[alias.asname or module] = module
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in origins:
                yield f"{origins[first]}.{rest}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_NAME:
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            whole = [ast.unparse(a) for a in node.args if isinstance(a, ast.Name | ast.Attribute)]
            yield from (text for text in texts if isinstance(text, str))
            if texts and whole:  # setattr(module, "name", …)
                first, _, rest = whole[0].partition(".")
                yield ".".join(filter(None, (origins.get(first, ""), rest, str(texts[0]))))


def private(source: str) -> set[str]:
    """The private names of other libraries that a file's text holds."""
    of_libraries = {n for n in names(ast.parse(source)) if n.split(".")[0] in LIBRARIES}
    return {match[0] for name in of_libraries if (match := PRIVATE.match(name))}


def test_private_names_are_found() -> None:
    assert private("import torch\ntorch._dynamo.reset(torch.nn.Linear)") == {"torch._dynamo"}
    assert private("from dvc.stage import run\nrun._run = 1") == {"dvc.stage"}
    assert private("import atexit as end\nend._run_exitfuncs()") == {"atexit._run_exitfuncs"}
    assert private("import_module('mlflow.store.db.utils')") == {"mlflow.store"}
    assert private("import weakref as w\nsetattr(w.finalize, '_x', 1)") == {"weakref.finalize._x"}
    assert not private("import torch\ntorch.__version__, self._own, torch.nn.Linear")


def test_the_fork_server_imports_no_undocumented_module() -> None:
    """Its list of libraries is no call, so that `names` does not see it."""
    assert [name for name in fork_server.LIBRARIES if PRIVATE.match(name)] == []
    assert PRIVATE.match("mlflow.store.tracking.sqlalchemy_store")


def test_no_private_name_is_used() -> None:
    assert len(ALLOWED) <= 3
    used: dict[str, set[str]] = {}
    for folder in ("src/medprobe", "bench", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in private(path.read_text(encoding="utf-8")):
                used.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {name: files for name, files in used.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(used), "drop what is no longer used"
