"""`medprobe list`: what there is to choose from."""

import inspect
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from medprobe import benchmarks, methods
from medprobe.core.params import Params
from medprobe.papers import papers


def list_(what: str, params: Params) -> None:
    """Print the models of params.yaml, or the methods, the benchmarks' builders or the papers."""
    columns, rows = LISTS[what]
    table = Table(*columns)
    for row in rows(params):
        table.add_row(*row)
    Console().print(table)


def _models(params: Params) -> Iterator[tuple[str, ...]]:
    for kind, named in params.models.by_kind().items():
        for name in named:
            yield name, kind, ", ".join(methods.find_by_kind([kind]))


def _methods(params: Params) -> Iterator[tuple[str, ...]]:
    for name in methods.list_names():
        plugin = methods.find(name)
        yield name, ", ".join(plugin.KINDS), plugin.METRIC, _first_sentence(plugin)


def _benchmarks(params: Params) -> Iterator[tuple[str, ...]]:
    for name in benchmarks.list_names():
        about = benchmarks.find(name).metadata
        named = ", ".join(params.benchmarks.get(name, {}))
        yield name, named, ", ".join(about.sources), about.description


def _papers(params: Params) -> Iterator[tuple[str, ...]]:
    for name, paper in papers().items():
        yield name, paper.title, paper.version, "yes" if paper.stands else "no"


def _first_sentence(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition(".")[0].replace("\n", " ")


Rows = Callable[[Params], Iterator[tuple[str, ...]]]
LISTS: Final[dict[str, tuple[tuple[str, ...], Rows]]] = {
    "models": (("model", "kind", "methods that serve it"), _models),
    "methods": (("method", "kinds of model", "scored by", "what it does"), _methods),
    "benchmarks": (("builder", "in params.yaml", "sources in data/", "what it asks"), _benchmarks),
    "papers": (("paper", "title", "version", "its figures stand"), _papers),
}
