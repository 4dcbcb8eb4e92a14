"""`medprobe list`: the available models, methods, benchmarks, metrics, papers and checkpoints."""

import inspect
from collections.abc import Callable, Iterator
from typing import Final

from medprobe import benchmarks, methods, metrics
from medprobe.core.papers import checkpoints, papers
from medprobe.core.params import Params
from medprobe.core.plugins import find_outside_plugins
from medprobe.pipeline import outputs


def list_(what: str, params: Params) -> None:
    """Print a table of what there is: of models, methods, or any other key of LISTS."""
    columns, rows = LISTS[what]
    outputs.print_table(columns, rows(params))


def _models(params: Params) -> Iterator[tuple[str, ...]]:
    for kind, by_name in params.models.by_kind().items():
        for name in by_name:
            yield name, kind, ", ".join(methods.find_by_kind([kind]))


def _methods(params: Params) -> Iterator[tuple[str, ...]]:
    for name in methods.list_names():
        plugin = methods.find(name)
        words = ", ".join(plugin.KINDS), plugin.METRIC, _first_sentence(plugin)
        yield name, *words, _origin("methods", name)


def _benchmarks(params: Params) -> Iterator[tuple[str, ...]]:
    for name in benchmarks.list_names():
        metadata = benchmarks.find(name).metadata
        configured = ", ".join(params.benchmarks.get(name, {}))
        words = configured, ", ".join(metadata.sources), metadata.description
        yield name, *words, _origin("benchmarks", name)


def _metrics(params: Params) -> Iterator[tuple[str, ...]]:
    for family in metrics.list_names():
        for metric in metrics.find(family).METRICS:
            yield metric.name, family, metric.better, metric.source, _origin("metrics", family)


def _papers(params: Params) -> Iterator[tuple[str, ...]]:
    for name, paper in papers().items():
        yield name, paper.title, paper.version, "yes" if paper.stands else "no"


def _checkpoints(params: Params) -> Iterator[tuple[str, ...]]:
    for name, models in checkpoints().items():
        files = ", ".join(file for file, paper in papers().items() if name in paper.models)
        yield name, models[0].hub or "", files


def _origin(kind: str, name: str) -> str:
    plugin = find_outside_plugins(kind).get(name)
    return plugin.origin if plugin else "medprobe"


def _first_sentence(plugin: object) -> str:
    return (inspect.getdoc(plugin) or "").partition(".")[0].replace("\n", " ")


Rows = Callable[[Params], Iterator[tuple[str, ...]]]
LISTS: Final[dict[str, tuple[tuple[str, ...], Rows]]] = {
    "models": (("model", "kind", "methods that serve it"), _models),
    "methods": (("method", "kinds of model", "scored by", "what it does", "from"), _methods),
    "benchmarks": (
        ("builder", "in params.yaml", "sources in data/", "question", "from"),
        _benchmarks,
    ),
    "metrics": (("metric", "family", "better", "source", "from"), _metrics),
    "papers": (("paper", "title", "version", "numbers in the report"), _papers),
    "checkpoints": (("published", "on the hub", "papers"), _checkpoints),
}
