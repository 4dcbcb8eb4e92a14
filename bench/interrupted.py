"""A small project whose DVC and MLflow commands are killed, and whose branches are changed.

    python -m bench.interrupted --kills 10

Kills `dvc push`, `medprobe track` on a fresh store, and `dvc exp run --temp`, and repeats each.
Then it merges, rebases and checks out branches with another `dvc.lock`. Prints after each what
`dvc status` and MLflow say. docs/reference/reliability.md has the figures.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from mlflow import MlflowClient

from helpers.project import SMALL, Project, environment

CLEAN = "up to date"


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m bench.interrupted")
    parser.add_argument("--kills", type=int, default=10)
    kills, rng = parser.parse_args().kills, random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = new_project(folder / "project")
        project.works("dvc", "remote", "add", "--default", "there", str(folder / "remote"))
        project.commit("The recorded run")
        push(project, folder, kills, rng)
        track(project, kills, rng)
        experiments(project, kills, rng)
        branches(project)


def new_project(folder: Path) -> Project:
    """A project that has run to its end."""
    project = Project(folder)
    project.replace(**SMALL)
    project.works("medprobe", "pipeline")
    project.works("medprobe", "sample")
    project.works("dvc", "add", "--quiet", "data")
    project.works("medprobe", "repro")
    return project


def push(project: Project, folder: Path, kills: int, rng: random.Random) -> None:
    """Kill pushes, push once more, and pull into a clone."""
    seconds = duration(project, "dvc", "push")
    for _ in range(kills):
        shutil.rmtree(folder / "remote")
        killed = kill(project, rng.uniform(0, seconds), "dvc", "push")
        before = files(folder / "remote")
        project.works("dvc", "push")
        clone = project.clone(folder / "clone")
        clone.works("dvc", "pull")
        print(f"push: {killed}, {before} files there; pushed again, pulled: {status(clone)}")
        shutil.rmtree(clone.folder)


def track(project: Project, kills: int, rng: random.Random) -> None:
    """Kill `track` on a fresh store, and track again."""
    store = project.folder / "mlruns"
    shutil.rmtree(store)
    seconds = duration(project, "medprobe", "track")
    whole = runs(store)
    for _ in range(kills):
        shutil.rmtree(store)
        killed = kill(project, rng.uniform(0, seconds), "medprobe", "track")
        output = project.run("medprobe", "track")
        print(f"track: {killed}; again: exit {output.returncode}, {runs(store)} runs of {whole}")


def experiments(project: Project, kills: int, rng: random.Random) -> None:
    """Kill experiments in a folder of their own, and run one to its end."""
    command = ("dvc", "exp", "run", "--temp", "-S")
    seconds = duration(project, *command, "score.bootstrap=60")
    for number in range(kills):
        killed = kill(project, rng.uniform(0, seconds), *command, f"score.bootstrap={61 + number}")
        changed = project.works("git", "status", "--porcelain").splitlines()
        print(f"exp run: {killed}; git: {len(changed)} changes; {status(project)}")
    output = project.run(*command, "score.bootstrap=99")
    entries = len([*(project.folder / ".dvc/tmp/exps").glob("*")])
    print(f"exp run: after all kills exit {output.returncode}, {entries} entries in .dvc/tmp/exps")


def branches(project: Project) -> None:
    """Check out, rebase and merge branches with another dvc.lock; count what runs then."""
    main = project.works("git", "branch", "--show-current").strip()
    for branch, section in (("bootstrap", {"score": {"bootstrap": 70}}), ("seed", {"seed": 8})):
        project.works("git", "checkout", "--quiet", "-b", branch, main)
        project.works("dvc", "checkout")
        project.replace(**section)
        project.works("medprobe", "repro")
        project.commit(branch)
    for branch in ("bootstrap", "seed", main):
        project.works("git", "checkout", "--quiet", branch)
        print(f"git checkout {branch}: {run_next(project)}")
    project.works("git", "checkout", "--quiet", "-b", "notes")
    (project.folder / "NOTES.md").write_text("A file that no stage reads.\n")
    project.commit("notes")
    for word in ("merge", "rebase"):
        for branch, side in (("notes", ""), ("bootstrap", "--ours"), ("bootstrap", "--theirs")):
            project.works("git", "checkout", "--quiet", "-B", word, branch)
            conflicts = join(project, word, side)
            print(f"git {word} of {branch} and seed, {conflicts}: {run_next(project)}")
            if project.works("git", "status", "--porcelain"):
                project.commit(word)


def join(project: Project, word: str, side: str) -> str:
    """Merge the branch `seed`, or rebase onto it, and take one side of what is in conflict."""
    output = project.run("git", word, *(["--no-edit"] if word == "merge" else []), "seed")
    if not output.returncode:
        return "without conflict"
    conflicts = project.works("git", "diff", "--name-only", "--diff-filter=U").split()
    project.works("git", "checkout", side, *conflicts)
    project.works("git", "add", "--all")
    project.works("git", "-c", "core.editor=true", word, "--continue")
    return f"{side} of {len(conflicts)} files in conflict"


def run_next(project: Project) -> str:
    """Which stages `dvc checkout` and `medprobe repro` leave to run."""
    before = status(project)
    project.works("dvc", "checkout")
    output = project.works("medprobe", "repro")
    ran = re.findall(r"Running stage '([^']+)'", output)
    cached = output.count("is cached - skipping run")
    return f"{before}; run: {', '.join(ran) or 'none'}; from the cache: {cached}; {status(project)}"


def duration(project: Project, *command: str) -> float:
    """The seconds that a command takes undisturbed."""
    begin = time.monotonic()
    project.works(*command)
    return time.monotonic() - begin


def kill(project: Project, after: float, *command: str) -> str:
    """Kill a command, with its children, after so many seconds."""
    process = subprocess.Popen(
        command,
        cwd=project.folder,
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(after)
        return "had ended"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"killed after {after:.1f} s"


def files(folder: Path) -> int:
    """How many files a folder holds."""
    return sum(path.is_file() for path in folder.rglob("*"))


def runs(store: Path) -> int:
    """How many finished runs a store of MLflow holds."""
    client = MlflowClient(f"sqlite:///{store}/mlflow.db")
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    return len(client.search_runs(ids, "attributes.status = 'FINISHED'", max_results=5000))


def status(project: Project) -> str:
    """What `dvc status` says: up to date, or how many stages have changed."""
    output = project.works("dvc", "status")
    stages = [line for line in output.splitlines() if line.endswith(":") and line[:1].strip()]
    return CLEAN if CLEAN in output else f"{len(stages)} stages changed"


if __name__ == "__main__":
    main()
