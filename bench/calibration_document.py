"""The measured parts of docs/concepts/calibration.md, and its drawings."""

import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

import pandas as pd

from bench.calibration_table import (
    CAPTION,
    TaughtSystem,
    by_method,
    drawing,
    evidence,
    evidence_table,
    seeds,
)
from medprobe.report.blocks import Cell, Table
from medprobe.report.verdicts import p_value

DOCUMENT: Final = Path("docs/concepts/calibration.md")
FACTS: Final = "finds facts"
PICTURES: Final = Path("docs/pictures/calibration")
NAMES: Final = Path("bench/names.csv")
MODELS: Final = ("both", "one", "shuffled")
PAIRS: Final = ("both - one", "both - shuffled", "one - shuffled")
NUMBERS: Final = {
    "name": "agreement, other name, %",
    "wording": "agreement, other wording, %",
    "right_under_all": "right under all, %",
    "right_under_any": "right under any, %",
    "entropy": "entropy, nats",
}
BLOCK: Final = re.compile(r"(?<=<!-- measured: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def update(text: str, table: pd.DataFrame, steps: pd.DataFrame | None) -> str:
    """Write what was measured between the document's marks.

    Args:
        text: the document.
        table: with the columns of `bench.calibration_table`.
        steps: with the columns `world`, `step`, `seconds` and `code` of all worlds; None leaves the
            block about them as it is.
    """
    systems = evidence(table)
    blocks = {
        "outcome": outcome(systems),
        "caption": _wrapped(CAPTION),
        "methods": "\n".join(_of_method(*named) for named in by_method(systems).items()),
        "names": of_names(pd.read_csv(NAMES)),
    }
    if steps is not None:
        blocks["worlds"] = describe_worlds(table, steps)

    def write_block(match: re.Match[str]) -> str:
        content = blocks.get(match[1])
        return match[0] if content is None else f"{match[1]}{match[2]}\n{content.strip()}\n\n"

    return BLOCK.sub(write_block, text)


def _of_method(method: str, systems: list[TaughtSystem]) -> str:
    picture = drawing(method, systems)
    return (
        f"## {method}\n\n![{picture.caption}](../pictures/calibration/{picture.file})\n\n"
        f"{markdown(evidence_table(systems))}"
    )


def of_names(table: pd.DataFrame) -> str:
    """What consistency and entropy say of models that have read facts under one name or two.

    Args:
        table: as `bench.names` writes it.
    """
    values, rows = table.set_index(["number", "read", "of"]), []
    for (number, read), part in table.groupby(["number", "read"], sort=False):
        scale = 1 if number == "entropy" else 100
        cells = []
        for name in [*MODELS, *PAIRS]:
            row = scale * values.loc[(number, read, name), ["value", "low", "high"]].astype(float)
            p = values.loc[(number, read, name), "p"]
            sign, note = ("", "") if name in MODELS else ("+", f", {p_value(p)}")
            digits = 2 if scale == 1 else 1
            low, high = f"{row['low']:.{digits}f}", f"{row['high']:.{digits}f}"
            cells.append(f"{row['value']:{sign}.{digits}f} [{low}, {high}]{note}")
        rows.append([NUMBERS[number], read, *cells, f"{part['n'].iloc[0]:.0f}"])
    heads = ["number", "facts", *MODELS, *(pair.replace("-", "−") for pair in PAIRS), "n"]
    return markdown(Table(heads, rows, ""))


def drawings(table: pd.DataFrame) -> dict[str, str]:
    """The drawing of each method: the name of its file -> SVG."""
    pictures = [drawing(*named) for named in by_method(evidence(table)).items()]
    return {system.file: system.svg for system in pictures}


def outcome(systems: list[TaughtSystem]) -> str:
    """How many systems find what, and which are reversed."""
    counts = pd.Series([_finding(system) for system in systems]).value_counts()
    counted = "; ".join(f"*{words}*: {count}" for words, count in counts.items())
    rows: list[list[str | Cell]] = [
        [
            method,
            str(len(members)),
            str(sum(_finding(system) == FACTS for system in members)),
            str(sum("never read" in system.finding for system in members)),
        ]
        for method, members in by_method(systems).items()
    ]
    heads = ["method", "results", FACTS, "above untaught on facts never read"]
    lines = [
        _wrapped(
            f"There are {len(systems)} different results: one per model, variant and benchmark. "
            f"Their findings are {counted}. Results of one method are not independent. The last "
            "column counts results that are significantly better than those of the untaught twin "
            "on facts that were never read."
        ),
        markdown(Table(heads, rows, "")),
    ]
    if reversals := [system for system in systems if system.reversals]:
        lines.append("Reversed results, which are worse than finding nothing:\n")
        lines += [
            f"- {system.method} of {system.taught} on {system.benchmark}, below "
            + ", ".join(system.reversals)
            for system in reversals
        ]
        lines.append("")
    else:
        lines.append("No result is reversed.\n")
    return "\n".join(lines)


def _finding(system: TaughtSystem) -> str:
    """What a system finds, without what is odd about it."""
    return system.finding.partition(";")[0]


def describe_worlds(table: pd.DataFrame, steps: pd.DataFrame) -> str:
    """Which worlds were measured, by which code, and what they took."""
    names = seeds(table)
    seconds = steps.groupby("world")["seconds"].sum()
    code = ", ".join(dict.fromkeys(steps["code"]))
    return _wrapped(
        f"**What was measured.** {len(names)} worlds, seeds {', '.join(names)}, made by the code "
        f"of {code}. Each took {seconds.min():.0f} to {seconds.max():.0f} CPU seconds. "
        "`python -m bench.calibration --worlds 10` makes ten worlds. It writes the figures of this "
        "page and the drawings again. `--processes 2` makes two worlds at a time. "
        "A run that was stopped continues where it stopped."
    )


def _wrapped(text: str) -> str:
    """A paragraph in lines of a hundred letters, and an empty one."""
    return fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def markdown(table: Table) -> str:
    """A table in Markdown, the notes of its cells in brackets."""
    rows: Iterable[list[str]] = [
        [*table.heads],
        ["---"] * len(table.heads),
        *([_text(cell) for cell in row] for row in table.rows),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _text(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return cell
    return cell.text + (f" ({cell.note})" if cell.note else "")
