"""Damaged files for every reader, and kills at random moments over a small pipeline.

    python -m bench.faults --cases 1000 --kills 10

Prints for each reader how many damaged files it read and refused, and after the kills whether all
that the pipeline made is the same to the byte as without them, and how many stages ran again.
docs/reliability.md has the figures.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import yaml

from bench import damage

ROOT: Final = Path(__file__).parents[1]
NEEDED: Final = (
    *("dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", ".gitignore", "expectations", "src"),
    *("requirements.lock", "requirements-tools.lock"),
)
MADE: Final = ("dvc.lock", "metrics", "reports", "outputs/benchmarks", "outputs/about")
MODELS: Final = (
    "outputs/models",
    "outputs/predictions",
    "outputs/validation",
    "outputs/tracked.json",
)
SMALL: Final[dict[str, Any]] = {
    "sample": {"queries": 20, "reserve": 8},
    "train": {"taught": {"kind": "masked", "corpus": "taught", "steps": 5}},
    "models": {"masked": {"taught": {}}},
    "sentence_sets": {},
    "benchmarks": {"biolama": {"biolama": {}}},
    "methods": {"masked": {"mask_average": {"biolama": {}}}},
    "score": {"bootstrap": 50},
}


def project(folder: Path) -> None:
    """The project in a folder, made small, with the sample world."""
    for name in NEEDED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy(source, target)
    content = yaml.safe_load((ROOT / "params.yaml").read_text()) | SMALL
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for command in (["medprobe", "sample"], ["dvc", "add", "--quiet", "data"]):
        subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True)


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def repro(folder: Path, log: Path, killed_after: float | None = None) -> int:
    """Run the pipeline, or kill it and all it started after so many seconds; its exit status."""
    with log.open("a") as stream:
        command = ["medprobe", "repro", "--jobs", "1"]
        made = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=stream, stderr=stream, process_group=0
        )
        try:
            return made.wait(killed_after)
        except subprocess.TimeoutExpired:
            os.killpg(made.pid, signal.SIGKILL)
            return made.wait()


def fingerprint(folder: Path) -> dict[str, str]:
    """SHA-256 of all files that the pipeline made, by path."""
    roots = [folder / name for name in (*MADE, *MODELS)]
    files = [f for root in roots for f in ([root] if root.is_file() else sorted(root.rglob("*")))]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.is_file()
    }


def kills(folder: Path, count: int, seed: int) -> None:
    """The small pipeline, undisturbed and killed `count` times."""
    rng = random.Random(seed)
    calm, killed = folder / "calm", folder / "killed"
    for one in (calm, killed):
        project(one)
    begin = time.monotonic()
    assert repro(calm, folder / "calm.log") == 0, (folder / "calm.log").read_text()
    took = time.monotonic() - begin
    stopped = sum(
        repro(killed, folder / "killed.log", rng.uniform(1, took * 0.8)) < 0 for _ in range(count)
    )
    last = repro(killed, folder / "killed.log")
    expected, found = fingerprint(calm), fingerprint(killed)
    differ = sorted(name for name in expected | found if expected.get(name) != found.get(name))
    ran = [
        (folder / f"{name}.log").read_text().count("Running stage") for name in ("calm", "killed")
    ]
    print(f"{took:.0f} s undisturbed; {stopped} of {count} runs killed, the last ended with {last}")
    print(f"{len(expected)} files, {len(differ)} differ {differ[:5]}; stages run: {ran}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="damaged files for each reader")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        damage.world(data)
        for reader, counts in damage.campaign(data, chosen.cases) if chosen.cases else ():
            print(f"{reader}: {dict(counts)}", flush=True)
        if chosen.kills:
            kills(Path(name), chosen.kills, chosen.seed)


if __name__ == "__main__":
    main()
