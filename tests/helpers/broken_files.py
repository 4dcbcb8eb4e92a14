"""Broken files: damages of what lies below `data/`, before a benchmark is built from it.

Each changes files as a program, a download or a hand would.
"""

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from helpers import ROOT
from helpers.broken_tables import Case, Row, Tables, failing, only, verdict
from medprobe import benchmarks
from medprobe.core.errors import BadInput
from medprobe.core.places import EXPECTATIONS
from medprobe.core.settings import parse_section
from medprobe.gate import suites
from medprobe.sources import rrf

Damage = Callable[[Path], None]  # of the folder `data/`
Change = Callable[[Row, int], Row]  # of a row and its number

MRCONSO: Final = "umls/MRCONSO.RRF"
MRREL: Final = "umls/MRREL.RRF"
COLUMNS: Final = {MRCONSO: rrf.MRCONSO, MRREL: rrf.MRREL, "umls/MRSTY.RRF": rrf.MRSTY}
FACTS: Final = Path("tables/facts.csv")
CHOICES: Final[dict[str, tuple[str, dict[str, Any]]]] = {  # not in params.yaml
    "table": ("table", {"facts": FACTS}),
    "wordings": ("table", {"facts": FACTS, "prompts": "tables/templates.csv", "families": {}}),
}


def build(builder: str) -> tuple[list[suites.Suite], Tables]:
    """Build a benchmark from `data/` in the working folder; returns its suites and tables."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    module, listed = CHOICES.get(builder, (builder, {}))
    choices = listed or params["benchmarks"][builder][builder]
    plugin = benchmarks.find(module)
    settings = parse_section(plugin.settings, choices, builder)
    built = plugin.build(Path("data"), settings, params["seed"])
    loaded = suites.load(ROOT / EXPECTATIONS / module, [], settings.model_dump(mode="json"))
    return loaded, {"queries": built.queries, "candidates": built.candidates, **built.others}


def find_in_files(builder: str, data: Path, case: Case) -> None:
    """Fail unless the builder refuses the damaged files, or a case's checks find the damage."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(data, "data")
        case.damage(Path("data"))
        try:
            loaded, tables = build(builder)
            found = failing([only(suite, case.types) for suite in loaded], tables)
        except BadInput as error:
            file = Path(str(error).split(":")[0].split(",")[0]).name
            assert (case.verdict, case.checks) == ("refused", (file,)), error
            return
    assert case.types <= {check["type"] for check in found}
    assert verdict(found) == case.verdict


def rows(name: str, change: Callable[[Row, int], Row]) -> Damage:
    """Change each row of a table: RRF, JSON lines or CSV; its number counts from 0."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            table = read(path)
            write(path, [change(row, number) for number, row in enumerate(table)])

    return damage


def table(name: str, change: Callable[[list[Row]], list[Row]]) -> Damage:
    """Change the list of all rows of a table."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            write(path, change(read(path)))

    return damage


def text(name: str, change: Callable[[str], str]) -> Damage:
    """Change a file's text, zipped or not."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            content = path.read_bytes()
            is_zipped = path.suffix == ".gz"
            changed = change((gzip.decompress(content) if is_zipped else content).decode())
            path.write_bytes(gzip.compress(changed.encode()) if is_zipped else changed.encode())

    return damage


def read(path: Path) -> list[Row]:
    """Read the rows of a table, by the name of its file."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
    columns = COLUMNS[f"umls/{path.name}"]
    lines = path.read_text("utf-8").splitlines()
    return [dict(zip(columns, line.split("|"), strict=False)) for line in lines]


def write(path: Path, table: list[Row]) -> None:
    """Write the rows of a table, by the name of its file."""
    if path.suffix == ".csv":
        pd.DataFrame(table).to_csv(path, index=False)
        return
    is_json = path.suffix == ".jsonl"
    lines = [json.dumps(row) if is_json else "|".join([*row.values(), ""]) for row in table]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def both(*damages: Damage) -> Damage:
    """Apply damages one after another."""

    def damage(data: Path) -> None:
        for each in damages:
            each(data)

    return damage


def put(**values: Any) -> Callable[[Row, int], Row]:
    """Replace fields; a value can be a function of the row."""
    return every(1, **values)


def every(step: int, where: Callable[[Row], bool] = lambda row: True, **values: Any) -> Any:
    """Replace fields of each row of so many that fits; a value can be a function of the row."""

    def change(row: Row, number: int) -> Row:
        if number % step or not where(row):
            return row
        changes = {key: value(row) if callable(value) else value for key, value in values.items()}
        return {**row, **changes}

    return change


def swap(first: str, second: str) -> Callable[[Row, int], Row]:
    """Exchange two fields of each row."""
    return lambda row, _: {**row, first: row[second], second: row[first]}


def half(lines: list[Row]) -> list[Row]:
    return lines[: len(lines) // 2]


def is_of(*relations: str) -> Callable[[Row], bool]:
    return lambda row: row.get("RELA", row.get("relation")) in relations


def named(change: Callable[[str], str]) -> Callable[[Row], str]:
    """The name of a concept, with é for e, as a program changes it."""
    return lambda row: change(row["STR"].replace("e", "é"))


def misread(name: str) -> str:
    return name.encode().decode("latin-1")


def copy(source: str, target: str) -> Damage:
    def damage(data: Path) -> None:
        shutil.copyfile(data / source, data / target)

    return damage


def exchange_slots(template: str) -> str:
    return template.replace("[X]", "[Z]").replace("[Y]", "[X]").replace("[Z]", "[Y]")


def shifted(column: str) -> Callable[[list[Row]], list[Row]]:
    def change(lines: list[Row]) -> list[Row]:
        values = [line[column] for line in lines]
        return [
            row | {column: value}
            for row, value in zip(lines, [*values[1:], values[0]], strict=True)
        ]

    return change


def with_more(count: int, **values: Callable[[Row, int], str]) -> Callable[[list[Row]], list[Row]]:
    """Append copies of the first row with other values."""

    def change(lines: list[Row]) -> list[Row]:
        first = lines[0]
        added = [
            first | {key: value(first, n) for key, value in values.items()} for n in range(count)
        ]
        return [*lines, *added]

    return change
