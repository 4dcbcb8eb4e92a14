"""What a result was made from: the code's commit, DVC's hashes of the inputs, the parameters."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

LOCK: Final = Path("dvc.lock")
DATA: Final = Path("data.dvc")
BUSY: Final = Path(".dvc/tmp/lock")  # DVC holds it whenever it writes its files
MAKERS: Final = {"classifier": "finetune"}  # methods that another command than `probe` runs


def commit() -> str:
    """The git commit checked out, or `unknown` outside a repository."""
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def hashes(lock: Path = LOCK, data: Path = DATA) -> dict[str, str]:
    """DVC's hash of the data folder and of every stage's output, by path."""
    stages = _read(lock).get("stages", {}).values()
    outs = [*_read(data).get("outs", []), *(out for stage in stages for out in stage["outs"])]
    return {out["path"]: out["md5"] for out in outs if "md5" in out}


def inputs(model: str, benchmark: str, known: dict[str, str]) -> dict[str, str]:
    """Of all hashes, those of what a model's probing on a benchmark has read."""
    exact = {
        *("data", f"outputs/benchmarks/{benchmark}", f"outputs/validation/{benchmark}"),
        f"outputs/models/{model}",
    }
    rewired = f"outputs/rewired/{model}/"
    return {path: md5 for path, md5 in known.items() if path in exact or path.startswith(rewired)}


def recorded_params(out: Path, lock: Path = LOCK) -> dict[str, Any] | None:
    """The parameters under which the stage that made `out` last ran, by their dotted names, or
    None where DVC has no record of it."""
    made = _maker(out, lock)
    return flat(made.get("params", {}).get("params.yaml", {})) if made else None


def stage(out: Path, lock: Path = LOCK) -> str:
    """The command whose stage makes `out`; by the name of its method where DVC has no record."""
    words = str(_maker(out, lock).get("cmd", "")).split()
    return (
        words[1] if words[:1] == ["medprobe"] and len(words) > 1 else MAKERS.get(out.name, "probe")
    )


def _maker(out: Path, lock: Path) -> dict[str, Any]:
    for entry in _read(lock).get("stages", {}).values():
        if any(Path(made["path"]) == out for made in entry["outs"]):
            return dict(entry)
    return {}


def flat(content: Any, prefix: str = "") -> dict[str, Any]:
    """A nested map as one map with dotted names.

    >>> flat({"engine": {"device": "cpu"}, "seed": 7})
    {'engine.device': 'cpu', 'seed': 7}
    """
    if not isinstance(content, dict):
        return {prefix: content}
    parts = [
        flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in content.items()
    ]
    return {name: value for part in parts for name, value in part.items()}


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    with _dvc_at_rest():
        text = path.read_text(encoding="utf-8")
    return yaml.load(text, yaml.CSafeLoader) or {}


@contextmanager
def _dvc_at_rest() -> Iterator[None]:
    """Wait until no DVC process, such as that of a job beside this one, writes its files."""
    if not BUSY.is_file():
        yield
        return
    with BUSY.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
