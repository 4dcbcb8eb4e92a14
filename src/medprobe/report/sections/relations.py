"""By relation: which kind of fact is known to which model."""

from medprobe.figures import plots
from medprobe.figures.relations import drawn, single
from medprobe.report.blocks import Cell, Part, Table, folded, part
from medprobe.report.numbers import cell
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> list[Part]:
    """A drawing for the leading method and a table of relations against models and methods; nothing
    where relations are too many to be read at a glance."""
    rows, metadata = results.rows(benchmark), results.benchmarks[benchmark]
    drawings = drawn(rows, metadata)
    if not drawings:
        return []
    name = results.primary(benchmark)
    table = single(rows, metadata).pivot_table(
        index="relation", columns=["method", "model"], values="value"
    )
    body: list[list[str | Cell]] = [
        [str(relation).replace("_", " "), *(cell(name, value) for value in line)]
        for relation, line in zip(table.index, table.to_numpy(), strict=True)
    ]
    heads = ["relation", *(f"{model} · {method}" for method, model in table.columns)]
    values = Table(heads, body, plots.label(name))
    return part("By relation", drawings, folded("All methods, as a table", [values]))
