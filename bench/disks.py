"""A full disk under a stage of every kind: a file system of its own is filled but for a few
kilobytes, which needs the right to mount one."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from helpers.project import environment

ROOM: Final = (0, 8, 64, 512)  # KiB that are left
RESULTS: Final = ("metrics", "reports", "outputs")


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Path]:
    """An empty file system of so many bytes, in memory."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "none"]
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def commands(params: dict[str, Any]) -> list[list[str]]:
    """A stage of every kind: those of the first benchmark, set and model, and each method's."""
    first = next(iter(params["benchmarks"]))
    model = next(iter(params["models"]["masked"]))
    probes = [
        ["probe", "--model", next(iter(models)), "--method", method, "--benchmark", benchmark]
        for kind, models in params["models"].items()
        for method, benchmarks in params["methods"][kind].items()
        for benchmark in benchmarks
    ]
    sets = ["--set", next(iter(params["sentence_sets"]))]
    return [
        *(["check"], ["build", "--benchmark", first], ["validate", "--benchmark", first]),
        *(["validate-sentences", *sets],),
        *(["train", "--model", next(iter(params[part]))] for part in ("train", "continued")),
        *(["fetch", "--model", next(iter(params["folders"]))],),
        *(["rewire", "--model", model, *sets], *probes, ["score"]),
        *(["significance"], ["track"], ["compare"]),
    ]


def tried(folder: Path, command: list[str], room: int) -> str:
    """What a stage does with so many KiB left on its disk: `done`, `one line` with its outputs as
    before or absent (or whole, where the log of them found no room), or what is wrong."""
    shutil.rmtree(folder / "outputs/parts", ignore_errors=True)
    if command == ["track"]:
        shutil.rmtree(folder / "mlruns")
    before = _content(folder)
    filler = folder / "filler"
    with filler.open("wb") as stream:
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - room * 1024
        os.posix_fallocate(stream.fileno(), 0, max(1, free))
    line = ["medprobe", *command]
    process = subprocess.run(
        line, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    filler.unlink()
    after = _content(folder)
    half = [name for name in after if any(part.startswith(".") for part in name.parts)]
    if half:
        return f"left half-made: {half}"
    if process.returncode == 0:
        return "done"
    errors = re.findall("^(?:Error|Traceback).*", process.stderr, re.MULTILINE)
    if (
        process.returncode != 2
        or len(errors) != 1
        or "No space left on device; make" not in errors[0]
    ):
        return f"status {process.returncode}, {process.stderr[-1500:]}"
    changed = [name for name in after if after[name] != before.get(name)]
    if not changed:
        return "one line"
    halves = [name for name in changed if not _is_whole(folder / name)]
    return f"half-written {halves}" if halves else "one line, its results whole but not logged"


def _is_whole(file: Path) -> bool:
    try:
        pq.read_table(file) if file.suffix == ".parquet" else json.loads(file.read_text())
    except (pa.ArrowInvalid, ValueError):
        return False
    return True


def _content(folder: Path) -> dict[Path, bytes]:
    files = [file for name in RESULTS for file in (folder / name).rglob("*") if file.is_file()]
    parts = folder / "outputs/parts"
    return {
        file.relative_to(folder): file.read_bytes()
        for file in files
        if not (file.is_relative_to(parts) and not file.parent.name.startswith("."))
    }


def campaign(project: Path, params: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Each stage of a finished project with each room: what it does."""
    size = sum(file.stat().st_size for file in project.rglob("*") if file.is_file())
    with mounted(project.with_name("small-disk"), 2 * size + 2**26) as disk:
        folder = disk / "project"
        shutil.copytree(project, folder, symlinks=True, ignore=shutil.ignore_patterns("cache"))
        for command in commands(params):
            for room in ROOM:
                yield " ".join(command), room, tried(folder, command, room)
            again = ["medprobe", *command]  # with all the room it needs: nothing stays broken
            subprocess.run(again, cwd=folder, env=environment(), check=True, capture_output=True)
