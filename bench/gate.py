"""The gate against broken benchmarks: what stops the pipeline, what is a warning, what is missed.

    python -m bench.gate               # every case, on benchmarks of a small sample world
    python -m bench.gate diskne        # those of one benchmark
    python -m bench.gate --check       # fail if docs/reference/gate.md has another table

Each case damages sound tables in one way, as a mistake of a builder, of a source or of a hand
would, and the benchmark's own suites run on them. docs/reference/gate.md has the table.
"""

import argparse
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
import yaml

from bench import broken_facts
from bench.broken import Cases, Tables
from bench.broken_diskne import DISKNE, SYNONYMS
from medprobe import benchmarks
from medprobe.commands.sample import sample
from medprobe.core.params import Params, parse_section
from medprobe.core.places import EXPECTATIONS
from medprobe.quality import gate, suites

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


class Outcome(NamedTuple):
    """What the gate says of one case."""

    builder: str
    case: str
    verdict: str  # stopped, warned or missed
    expectations: list[str]  # that failed


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate")
    parser.add_argument("builders", nargs="*", choices=[[], *CASES], default=[])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    chosen = options.builders or [*CASES]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        outcomes = [outcome for builder in chosen for outcome in run(builder)]
    lines = table(outcomes).splitlines()
    print(*lines, sep="\n")
    rows = lines[:-1] if options.builders else lines  # the last line counts all cases
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


def run(builder: str) -> list[Outcome]:
    """Run all cases of a builder, in a folder that becomes a project with the sample world."""
    params = Params.model_validate(yaml.safe_load((ROOT / "params.yaml").read_text()))
    if not Path("data").exists():
        sample(Path("data"), {**params.sample, **SIZE}, params.seed)
        write_facts()
    plugin = benchmarks.find(builder)
    choices = params.benchmarks.get(builder, {}).get(builder, {"facts": FACTS})
    settings = parse_section(plugin.settings, choices, builder)
    built = plugin.build(Path("data"), settings, params.seed)
    tables = {"queries": built.queries, "candidates": built.candidates, **built.others}
    if builder == "diskne":
        write_synonyms(tables["splits"]["target"].iloc[0])
    loaded = suites.load(ROOT / EXPECTATIONS / builder, [], settings.model_dump(mode="json"))
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
