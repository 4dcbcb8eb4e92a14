"""Stage `validate`: the gate. Nothing is probed on data that fails its expectations.

It writes `result.json` and `index.html`, even if a check fails, and a file in `outputs/passed` if
no critical check fails. Later stages depend on that file alone, whose content is always the same.
So a gate that runs again and only adds a warning makes no later stage run again.
"""

import json
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import benchmarks
from medprobe.benchmarks import counts
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing, write_whole
from medprobe.core.params import Params
from medprobe.core.settings import parse_section
from medprobe.core.tables import PLACES, BenchmarkTables, Metadata
from medprobe.gate import run as gate
from medprobe.gate.suites import load

RULES: Final = ("dropped", "unread column")  # kinds of `sources` whose names are no data


def validate(name: str, params: Params) -> None:
    """Check a benchmark's tables against its suites in `expectations/<builder>/`.

    Writes `outputs/validation/<name>/` and `outputs/passed/<name>`. Failing rows are printed,
    without text of the data unless `track.text` of params.yaml allows it.
    """
    passed = places.PASSED / name
    passed.unlink(missing_ok=True)
    folder, about = places.BENCHMARKS / name, places.ABOUT / f"{name}.json"
    benchmark_tables = BenchmarkTables.read(folder)
    builder = params.builder(name)  # DVC has built the tables by it
    where = f"params.yaml: benchmarks.{builder}.{name}"
    settings = parse_section(
        benchmarks.find(builder).settings, params.benchmarks[builder][name], where
    ).model_dump(mode="json")
    tables = {
        "queries": benchmark_tables.queries,
        "candidates": benchmark_tables.candidates,
        **benchmark_tables.others,
    }
    run_gate(
        name,
        places.EXPECTATIONS / builder,
        needed=["queries", "candidates"],
        tables=tables,
        files={table: folder / f"{table}.parquet" for table in tables},
        settings=settings,
        params=params,
        out=places.VALIDATION / name,
        published=Metadata.read(about).published if about.is_file() else {},
        rows=_places(folder / f"{PLACES}.csv", benchmark_tables),
    )
    write_whole(passed, "passed\n")


def run_gate(
    name: str,
    suites: Path,
    *,
    needed: list[str],
    tables: dict[str, pd.DataFrame],
    files: dict[str, Path],
    settings: dict[str, Any],
    params: Params,
    out: Path,
    published: dict[str, str],
    rows: dict[str, str],
) -> None:
    """Check tables against suites, and write the result; BadInput if a critical check failed."""
    loaded = load(suites, needed, settings)
    reports = gate.run(loaded, tables, text=params.track.text, places=rows)
    success = all(report["success"] for report in reports)
    with replacing(out) as folder:
        folder.mkdir()
        result = {"name": name, "success": success, "published": published, "tables": reports}
        text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / "result.json").write_text(text + "\n", encoding="utf-8")
        read = _read(tables, files, text=params.track.text)
        (folder / "index.html").write_text(
            gate.page(name, reports, read, published), encoding="utf-8"
        )
    _report_failures(name, reports, published, files, out)


def _places(path: Path, tables: BenchmarkTables) -> dict[str, str]:
    """Where queries are in their source, if their builder says so, and each candidate first."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    by_query = dict(zip(table["query_id"], table["place"], strict=True))
    first: dict[tuple[str, str], str] = {}
    for query, subset, ids in tables.queries[["query_id", "subset", "answer_ids"]].itertuples(
        index=False, name=None
    ):
        for id_ in ids:
            first.setdefault((subset, id_), by_query.get(query, ""))
    keys = tables.candidates[["subset", "id"]].itertuples(index=False, name=None)
    by_number = {f"candidates {n}": first.get(key, "") for n, key in enumerate(keys, start=1)}
    return by_query | by_number


def _read(
    tables: dict[str, pd.DataFrame], files: dict[str, Path], *, text: bool
) -> list[dict[str, Any]]:
    """What was read, and what was passed over; without `text`, no name that data can have."""
    if "sources" not in tables:
        return []
    sources = tables["sources"]
    for column in counts.COLUMNS:
        if column not in sources:
            remedy = "its builder makes the table by medprobe.benchmarks.counts.table"
            raise BadInput(files["sources"], f"no column {column}", remedy)
    if not text:
        names = sources["name"].where(sources["what"].isin(RULES), "")
        columns = ["source", "what", "name"]
        sources = sources.assign(name=names).groupby(columns, sort=False)["rows"].sum()
        sources = sources.reset_index()
    return sources.to_dict("records")


def _report_failures(
    name: str,
    reports: list[dict[str, Any]],
    published: dict[str, str],
    files: dict[str, Path],
    out: Path,
) -> None:
    """Print what failed; raise BadInput for the first critical check that failed."""
    for source, verdict in published.items():
        print(f"{name}: {source}: {verdict}")
    failed = gate.failures(reports)
    for check in failed:
        mark = "✗" if check["severity"] == "critical" else f"{check['severity']}:"
        print(f"{mark} {gate.words(check)}")
        notes = f" ({check['notes']})" if check["notes"] else ""
        print(f"    {files[check['table']]}: {check['type']} {check['kwargs']}{notes}")
        for line in gate.failing_rows(check):
            print(f"    {line}")
        if check["failing"] > len(check["examples"]):
            print(f"    and {check['failing'] - len(check['examples']):,} more")
    critical = [check for check in failed if check["severity"] == "critical"]
    for check in critical[:1]:
        problem = f"{gate.words(check)} ({check['type']})"
        raise BadInput(files[check["table"]], problem, f"all {len(critical)} failed checks: {out}")
    checks = sum(len(report["checks"]) for report in reports)
    print(f"{name}: {checks - len(failed)} checks passed, {len(failed)} warnings")
