"""Damaged files for every reader, and a pipeline with a stage of every kind that is stopped at
random moments.

    python -m bench.faults --cases 1000 --kills 50

Prints for each reader how many damaged files it read and refused. Then the pipeline is run to its
end undisturbed, and again and again from the start with stops until there were as many as wanted:
kill -9 of all processes, kill -9 of `medprobe repro` alone, and SIGTERM. Printed is in how many
files and MLflow runs what was stopped differs in the end, and how much ran twice.
Last, a stage of every kind runs on a full disk. docs/reference/reliability.md has the figures.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import psutil

from bench import disks
from helpers import damage, tiny
from helpers.project import Project, environment
from medprobe.core import dvc_records
from medprobe.pipeline import fork_server
from sample_project import readers

COMPARED: Final = ("metrics", "reports", "outputs")
# What says when and by whom, and outputs that hold some of it.
TIMES: Final = (
    *("outputs/runs", "outputs/parts/.repro.lock", "outputs/parts/seconds"),
    "reports/provenance.js",
)
DATED: Final = ("outputs/runs", "reports")
TINY: Final = {"steps": 5, "layers": 1, "hidden": 64, "vocabulary": 300}
KINDS: Final = ("masked", "causal", "chat", "seq2seq")
EVERY_KIND: Final[dict[str, Any]] = {
    "sample": {"queries": 20, "reserve": 8},
    "train": {kind: {"kind": kind, "corpus": "taught", **TINY} for kind in KINDS},
    "continued": {"further": {"base": "causal", "corpus": "taught", "steps": 5}},
    "folders": {"given": "given"},
    "models": {kind: {kind: {}} for kind in KINDS}
    | {"causal": {"causal": {}, "further": {}}, "encoder": {"given": {}}},
    "sentence_sets": {"set-0": {}},
    "rewire": {"steps": 4, "checkpoint_every": 2, "batch": 16, "temperature": 0.04},
    "benchmarks": {
        "medlama": {"medlama": {"per_relation": 12, "relations": ["may_treat"]}},
        "biolama": {"biolama": {}},
    },
    "methods": {
        "masked": {
            "mask_average": {"medlama": {}},
            "contrastive": {"medlama": {"sets": ["set-0"]}},
        },
        "encoder": {"contrastive": {"medlama": {"sets": ["set-0"]}}},
        "causal": {"likelihood": {"medlama": {}}},
        "chat": {"judgment": {"biolama": {"separator": " "}}},
        "seq2seq": {"likelihood": {"medlama": {}}},
    },
    "score": {"bootstrap": 50},
}
STOPS: Final = ("kill -9 of all", "kill -9 of repro alone", "SIGTERM")


def project(folder: Path) -> Path:
    """A project with a stage of every kind, and its data."""
    new_project = Project(folder)
    new_project.replace(**EVERY_KIND)
    tiny.model("bert", folder / "given")
    new_project.works("medprobe", "sample")
    new_project.works("dvc", "add", "--quiet", "data")
    return folder


def start(folder: Path, log: Path) -> "subprocess.Popen[bytes]":
    """`medprobe repro` in a process group of its own."""
    # With the project's own code, whatever changes elsewhere, and a warm server of its own.
    variables = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder / "src"), fork_server.SOCKET: ""}
    command = ["medprobe", "repro", "--jobs", "1"]
    with log.open("a") as stream:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment() | variables,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            process_group=0,
        )


def stop(process: "subprocess.Popen[bytes]", how: str) -> None:
    """Stop a running `medprobe repro`."""
    if how == "SIGTERM":
        process.terminate()
    elif how == "kill -9 of repro alone":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive(folder: Path, patience: float = 30) -> list[str]:
    """The processes that still run in a project after so many seconds."""
    end = time.monotonic() + patience
    while (processes := list(_inside(folder))) and time.monotonic() < end:
        time.sleep(0.1)
    return processes


def _inside(folder: Path) -> Iterator[str]:
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder and process.status() != psutil.STATUS_ZOMBIE:
                yield " ".join(process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass


def fingerprint(folder: Path) -> dict[str, str]:
    """SHA-256 of all files that the pipeline made, and the keys and states of its MLflow runs."""
    from mlflow import MlflowClient

    roots = [folder / name for name in COMPARED]
    files = [f for root in roots for f in ([root] if root.is_file() else sorted(root.rglob("*")))]
    hashes = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.is_file() and not (name := str(file.relative_to(folder))).startswith(TIMES)
    }
    with chdir(folder):
        locked = dvc_records.hashes().items()
    hashes |= {f"dvc.lock: {out}": md5 for out, md5 in locked if not out.startswith(DATED)}
    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    runs = client.search_runs(experiments, max_results=1000)
    names = Counter(f"mlruns: {run.info.run_name}" for run in runs)
    states = {
        f"mlruns: {run.info.run_name}: {role}": run.data.tags.get(role, "")
        for run in runs
        for role in ("medprobe.key", "medprobe.state")
    }
    return hashes | states | {name: str(count) for name, count in names.items()}


def stages(log: Path) -> int:
    """How many stages were begun."""
    return len(re.findall("Running stage", log.read_text()))


def undisturbed(folder: Path) -> float:
    """Make the project `pristine` and run it to its end as `calm`; how many seconds that took."""
    calm, log = folder / "calm", folder / "calm.log"
    shutil.copytree(project(folder / "pristine"), calm, symlinks=True)
    begin = time.monotonic()
    assert start(calm, log).wait() == 0, log.read_text()
    return time.monotonic() - begin


def kills(folder: Path, took: float, count: int, seed: int) -> None:
    """The pipeline, from the start again and again, stopped `count` times."""
    rng = random.Random(seed)
    expected, once = fingerprint(folder / "calm"), stages(folder / "calm.log")
    print(f"undisturbed: {took:.0f} s, {once} stages, {len(expected)} files and runs", flush=True)
    stops, rounds, again = Counter[str](), 0, 0
    while stops.total() < count:
        rounds += 1
        copy, log = folder / f"stopped-{rounds}", folder / f"stopped-{rounds}.log"
        shutil.copytree(folder / "pristine", copy, symlinks=True)
        stopped = 0
        while True:
            process, wait = start(copy, log), rng.uniform(0, took / 2)
            try:
                status = process.wait(wait if stops.total() < count else None)
                break
            except subprocess.TimeoutExpired:
                how = rng.choice(STOPS)
                stop(process, how)
                stops[how] += 1
                stopped += 1
                print(f"{how} after {wait:.0f} s, {stages(log)} stages begun", flush=True)
                assert not (remaining := alive(copy)), f"{how} left {remaining}"
                lock = copy / "dvc.lock"
                if lock.is_file() and not dvc_records.is_whole(lock.read_text()):
                    lock.unlink()  # as `medprobe repro` says
        result = fingerprint(copy) if status == 0 else {}
        differ = sorted(
            name for name in expected | result if expected.get(name) != result.get(name)
        )
        again += (more := stages(log) - once)
        summary = f"{stopped} stops: status {status}, {len(differ)} differ, {more} stages more"
        print(
            f"{summary}; {stops.total()} stops of {count} by now, {again} stages more", flush=True
        )
        if differ:
            print(f"{differ[:20]}\n{log.read_text()[-3000:]}")
        shutil.rmtree(copy)
    print(f"{dict(stops)}: in {rounds} rounds {again} stages ran more than {rounds * once}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="damaged files for each reader")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--disks", action="store_true", help="full ones, which root may mount")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        readers.write_world(data)
        if chosen.cases:
            for reader, counts in damage.try_all_readers(data, readers.READERS, chosen.cases):
                print(f"{reader}: {dict(counts)}", flush=True)
        if chosen.kills or chosen.disks:
            took = undisturbed(Path(name))
            kills(Path(name), took, chosen.kills, chosen.seed)
        if chosen.disks:
            for stage, room, outcome in disks.campaign(Path(name) / "calm", EVERY_KIND):
                print(f"{stage}, {room} KiB: {outcome}", flush=True)


if __name__ == "__main__":
    main()
