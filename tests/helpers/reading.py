"""What a builder reads of the project in the working folder: dvc.yaml's dependencies are made from
what it says that it reads."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.needed import NEEDED
from medprobe import benchmarks
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import ANSWER_SPACE, BenchmarkTables
from medprobe.pipeline import check
from medprobe.pipeline.stages.build import build

opened: list[str] = []


def listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        opened.append(arguments[0])


@cache
def start_listening() -> None:
    """Once: a hook stays."""
    sys.addaudithook(listen)


def polars_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """polars and DuckDB open files outside of Python: what polars is asked for counts."""
    import polars as pl

    def heard(read: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *more: Any, **named: Any) -> Any:
            opened.append(str(path))
            return read(path, *more, **named)

        return call

    for name in ("scan_lines", "read_csv"):
        monkeypatch.setattr(pl, name, heard(getattr(pl, name)))


def build_tables(builder: str, settings: dict[str, Any]) -> BenchmarkTables:
    build("mine", Params(benchmarks={builder: {"mine": settings}}))
    return BenchmarkTables.read(Path("outputs/benchmarks/mine"))


def check_reading(builder: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail unless it reads its sources, all of them and nothing else, and counts what it read."""
    sources = [Path(source) for source in benchmarks.find(builder).metadata.sources]
    polars_is_heard(monkeypatch)
    start_listening()
    opened.clear()
    tables = build_tables(builder, settings)
    data = Path("data").resolve()
    read = {Path(path).resolve() for path in opened}
    inside = {path.relative_to(data) for path in read if path.is_relative_to(data)}
    assert [p for p in inside if not any(p.is_relative_to(source) for source in sources)] == []
    files = {path for path in inside if (data / path).is_file()}
    assert [s for s in sources if not any(p.is_relative_to(s) for p in files)] == []
    source_counts = tables.others["sources"]
    assert list(source_counts.columns) == ["source", "what", "name", "rows"]
    read_from = [
        Path(source_path)
        for source_path in source_counts.loc[source_counts["source"] != "", "source"]
    ]
    assert all(
        any(source_path.is_relative_to(source) for source in sources) for source_path in read_from
    )
    assert {
        s for s in sources if any(source_path.is_relative_to(s) for source_path in read_from)
    } == {*sources}
    assert (source_counts["rows"] > 0).all()
    assert tables.builder == builder
    declared = benchmarks.find(builder).tables
    assert declared is not None
    assert {*tables.others} - {"sources"} == {*declared} - {ANSWER_SPACE}  # which few have
    assert set(tables.queries["benchmark"]) == {"mine"}


def check_refusal(builder: str, settings: dict[str, Any], key: str) -> None:
    """Fail unless a path outside of the sources is refused, before any stage runs as well."""
    says = rf"params\.yaml: benchmarks\.{builder}\.mine\.{key}: data/.* is not in a source"
    with pytest.raises(BadInput, match=says):
        build_tables(builder, settings)
    with pytest.raises(BadInput, match=says):
        check.check(Params.model_validate(NEEDED | {"benchmarks": {builder: {"mine": settings}}}))
