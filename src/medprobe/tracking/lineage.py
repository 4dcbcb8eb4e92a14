"""What a result was made from, when, where and by whom.

It has the code's commit, DVC's hashes of the inputs, the parameters, and the libraries. What cannot
be known is `unknown`: lineage fails nothing.
"""

import getpass
import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import yaml

from medprobe.core.files import replacing
from medprobe.core.parts import fingerprint

LOCK: Final = Path("dvc.lock")
DATA: Final = Path("data.dvc")
FOLLOWED: Final = ("src", "params.yaml", "data.dvc", "data/*.dvc", "requirements.lock")
TRIES: Final = 5  # readings of a file that DVC may be writing
LIBRARIES: Final = ("torch", "transformers", "tokenizers", "numpy", "pandas", "faiss-cpu")
UNKNOWN: Final = "unknown"
NOT_PINNED: Final = "not pinned by data.dvc"


def commit() -> str:
    """The git commit checked out, or `unknown` outside a repository."""
    return _git("rev-parse", "HEAD") or UNKNOWN


def followed() -> str:
    """Return the day and the commit that last changed code and settings.

    Numbers follow from these, so a commit of results does not move it. It is empty outside a
    repository.
    """
    change = _git("log", "-1", "--format=%cs, commit %H", "--", *FOLLOWED)
    changed = change and _git("status", "--porcelain", "--", *FOLLOWED)
    return change[:-30] + (" with changes" if changed else "")


def _git(*words: str) -> str:
    """What git says; nothing where it fails."""
    try:
        process = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def user() -> str:
    """Who runs this, as far as the machine knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return UNKNOWN


def hashes(lock: Path = LOCK) -> dict[str, str]:
    """DVC's hashes of the data and of stages' outputs, by path."""
    return pinned() | {out["path"]: out["md5"] for out in _outs(lock) if "md5" in out}


def pinned() -> dict[str, str]:
    """DVC's hashes of the data, by path: of `data`, or of the sources that are pinned alone."""
    files = [DATA, *sorted(DATA.with_suffix("").glob("*.dvc"))]
    outs = [(file.parent / out["path"], out.get("md5")) for file in files for out in _outs(file)]
    return {path.as_posix(): md5 for path, md5 in outs if md5}


def outs(file: Path) -> list[str]:
    """The outputs that DVC's records in a file name: in dvc.lock, or one of its cache of runs."""
    return [out["path"] for out in _outs(file)]


def inputs(model: str, benchmark: str, further: Iterable[str]) -> dict[str, str]:
    """Return the hashes of what probing a model on a benchmark reads.

    `further` are other outputs that the result was made from. A hash that DVC does not have is
    `unknown`; for data, NOT_PINNED.
    """
    paths = ["data", f"outputs/benchmarks/{benchmark}", f"outputs/models/{model}"]
    paths += further
    hash_by_path = hashes()
    return {path: hash_by_path.get(path, UNKNOWN) for path in paths} | {"data": data_hash()}


def data_hash() -> str:
    """Return DVC's hash of the data folder, a hash of those of its sources, or NOT_PINNED."""
    by_path = pinned()
    if "data" in by_path or not by_path:
        return by_path.get("data", NOT_PINNED)
    return hashlib.md5(repr(by_path).encode(), usedforsecurity=False).hexdigest()


def recorded_params(out: Path, lock: Path = LOCK) -> dict[str, Any] | None:
    """Return the parameters under which the stage that made the file `out` last ran.

    They are by their dotted names, or None if DVC has no record of it.
    """
    path = out.as_posix()
    for record in _records(lock):
        if any(out.get("path") == path for out in record.get("outs", [])):
            settings = record.get("params", {}).get("params.yaml")
            return flat(settings) if settings else None
    return None


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


@contextmanager
def recorded(path: Path, out: Path, about: Mapping[str, object]) -> Iterator[None]:
    """Write to `path` how the block that makes the file `out` ran.

    The record has when it began and ended (milliseconds since 1970), its seconds, and on what
    machine with which libraries it ran. `about` is written too, with the `tokens` that were read a
    second if it has them. If the block fails, nothing is written.
    """
    begin = _now()
    yield
    times = {"begin": begin, "end": (end := _now()), "seconds": round((end - begin) / 1000, 1)}
    if tokens := about.get("tokens"):
        times["tokens_per_second"] = round(1000 * int(str(tokens)) / max(end - begin, 1))
    run = {**times, "user": user(), **about, **environment()}
    with replacing(path) as scratch:
        content = {**run, "out": fingerprint([out])}
        scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def record(path: Path, out: Path) -> dict[str, Any]:
    """Return what `recorded` wrote of the file `out`.

    It is empty if it was lost, or if `out` was made on another machine or at another time.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if content.pop("out") == fingerprint([out]) else {}
    except (OSError, ValueError, KeyError, AttributeError):
        return {}


def environment() -> dict[str, str]:
    """Machine, device and versions of what computes."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[f"version.{name}"] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[f"version.{name}"] = UNKNOWN
    return {"python": platform.python_version(), "machine": platform.machine(), **versions}


def _now() -> int:
    return int(time.time() * 1000)


def _outs(file: Path) -> list[dict[str, Any]]:
    """What DVC records of outputs; one whose path was cut off is left out."""
    return [out for record in _records(file) for out in record.get("outs", []) if "path" in out]


def _records(file: Path) -> list[dict[str, Any]]:
    """What DVC records of each stage in dvc.lock, or the only record in another file."""
    content = _mapping(_text(file))
    return list(content["stages"].values()) if "stages" in content else [content]


@lru_cache(maxsize=2)  # dvc.lock takes a fifth of a second
def _mapping(text: str) -> dict[str, Any]:
    """A YAML mapping; empty where the text is none."""
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except (ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(path: Path) -> str:
    """The text of a file of DVC's; empty where there is none, or where it stays cut.

    Another process may be writing it: it is read again while it is cut.
    """
    for attempt in range(TRIES):
        time.sleep(0.1 * attempt)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, ValueError):
            continue
        if is_whole(text):
            return text
    return ""


def is_whole(text: str) -> bool:
    """Return whether the text of a file of DVC's is whole.

    DVC writes in place, so that a kill, or reading it meanwhile, leaves a line without its end or a
    key without its value. What is lost after a whole line DVC makes good itself: it runs the stage
    again, or takes it from its cache.
    """
    return text.endswith("\n") and not text.endswith(":\n")
