"""`medprobe list`: the available models, methods, benchmarks, metrics, papers and checkpoints.

Each list imports what it needs: PyTorch alone would take longer than all the rest.
"""

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from medprobe.core.params import Params
from medprobe.core.plugins import Plugin, class_name, find_outside_plugins, find_plugins
from medprobe.pipeline import outputs


def list_(what: str, params: Params) -> None:
    """Print a table of what there is: of models, methods, or any other key of LISTS."""
    columns, rows = LISTS[what]
    outputs.print_table(columns, rows(params))


class Facts(NamedTuple):
    """What a list says of a method."""

    kinds: tuple[str, ...]
    metric: str
    doc: str


def read_facts(plugin: Plugin) -> Facts:
    """Read a method's facts from the source of its class, or of the class itself."""
    with contextlib.suppress(SyntaxError, ValueError, KeyError):  # importing says what is wrong
        classes = {
            node.name: node
            for node in ast.parse(plugin.path.read_bytes()).body
            if isinstance(node, ast.ClassDef) and [*map(ast.unparse, node.bases)] == ["Method"]
        }
        found = classes[class_name(plugin.name)]
        values: dict[str, Any] = {"METRIC": "accuracy"}
        for node in found.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("KINDS", "METRIC"):
                values[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
        return Facts(values["KINDS"], values["METRIC"], ast.get_docstring(found) or "")
    from medprobe import methods

    method = methods.find(plugin.name)
    return Facts(method.KINDS, method.METRIC, inspect.getdoc(method) or "")


def _models(params: Params) -> Iterator[tuple[str, ...]]:
    facts = {name: read_facts(plugin) for name, plugin in find_plugins("methods").items()}
    for kind, by_name in params.models.by_kind().items():
        able = ", ".join(name for name, method in facts.items() if kind in method.kinds)
        for name in by_name:
            yield name, kind, able


def _methods(params: Params) -> Iterator[tuple[str, ...]]:
    for name, plugin in find_plugins("methods").items():
        facts = read_facts(plugin)
        first_sentence = facts.doc.partition(".")[0].replace("\n", " ")
        words = ", ".join(facts.kinds), facts.metric, first_sentence
        yield name, *words, _origin("methods", name)


def _benchmarks(params: Params) -> Iterator[tuple[str, ...]]:
    from medprobe import benchmarks

    for name in benchmarks.list_names():
        metadata = benchmarks.find(name).metadata
        configured = ", ".join(params.benchmarks.get(name, {}))
        words = configured, ", ".join(metadata.sources), metadata.description
        yield name, *words, _origin("benchmarks", name)


def _metrics(params: Params) -> Iterator[tuple[str, ...]]:
    from medprobe import metrics

    for scorer in metrics.list_names():
        for metric in metrics.find(scorer).METRICS:
            yield metric.name, scorer, metric.better, metric.source, _origin("metrics", scorer)


def _papers(params: Params) -> Iterator[tuple[str, ...]]:
    from medprobe.core.papers import papers

    for name, paper in papers().items():
        yield name, paper.title, paper.version, "yes" if paper.stands else "no"


def _checkpoints(params: Params) -> Iterator[tuple[str, ...]]:
    from medprobe.core.papers import checkpoints, papers

    for name, models in checkpoints().items():
        files = ", ".join(file for file, paper in papers().items() if name in paper.models)
        yield name, models[0].hub or "", files


def _origin(kind: str, name: str) -> str:
    plugin = find_outside_plugins(kind).get(name)
    return plugin.origin if plugin else "medprobe"


Rows = Callable[[Params], Iterator[tuple[str, ...]]]
LISTS: Final[dict[str, tuple[tuple[str, ...], Rows]]] = {
    "models": (("model", "kind", "methods that serve it"), _models),
    "methods": (("method", "kinds of model", "scored by", "what it does", "from"), _methods),
    "benchmarks": (
        ("builder", "in params.yaml", "sources in data/", "question", "from"),
        _benchmarks,
    ),
    "metrics": (("metric", "scorer", "better", "source", "from"), _metrics),
    "papers": (("paper", "title", "version", "numbers in the report"), _papers),
    "checkpoints": (("published", "on the hub", "papers"), _checkpoints),
}
