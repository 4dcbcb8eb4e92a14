"""`medprobe show`: all answers to one query, or the queries on which two systems differ."""

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params
from medprobe.metrics.results import prediction_tables
from medprobe.pipeline import outputs
from medprobe.report.queries import RawAnswers, read_answers


def show(benchmark: str, query: str, params: Params) -> None:
    """Print all answers to a query, with a mark on the right ones.

    A query goes by its identifier, or by what a page without names calls it, such as `query 7`.
    """
    raw_answers = _read(benchmark, params)
    answers = raw_answers.label(text=True)
    content = answers.content
    known = identifiers = [entry[0] for entry in content["queries"]]
    if query not in identifiers:
        identifiers = [entry[0] for entry in raw_answers.label(text=False).content["queries"]]
    if query not in identifiers:
        problem = f"{benchmark} has no query '{query}'{nearest(query, known)}"
        raise BadInput("show", problem, f"reports/queries/{benchmark}.html lists the queries")
    number = identifiers.index(query)
    _, _, relation, _, prompt, right_answers, *query_heads = content["queries"][number]
    heads = query_heads[0] if query_heads else content["heads"]
    answers_head = "answers, best first" if content["ranked"] else "answers"
    rows = []
    for system, ranked, hits in zip(
        content["systems"], answers.ranked[:, number], answers.hits[:, number], strict=True
    ):
        names = [answers.names[place] for place in ranked if place >= 0]
        cells = [
            ("✓ " if hit else "") + (name if content["ranked"] else f"{head}: {name}")
            for head, name, hit in zip(heads, names, hits, strict=False)
        ]
        if cells:
            rows.append(("/".join(system), "; ".join(cells)))
    print(f"{relation}: {prompt}")
    print(f"{content['called']}: {', '.join(right_answers)}")
    outputs.print_table(("model/method", answers_head), rows)


def show_differing(benchmark: str, a: str, b: str, params: Params) -> None:
    """Print the queries that exactly one of two systems, `<model>/<method>`, answers correctly.

    If names are ranked, the first name counts.
    """
    content = _read(benchmark, params).label(text=True).content
    systems = ["/".join(system) for system in content["systems"]]
    if a == b:
        raise BadInput("--differ", f"'{a}' twice", "name two systems, MODEL/METHOD")
    for name in (a, b):
        if name not in systems:
            remedy = f"choose one of {', '.join(systems)}"
            raise BadInput("--differ", f"unknown system '{name}'{nearest(name, systems)}", remedy)
    best_a, best_b = (content["best"][systems.index(name)] for name in (a, b))
    rows = []
    for entry, rank_a, rank_b in zip(content["queries"], best_a, best_b, strict=True):
        query, _, _, _, prompt, right_answers, *_ = entry
        if " " not in (rank_a, rank_b) and (rank_a == "1") != (rank_b == "1"):
            system = a if rank_a == "1" else b
            rows.append((query, prompt, ", ".join(right_answers), system))
    outputs.print_table(("query", "prompt", content["called"].lower(), "right"), rows)


def _read(benchmark: str, params: Params) -> RawAnswers:
    params.builder(benchmark)
    tables = prediction_tables(places.PREDICTIONS, params)
    tables = [path for path in tables if path.stem == benchmark]
    answers = read_answers(places.BENCHMARKS / benchmark, tables)
    if answers is None:
        remedy = "run `medprobe repro` to probe the models"
        raise BadInput(places.PREDICTIONS, f"no answers to {benchmark}", remedy)
    return answers
