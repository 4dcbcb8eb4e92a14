"""`medprobe show` and `medprobe diff`: all answers to one query, and what two models differ in."""

from rich.console import Console
from rich.table import Table

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params
from medprobe.report.queries import Answers, answers


def show(benchmark: str, query: str, params: Params) -> None:
    """Print what every model answered to a query under every method, right answers marked.

    Raises BadInput where the benchmark was not probed or has no such query.
    """
    found = _answers(benchmark, params)
    content = found.content
    at = next((at for at, one in enumerate(content["queries"]) if one[0] == query), None)
    if at is None:
        where = f"reports/queries/{benchmark}.html lists those that were asked"
        raise BadInput("show", f"{benchmark} has no query '{query}'", where)
    _, _, relation, _, prompt, right, *own = content["queries"][at]
    heads = own[0] if own else content["heads"]
    table = Table()
    table.add_column("model/method", no_wrap=True)
    table.add_column("answers, the first first" if content["ranked"] else "answers")
    for system, ranked, hits in zip(
        content["systems"], found.ranked[:, at], found.right[:, at], strict=True
    ):
        names = [found.names[place] for place in ranked if place >= 0]
        told = [
            ("✓ " if hit else "") + (name if content["ranked"] else f"{head}: {name}")
            for head, name, hit in zip(heads, names, hits, strict=False)
        ]
        if told:
            table.add_row("/".join(system), "; ".join(told))
    console = Console(markup=False, emoji=False)
    console.print(f"{relation}: {prompt}")
    console.print(f"{content['called']}: {', '.join(right)}")
    console.print(table)


def diff(benchmark: str, a: str, b: str, params: Params) -> None:
    """Print the queries that one of two systems, `<model>/<method>`, gets right and the other not:
    where names are ranked, by the first one.

    Raises BadInput where the benchmark was not probed, or not by these.
    """
    found = _answers(benchmark, params)
    known = ["/".join(system) for system in found.content["systems"]]
    for name in (a, b):
        if name not in known:
            raise BadInput(
                "diff", f"no '{name}'{nearest(name, known)}", f"one of {', '.join(known)}"
            )
    of_a, of_b = (found.content["best"][known.index(name)] for name in (a, b))
    table = Table("query", "prompt", found.content["called"].lower(), "right")
    for (query, _, _, _, prompt, right, *_), one, other in zip(
        found.content["queries"], of_a, of_b, strict=True
    ):
        if " " not in (one, other) and (one == "1") != (other == "1"):
            table.add_row(query, prompt, ", ".join(right), a if one == "1" else b)
    Console(markup=False, emoji=False).print(table)


def _answers(benchmark: str, params: Params) -> Answers:
    params.builder(benchmark)
    tables = sorted(places.PREDICTIONS.glob(f"*/*/{benchmark}.parquet"))
    found = answers(places.BENCHMARKS / benchmark, tables)
    if found is None:
        remedy = "run `medprobe repro` to probe the models"
        raise BadInput(places.PREDICTIONS, f"no answers to {benchmark}", remedy)
    return found.shown(text=True)
