"""The gate's report as one page that needs no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

TEMPLATES: Final = Path(__file__).parent


def page(
    subject: str, reports: list[dict[str, Any]], sources: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Render the reports of `gate.run` as HTML.

    Args:
        subject: the benchmark's name.
        reports: of its suites.
        sources: the rows of its table `sources`: what was read, and what was passed over.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    checks = [check for report in reports for check in report["checks"]]
    failed = [check["severity"] for check in checks if not check["success"]]
    return environment.get_template("page.html").render(
        subject=subject,
        reports=reports,
        sources=sources,
        checks=len(checks),
        failed=failed.count("critical"),
        warnings=len(failed) - failed.count("critical"),
        failing_rows=failing_rows,
    )


def failing_rows(check: dict[str, Any]) -> list[str]:
    """One line per failing row of a check: its number, its id, its fault and its values."""
    lines = []
    for example in check["examples"]:
        name = f"row {example['number']:,}, {example['row']}".removesuffix(", ")
        named = ("number", "row", "fault")
        fields = {key: value for key, value in example.items() if key not in named}
        values = ", ".join(f"{key} = {value!r}" for key, value in fields.items())
        fault = example.get("fault", "")
        lines.append(": ".join(filter(None, [name, fault, values])))
    return lines
