"""The gate's report as one page that needs no network."""

from html import escape
from typing import Any, Final

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1c2430; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 2rem; }
td, th { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid #d8dee6; }
code { font-size: .9em; overflow-wrap: anywhere; }
.yes { color: #17693a; } .no { color: #b3261e; } .dim { color: #5f6b7a; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
"""


def page(benchmark: str, reports: list[dict[str, Any]]) -> str:
    """The HTML of `gate.run`'s reports."""
    checks = [check for report in reports for check in report["checks"]]
    failed = sum(not check["success"] for check in checks)
    head = (
        f"{failed} of {len(checks)} checks failed" if failed else f"all {len(checks)} checks passed"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(benchmark)}: {head}'
        f"</title><style>{STYLE}</style><h1>{escape(benchmark)}</h1>"
        f'<p class="{"no" if failed else "yes"}">{head}.</p>'
        f"{''.join(_table(report) for report in reports)}</html>\n"
    )


def _table(report: dict[str, Any]) -> str:
    rows = "".join(_row(check) for check in report["checks"])
    return (
        f"<h2>{escape(report['table'])} <span class=dim>{report['rows']:,} rows</span></h2>"
        f"<table><tr><th><th>expectation<th>failing rows</tr>{rows}</table>"
    )


def _row(check: dict[str, Any]) -> str:
    mark = '<td class="yes">✓' if check["success"] else '<td class="no">✗'
    arguments = ", ".join(f"{key}={value!r}" for key, value in check["kwargs"].items())
    notes = f'<br><span class="dim">{escape(check["notes"])}</span>' if check["notes"] else ""
    what = f"<code>{escape(check['type'])}({escape(arguments)})</code>{notes}"
    return f"<tr>{mark}<td>{what}<td>{_failures(check)}</tr>"


def _failures(check: dict[str, Any]) -> str:
    if check["success"]:
        return ""
    lines = "".join(f"<li><code>{escape(line)}</code>" for line in failing_rows(check))
    problem = f"<p>{escape(check['problem'])}</p>" if check["problem"] else ""
    return f"{check['failing']:,}{problem}<ul>{lines}</ul>"


def failing_rows(check: dict[str, Any]) -> list[str]:
    """A line for each failing row that the report names: its id, and the columns' values."""
    lines = []
    for example in check["examples"]:
        values = ", ".join(f"{key} = {value!r}" for key, value in example.items() if key != "row")
        lines.append(f"{example['row']}: {values}" if values else example["row"])
    return lines
