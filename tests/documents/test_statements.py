"""What the documents state in tables and numbers is what the code and the recorded results have."""

import itertools
import json
import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from helpers import ROOT
from medprobe import benchmarks, methods
from medprobe.backends import finder
from medprobe.core import tables
from medprobe.engine import ranking, training_state
from medprobe.extensions.chat import prompt_texts
from medprobe.extensions.cluster import nodes, run
from medprobe.extensions.servers import client
from medprobe.extensions.servers.backends import served
from medprobe.extensions.servers.records import REASONS
from medprobe.extensions.servers.settings.servers import ServerParams
from medprobe.metrics import results
from medprobe.papers.medlama import annotation as annotate
from medprobe.papers.medlama import sheets
from medprobe.papers.medlama.benchmarks.medlama import names
from medprobe.sources import facts, records


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def one_line(page: str) -> str:
    return " ".join(text(page).split())


def table_rows(page: str, header: str) -> list[list[str]]:
    """The cells of the table that has this header."""
    lines = text(page).split(f"\n| {header} |", 1)[1].splitlines()[2:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


WORDS = [
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
]
UNITS = {60: "a minute", 10**6: "a million"}
SERVER = ServerParams(url="http://127.0.0.1/v1", model="m")
PROJECT = tomllib.loads(text("pyproject.toml"))["project"]
TESTED = yaml.safe_load(text(".github/workflows/tests.yml"))["jobs"]["tests"]["strategy"]["matrix"]
[RAY] = re.findall(r"^ray==(.*)$", text("requirements-ray.lock"), re.MULTILINE)
STATED = {  # in a page: phrases with the numbers of the code
    "README.md": [
        f"{WORDS[len(methods.list_names())]} published methods",
        f"Linux with Python {', '.join(TESTED['python'][:-1])} or {TESTED['python'][-1]}.",
    ],
    "docs/reference/reliability.md": [
        f"a line of more than {records.LONGEST // 10**6} MB",
        f"a field of a table of more than {records.LONGEST_FIELD // 10**6} million characters",
        f"a name of more than {records.LONGEST_NAME:,}",
        f"{sheets.LARGEST // 10**6} MB unzipped or {sheets.MOST_ROWS:,} lines",
        f"{facts.LARGEST // 2**30} GiB unzipped or {facts.MOST_ROWS // 10**6} million rows",
        f"more than {UNITS.get(prompt_texts.MOST_STEPS)} lines of code, which are counted",
        f"or more than {UNITS.get(prompt_texts.LONGEST_CHAT)} characters",
        f"`outputs/parts` every {WORDS[int(training_state.KEEP_SECONDS / 60)]} minutes",
    ],
    "docs/reference/files.md": [f"and up to {WORDS[ranking.MAX_TIES]} more that tie"],
    "docs/how-to/servers.md": [
        f"{WORDS[SERVER.requests].capitalize()} requests run at once (`requests`)",
        f"without an answer in {SERVER.timeout:g} seconds (`timeout`)",
        f"up to {WORDS[client.TRIES - 1]} times",
        f"more than `max_requests: {SERVER.max_requests}`",
        f"among the likeliest {served.TOP} tokens",
    ],
    "docs/how-to/expert-evaluation.md": [
        f"for {annotate.SIZE['predictions']} random queries",
        f"For prompts, {annotate.SIZE['prompts']} of them",
    ],
    "docs/how-to/cluster.md": [
        f"at most {WORDS[run.TRIES]} times, with a line each time",
        f"{WORDS[nodes.PAUSE].capitalize()} seconds pass between two starts there. "
        f"After {WORDS[nodes.TRIES]}",
        f"After {UNITS.get(run.SILENCE)} at the end of a stage, a free worker",
        f"memory of one GiB plus {WORDS[run.WEIGHTS]} times the largest checkpoint",
        f"No node is left for {WORDS[run.PATIENCE // 60]} minutes",
        f'rayVersion: "{RAY}"',
    ],
    "docs/how-to/library.md": [f"medprobe-{PROJECT['version']}-py3-none-any.whl"],
}


@pytest.mark.parametrize("page", STATED)
def test_numbers_in_the_documents_are_those_of_the_code(page: str) -> None:
    content = one_line(page)
    assert [phrase for phrase in STATED[page] if phrase not in content] == []


def test_the_extras_are_documented() -> None:
    rows = table_rows("docs/how-to/library.md", "install | for")
    extras = {extra for row in rows for extra in re.findall(r"\[(\w+)\]", row[0])}
    assert extras == {*PROJECT["optional-dependencies"]} - {"dev", "site"}  # needed in a clone only


def test_the_terms_of_each_benchmark_are_documented() -> None:
    rows = table_rows("docs/how-to/servers.md", "terms | benchmarks | a server of others")
    documented = {name: quoted(row[0])[0] for row in rows for name in quoted(row[1])}
    assert documented == {n: benchmarks.find(n).metadata.terms for n in benchmarks.list_names()}
    refused = {quoted(terms)[0] for terms, _, server in rows if server == "is refused"}
    assert refused == {*REASONS}


def test_what_methods_need_of_a_server_is_documented() -> None:
    documented: dict[str, set[str]] = {}
    for purposes, abilities in table_rows("docs/how-to/servers.md", "method | needs")[:-1]:
        for name in {*quoted(purposes)} & {*methods.list_names()}:
            documented.setdefault(name, set()).update(quoted(abilities))
    needs = {name: methods.find(name).NEEDS for name in methods.list_names()}
    assert documented == {name: need for name, need in needs.items() if "weights" not in need}


def test_what_a_backend_defines_for_an_ability_is_documented() -> None:
    rows = table_rows("docs/how-to/extending.md", "ability | methods | serves")
    documented = {quoted(row[0])[0]: {*quoted(row[1])} for row in rows}
    assert documented == {ability: {*defined} for ability, defined in finder.NEEDED.items()}


def test_git_has_the_files_that_are_documented_as_in_git() -> None:
    rows = table_rows("docs/reference/files.md", "path | content | in git")
    paths = {quoted(row[0])[0]: row[2] for row in rows}
    files = {path: f"{path}x" if path.endswith("/") else path for path in paths}
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    checked = "\n".join(files.values())
    ignored = subprocess.run(
        command, input=checked, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {path: "no" if file in ignored else "yes" for path, file in files.items()} == paths


@pytest.mark.parametrize(
    ("section", "columns"),
    [
        ("**`queries.parquet`**", tables.QUERY_COLUMNS),
        ("## Predictions", [*tables.PREDICTION_COLUMNS, tables.AHEAD]),
        ("**`reports/comparison.csv`**", results.COMPARISON),
    ],
)
def test_columns_are_documented(section: str, columns: list[str]) -> None:
    table = text("docs/reference/files.md").split(f"\n{section}", 1)[1].split("| --- |", 1)[1]
    rows = re.findall(r"^\| (`.*?) \|", table.split("\n\n", 1)[0], re.MULTILINE)
    assert {name for row in rows for name in quoted(row)} == {*columns}


def test_the_kinds_of_names_are_documented() -> None:
    rows = table_rows("docs/how-to/fact-or-word.md", "kind | names in MRCONSO")[1:-1]
    types = {quoted(kind)[0]: {*re.findall(r"\b[A-Z]{2,4}\b", of)} for kind, of in rows}
    assert types == {kind: {*term_types} for kind, term_types in names.TERM_TYPES.items()}


def recorded(model: str, method: str) -> dict[str, Any]:
    """The sample world's numbers of a system on MedLAMA, by variant and subset."""
    scores: dict[str, Any] = json.loads(text(f"metrics/scores/{model}/{method}.json"))
    return dict(scores["medlama"])


def near(value: float) -> Any:
    """What another processor can make of a number: one or two of 216 queries more or less."""
    return pytest.approx(value, abs=0.015)
