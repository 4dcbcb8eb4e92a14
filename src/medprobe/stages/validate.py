"""Stage `validate`: the gate. Nothing is trained or probed on data that fails its expectations."""

import json
from pathlib import Path

import pandas as pd

from medprobe.errors import BadInput
from medprobe.files import replacing
from medprobe.tables import Benchmark


def validate(name: str, benchmark: Path, suites: Path, out: Path) -> None:
    """Check the tables of a benchmark's folder against `suites/<name>.<table>.json`.

    Writes `out/result.json` and `out/index.html`, also where a check fails; failing rows are
    printed. Raises BadInput for the first failed check, and for a suite that is unknown or
    malformed.
    """
    from medprobe.quality import gate
    from medprobe.quality import suites as suite_files
    from medprobe.quality.page import failing_rows, page

    Benchmark.read(benchmark)
    tables = {path.stem: pd.read_parquet(path) for path in sorted(benchmark.glob("*.parquet"))}
    reports = gate.run(suite_files.load(suites, name), tables)
    success = all(report["success"] for report in reports)
    with replacing(out) as folder:
        folder.mkdir()
        result = {"benchmark": name, "success": success, "tables": reports}
        text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / "result.json").write_text(text + "\n", encoding="utf-8")
        (folder / "index.html").write_text(page(name, reports), encoding="utf-8")
    failed = [
        (benchmark / f"{report['table']}.parquet", check)
        for report in reports
        for check in report["checks"]
        if not check["success"]
    ]
    for path, check in failed:
        notes = f" ({check['notes']})" if check["notes"] else ""
        found = f": {check['problem']}" if check["problem"] else ""
        print(f"✗ {path}: {check['type']} {check['kwargs']}{notes}{found}")
        for line in failing_rows(check):
            print(f"    {line}")
        if check["failing"] > len(check["examples"]):
            print(f"    and {check['failing'] - len(check['examples']):,} more")
    for path, check in failed[:1]:
        rows = failing_rows(check)
        first = (
            f"{check['failing']:,} rows fail, the first is {rows[0]}" if rows else check["problem"]
        )
        raise BadInput(path, f"{check['type']}: {first}", f"all {len(failed)} failed checks: {out}")
    checks = sum(len(report["checks"]) for report in reports)
    print(f"{name}: all {checks} checks passed")
