"""`medprobe gate`: build all benchmarks and check them and the sentence sets, without any model.

DVC runs the stages, so that nothing is built twice.
"""

import html
import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params, find_settings
from medprobe.gate import run
from medprobe.pipeline.clean import repair
from medprobe.pipeline.doctor import list_sources, missing_sources
from medprobe.pipeline.repro import DVC, environment, exclusive_lock, process_group
from medprobe.pipeline.stale_stages import Stage, dvc_error, find_stale_stages

GATE: Final = "validate"  # begins the commands of gates
SENTENCES: Final = places.VALIDATION / "sentences"  # of sets of sentences
LOG: Final = 400  # lines that a job's summary has at most
RECORDED: Final = {places.DATA, places.BENCHMARKS, places.METRICS}  # dvc.lock has their hashes


def gate(params: Params, base: str) -> None:
    """Bring the builds and the gates up to date, and report all that fail."""
    sections = [found.of(params) for found in find_settings().values() if found.files]
    if not any(params.benchmarks.values()) and not any(sections):
        print("params.yaml names no data that a gate checks: nothing to check")
        return
    if not places.DATA.is_dir():
        pull = f"`dvc pull {dvc_records.DATA}` fetches it from a DVC remote"
        remedy = pull if dvc_records.DATA.is_file() else "put the sources of params.yaml into it"
        raise BadInput(places.DATA, "no such folder", remedy)
    with exclusive_lock(), process_group() as group:
        repair()
        differing = _differing()
        failures, log = _run(group)
        differing |= _differing()
    missing = missing_sources(list_sources(params, places.DATA)) if failures else []
    lines = _summary(params.benchmark_names, failures)
    lines += [f"{places.DATA / source}: missing" for source in missing]
    lines += [*_edited_suites(base), *_unlike_record(differing, lost=bool(missing))]
    print("\n".join(lines))
    _write_for_github(lines, log)
    if failures:
        problem = f"stopped by {', '.join(failures)}"
        raise BadInput("medprobe gate", problem, "correct what the lines above name")
    print(f"all gates passed; their pages: {places.VALIDATION}/**/index.html")


def _summary(names: Iterable[str], failures: dict[str, str]) -> list[str]:
    """What is as published, then what failed, in words, then warnings, then the count."""
    folders = [*(places.VALIDATION / name for name in sorted(names)), *SENTENCES.glob("*")]
    files = [folder / "result.json" for folder in folders]
    results = [json.loads(file.read_text("utf-8")) for file in files if file.is_file()]
    lines = [
        f"{result['name']}: {source}: {verdict}"
        for result in results
        for source, verdict in result.get("published", {}).items()
    ]
    failed = [
        (result["name"], run.words(check), check["severity"] == "critical")
        for result in results
        for check in run.failures(result["tables"])
    ]
    stopped = [f"✗ {name}: {words}" for name, words, stops in failed if stops]
    stopped += [
        f"✗ {stage}: {error}"
        for stage, error in failures.items()
        if not any(words in error for _, words, stops in failed if stops)
    ]
    warned = [f"warning: {name}: {words}" for name, words, stops in failed if not stops]
    checks = sum(len(report["checks"]) for result in results for report in result["tables"])
    count = f"{checks - len(failed):,} checks passed, {len(stopped)} failed, {len(warned)} warnings"
    return [*lines, *stopped, *warned, count]


def _write_for_github(lines: list[str], log: list[str]) -> None:
    """Write the summary of a GitHub job, if this is one: the lines, and the log folded."""
    if not (path := os.environ.get("GITHUB_STEP_SUMMARY")):
        return
    shown = "\n".join(f"- {html.escape(line)}" for line in lines)
    folded = f"<details><summary>log</summary>\n\n```\n{''.join(log[-LOG:])}```\n\n</details>"
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"## The gate of the data\n\n{shown}\n\n{folded}\n\n")


def _run(group: int) -> tuple[dict[str, str], list[str]]:
    """Run the stale gates and what they need.

    Returns the error of each failed stage, by its name, and the lines that were printed.

    The lines of the stages are printed as they come. A stage's last line before DVC says that it
    failed is its error.
    """
    stages = find_stale_stages(allow_missing=False)
    gates = [name for name, stage in stages.items() if stage.options[""].startswith(GATE)]
    if not gates:
        return {}, []
    errors, name, last, line, log = dict[str, str](), "", "", "", list[str]()
    with subprocess.Popen(
        [*DVC, "--wait-for-lock", "repro", "--keep-going", *gates],
        env=environment(),
        process_group=group,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        for line in filter(str.strip, process.stdout):
            print(line, end="", flush=True)
            log.append(line)
            if started := re.match("Running stage '(.+)':", line):
                name = started[1]
            elif line.startswith("WARNING: failed to run: "):
                errors[name] = last.strip().removeprefix("Error: ")
                _write_page(stages[name], errors[name])
            last = line
    if process.returncode == 0:
        return {}, log
    failed = re.findall("'([^']+)'", line) if "failed to reproduce" in line else ["dvc repro"]
    return {stage: errors.get(stage, "failed, see above") for stage in failed}, log


def _write_page(stage: Stage, error: str) -> None:
    """Write the page of a gate that has none, because the build or the reading failed."""
    options = stage.options
    command = options[""]
    name = next((value for key, value in options.items() if key), "")
    folder = places.VALIDATION / command.removeprefix(GATE).removeprefix("-") / name
    if command == "build":
        folder = places.VALIDATION / name
        (places.PASSED / name).unlink(missing_ok=True)  # the gate does not run
    if command.startswith(GATE) and (folder / "index.html").is_file():
        return
    if command == "build" or command.startswith(GATE):
        failed: dict[str, object] = {"type": command, "kwargs": {}, "severity": "critical"}
        failed |= {"success": False, "failing": 0, "examples": [], "notes": "", "problem": error}
        report = {"table": "sources", "rows": 0, "success": False, "checks": [failed]}
        with replacing(folder) as scratch:
            scratch.mkdir()
            (scratch / "index.html").write_text(run.page(name, [report]), encoding="utf-8")


def _differing() -> set[str]:
    """Return the stages whose record, in dvc.lock or data.dvc, is of other files than those here.

    Only data, benchmarks and metrics count, and only if they exist.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            return {
                stage.addressing
                for stage in repo.index.stages
                for item in (*stage.deps, *stage.outs)
                if RECORDED & {Path(item.def_path), *Path(item.def_path).parents}
                and item.hash_info
                and item.exists
                and item.workspace_status()
            }
    except DvcException as error:
        raise dvc_error(error) from None


def _unlike_record(differing: set[str], *, lost: bool) -> list[str]:
    """Say what to do where the change's records are of other data, or of `lost` ones."""
    pins = sorted(name for name in differing if name.endswith(".dvc"))
    stages, lines = sorted(differing.difference(pins)), []
    if pins and lost:
        remedy = f"`git checkout {' '.join(pins)}` takes that back"
        lines.append(f"{', '.join(pins)}: written without what is missing; {remedy}")
    elif pins:
        problem = f"was out of date for {places.DATA}/; commit it as it is now"
        lines.append(f"{', '.join(pins)}: {problem}")
    if stages:
        problem = f"made from other data, by the record of {stages[0]}"
        remedy = f"run `medprobe repro`, and commit them with {dvc_records.DATA}"
        lines.append(f"dvc.lock and {places.METRICS}/: {problem}; {remedy}")
    return lines


def _edited_suites(base: str) -> list[str]:
    """Name the suites that differ from where the change left its base branch."""
    for commit in (f"origin/{base}", base):
        command = ["git", "diff", "--merge-base", "--relative", "--name-only", commit]
        process = subprocess.run(
            [*command, "--", f"{places.EXPECTATIONS}"], capture_output=True, text=True, check=False
        )
        if process.returncode == 0:
            return [f"this change edits {path}: read it" for path in process.stdout.splitlines()]
    return [f"git has no branch {base} here: edits of {places.EXPECTATIONS}/ are not listed"]
