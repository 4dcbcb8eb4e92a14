"""`medprobe list`: the available models, methods, benchmarks and papers."""

import inspect
from collections.abc import Callable, Iterator
from typing import Final

from medprobe import benchmarks, methods
from medprobe.commands import terminal
from medprobe.commands.outputs import Listed
from medprobe.core.params import Params
from medprobe.papers import papers


def list_(what: str, params: Params, *, as_json: bool = False) -> None:
    """Print a table of the models of params.yaml, the methods, the builders or the papers."""
    columns, rows = LISTS[what]
    if as_json:
        Listed(rows=[dict(zip(columns, row, strict=True)) for row in rows(params)]).print()
        return
    table = terminal.table(*columns)
    for row in rows(params):
        table.add_row(*row)
    terminal.console().print(table)


def _models(params: Params) -> Iterator[tuple[str, ...]]:
    for kind, by_name in params.models.by_kind().items():
        for name in by_name:
            yield name, kind, ", ".join(methods.find_by_kind([kind]))


def _methods(params: Params) -> Iterator[tuple[str, ...]]:
    for name in methods.list_names():
        plugin = methods.find(name)
        yield name, ", ".join(plugin.KINDS), plugin.METRIC, _first_sentence(plugin)


def _benchmarks(params: Params) -> Iterator[tuple[str, ...]]:
    for name in benchmarks.list_names():
        metadata = benchmarks.find(name).metadata
        configured = ", ".join(params.benchmarks.get(name, {}))
        yield name, configured, ", ".join(metadata.sources), metadata.description


def _papers(params: Params) -> Iterator[tuple[str, ...]]:
    for name, paper in papers().items():
        yield name, paper.title, paper.version, "yes" if paper.stands else "no"


def _first_sentence(plugin: object) -> str:
    return (inspect.getdoc(plugin) or "").partition(".")[0].replace("\n", " ")


Rows = Callable[[Params], Iterator[tuple[str, ...]]]
LISTS: Final[dict[str, tuple[tuple[str, ...], Rows]]] = {
    "models": (("model", "kind", "methods that serve it"), _models),
    "methods": (("method", "kinds of model", "scored by", "what it does"), _methods),
    "benchmarks": (("builder", "in params.yaml", "sources in data/", "question"), _benchmarks),
    "papers": (("paper", "title", "version", "figures confirmed"), _papers),
}
