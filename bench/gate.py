"""The gate against broken benchmarks: what stops the pipeline, what is a warning, what is missed.

    python -m bench.gate               # every case, on benchmarks of a small sample world
    python -m bench.gate diskne        # those of one benchmark
    python -m bench.gate --check       # fail if docs/reference/gate.md has another table

Each case damages sound tables in one way, as a mistake of a builder, of a source or of a hand
would, and the benchmark's own suites run on them. A case of `broken_sources` damages the files
below `data/`, from which the benchmark is then built. docs/reference/gate.md has both tables.
"""

import argparse
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
import yaml

from bench import broken_facts, broken_sources
from bench.broken import Cases, Tables
from bench.broken_diskne import DISKNE, SYNONYMS
from medprobe import benchmarks
from medprobe.core.errors import BadInput
from medprobe.core.places import EXPECTATIONS
from medprobe.core.settings import parse_section
from medprobe.gate import run as gate
from medprobe.gate import suites
from medprobe.pipeline.sample import sample

ROOT: Final = Path(__file__).parents[1]
DOCUMENT: Final = ROOT / "docs/reference/gate.md"
CASES: Final[dict[str, Cases]] = {
    "medlama": broken_facts.MEDLAMA,
    "biolama": broken_facts.BIOLAMA,
    "lama": broken_facts.LAMA,
    "table": broken_facts.TABLE,
    "diskne": DISKNE,
    "context": broken_facts.CONTEXT,
    "lipid": broken_facts.LIPID,
}
SIZE: Final = {"queries": 20, "reserve": 12}  # of the sample world
FACTS: Final = Path("tables/facts.csv")  # of the benchmark `table`, below data/
WORDINGS: Final = {"facts": FACTS, "prompts": "tables/templates.csv", "families": {}}
CHOICES: Final[dict[str, tuple[str, dict[str, Any]]]] = {  # not in params.yaml
    "table": ("table", {"facts": FACTS}),
    "wordings": ("table", WORDINGS),
}
SOURCE_VERDICTS: Final = ("refused", "stopped", "warned", "missed")


class Outcome(NamedTuple):
    """What the gate says of one case."""

    builder: str
    case: str
    verdict: str  # refused, stopped, warned or missed
    expectations: list[str]  # that failed


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate")
    builders = [*dict.fromkeys([*CASES, *broken_sources.SOURCES])]
    parser.add_argument("builders", nargs="*", choices=[[], *builders], default=[])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    chosen = options.builders or builders
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        outcomes = [outcome for builder in chosen if builder in CASES for outcome in run(builder)]
        of_sources = [
            outcome
            for builder in chosen
            for cases in (broken_sources.SOURCES, broken_sources.ODDITIES)
            for outcome in run_sources(builder, cases.get(builder, {}))
        ]
    tables = (table(outcomes).splitlines(), table_of_sources(of_sources).splitlines())
    print(*tables[0], "", *tables[1], sep="\n")
    # The last line of a table counts all cases.
    rows = [line for lines in tables for line in (lines[:-1] if options.builders else lines)]
    documented = DOCUMENT.read_text(encoding="utf-8").splitlines()
    if options.check and (differing := [line for line in rows if line not in documented]):
        sys.exit("\n".join([f"{DOCUMENT.relative_to(ROOT)} does not have:", *differing]))


def table(outcomes: list[Outcome]) -> str:
    """Format outcomes as Markdown, with their counts."""
    lines = [
        "| benchmark | what is broken | the gate | expectations |",
        "| --- | --- | --- | --- |",
    ]
    for builder, case, verdict, expectations in outcomes:
        names = ", ".join(f"`{name}`" for name in expectations) or "–"
        lines.append(f"| {builder} | {case} | {verdict} | {names} |")
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("stopped", "warned", "missed"))
    return "\n".join([*lines, "", f"Of {len(outcomes)} cases: {counts}."])


def table_of_sources(outcomes: list[Outcome]) -> str:
    """Format outcomes of broken and of odd sources as Markdown, with their counts."""
    lines = [
        "| source of | what is broken | what happens | by |",
        "| --- | --- | --- | --- |",
    ]
    broken = [outcome for outcome in outcomes if outcome.case in broken_sources.SOURCES[outcome[0]]]
    for builder, case, verdict, reasons in broken:
        names = ", ".join(f"`{name}`" for name in reasons) or "–"
        lines.append(f"| {builder} | {case} | {verdict} | {names} |")
    verdicts = [outcome.verdict for outcome in broken]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in SOURCE_VERDICTS)
    odd = [outcome.verdict for outcome in outcomes if outcome not in broken]
    oddities = (
        f"Of {len(odd)} sources that are odd and right, {odd.count('missed')} pass in silence."
    )
    return "\n".join([*lines, "", f"Of {len(broken)} broken sources: {counts}. {oddities}"])


def run_sources(builder: str, cases: broken_sources.Cases) -> list[Outcome]:
    """Build and check a benchmark of each broken copy of the sample world's data."""
    if not Path("data").exists():
        write_data()
    project = Path.cwd()
    outcomes = []
    for case, damage in cases.items():
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            shutil.copytree(project / "data", "data")
            damage(Path("data"))
            try:
                failing = _failing(*_build(builder))
            except BadInput as error:
                outcomes.append(Outcome(builder, case, "refused", [_place(error)]))
                continue
        stops = "critical" in failing.values()
        verdict = "stopped" if stops else "warned" if failing else "missed"
        outcomes.append(Outcome(builder, case, verdict, sorted(failing)))
    return outcomes


def _place(error: BadInput) -> str:
    """The name of the file that an error is about."""
    return Path(str(error).split(":")[0].split(",")[0]).name


def _build(builder: str) -> tuple[list[suites.Suite], Tables]:
    """Build a benchmark in a project folder; returns its suites and tables."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    module, listed = CHOICES.get(builder, (builder, {}))
    choices = listed or params["benchmarks"][builder][builder]
    plugin = benchmarks.find(module)
    settings = parse_section(plugin.settings, choices, builder)
    built = plugin.build(Path("data"), settings, params["seed"])
    loaded = suites.load(ROOT / EXPECTATIONS / module, [], settings.model_dump(mode="json"))
    return loaded, {"queries": built.queries, "candidates": built.candidates, **built.others}


def write_data() -> None:
    """Write the sample world and a table of facts."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    sample(Path("data"), {**params["sample"], **SIZE}, params["seed"])
    write_facts()


def run(builder: str) -> list[Outcome]:
    """Run all cases of a builder, in a folder that becomes a project with the sample world."""
    if not Path("data").exists():
        write_data()
    loaded, tables = _build(builder)
    if builder == "diskne":
        write_synonyms(tables["splits"]["target"].iloc[0])
    before = _failing(loaded, tables)
    outcomes = []
    for case, damage in CASES[builder].items():
        damaged = {name: rows.copy() for name, rows in tables.items()}
        damage(damaged)
        failing = _failing(loaded, damaged)
        new = {name: severity for name, severity in failing.items() if name not in before}
        verdict = "stopped" if "critical" in new.values() else "warned" if new else "missed"
        outcomes.append(Outcome(builder, case, verdict, sorted(new)))
    return outcomes


def write_synonyms(cui: str) -> None:
    """Give a disease further names in the file of the UMLS that the gate reads."""
    with Path("data/umls/MRCONSO.RRF").open("a") as names:
        for name in SYNONYMS:
            names.write(f"{cui}|ENG|S|L|PF|S|Y|A||||NCI|SY|1|{name}|0|N||\n")


def write_facts() -> None:
    """Write two relations of the sample world as a table of your own, with prompts."""
    facts = pd.read_csv("data/sample/facts.csv")
    facts = facts[facts["relation"].isin(["may_treat", "may_prevent"])]
    facts["prompt"] = facts["subject"] + " " + facts["relation"].str.replace("_", " ") + " [Y] ."
    path = "data" / FACTS
    path.parent.mkdir()
    facts[["relation", "subject", "object", "prompt"]].to_csv(path, index=False)


def _failing(loaded: list[suites.Suite], tables: Tables) -> dict[str, str]:
    """The expectations that fail, with their severities."""
    reports = gate.run([suite for suite in loaded if suite.table in tables], tables, text=False)
    failing = [check for report in reports for check in report["checks"] if not check["success"]]
    return {check["type"]: check["severity"] for check in failing}


if __name__ == "__main__":
    main()
