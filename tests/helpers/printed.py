"""What a paper prints, against the file of its published numbers."""

from typing import Any

from medprobe.core.papers import Paper, PublishedRow, papers


def rows_of(paper: Paper) -> list[PublishedRow]:
    return [row for table in paper.tables.values() for row in table.rows]


def hubs(paper: str, benchmark: str, method: str, begins: str) -> set[str | None]:
    """The checkpoints of the rows of a benchmark and a method whose model begins so."""
    models = {
        row.model
        for row in rows_of(papers()[paper])
        if (row.benchmark, row.method) == (benchmark, method) and row.model.startswith(begins)
    }
    return {papers()[paper].models[model].hub for model in models}


def check_adopted(paper: str, printed: dict[tuple[str, ...], dict[str, Any]]) -> None:
    """Fail unless the settings by method and benchmark, and of rewiring, are adopted."""
    adopted = papers()[paper].adopted
    for (method, *benchmark), settings in printed.items():
        if method == "rewire":
            chosen = [adopted.rewire]
        else:
            by_method = [kind[method] for kind in adopted.methods.values() if method in kind]
            chosen = [by_benchmark[benchmark[0]] for by_benchmark in by_method]
        assert chosen and all(settings.items() <= choices.items() for choices in chosen), method
