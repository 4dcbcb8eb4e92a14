"""What a result was made from, when, where and by whom: the code's commit, DVC's hashes of the
inputs, the parameters, the libraries. What cannot be known is `unknown`: lineage fails nothing.
"""

import getpass
import json
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from operator import contains
from pathlib import Path
from typing import Any, Final

import yaml

from medprobe.core.files import replacing
from medprobe.core.parts import fingerprint

LOCK: Final = Path("dvc.lock")
DATA: Final = Path("data.dvc")
FOLLOWED: Final = ("src", "params.yaml", "data.dvc", "requirements.lock")
TRIES: Final = 5  # readings of a file that DVC may be writing
LIBRARIES: Final = ("torch", "transformers", "tokenizers", "numpy", "pandas", "faiss-cpu")
UNKNOWN: Final = "unknown"


def commit() -> str:
    """The git commit checked out, or `unknown` outside a repository."""
    return _git("rev-parse", "HEAD") or UNKNOWN


def followed() -> str:
    """The day and the commit that last changed what numbers follow from, code and settings, so that
    a commit of results does not move it; empty outside a repository."""
    found = _git("log", "-1", "--format=%cs, commit %H", "--", *FOLLOWED)
    changed = found and _git("status", "--porcelain", "--", *FOLLOWED)
    return found[:-30] + (" with changes" if changed else "")


def _git(*words: str) -> str:
    """What git says; nothing where it fails."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def user() -> str:
    """Who runs this, as far as the machine knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return UNKNOWN


def hashes(lock: Path = LOCK, data: Path = DATA) -> dict[str, str]:
    """DVC's hash of the data folder and of every stage's output, by path."""
    outs = [*_list(_read(data), "outs")]
    for stage in _stages(lock):
        outs += _list(stage, "outs")
    return {str(out["path"]): str(out["md5"]) for out in outs if {"path", "md5"} <= out.keys()}


def inputs(
    model: str, benchmark: str, sets: Iterable[str], known: dict[str, str]
) -> dict[str, str]:
    """The hashes of what probing a model on a benchmark reads, its checkpoints rewired on sentence
    `sets` too where the method probes those; `unknown` where DVC has none."""
    read = ["data", f"outputs/benchmarks/{benchmark}", f"outputs/models/{model}"]
    read += [f"outputs/rewired/{model}/{name}" for name in sets]
    return {path: known.get(path, UNKNOWN) for path in read}


def recorded_params(out: Path, lock: Path = LOCK) -> dict[str, Any] | None:
    """The parameters under which the stage that made the file `out` last ran, by their dotted
    names, or None where DVC has no record of it."""
    for stage in _stages(lock):
        if any(Path(str(made.get("path"))) == out for made in _list(stage, "outs")):
            params = stage.get("params")
            own = params.get("params.yaml") if isinstance(params, dict) else None
            return flat(own) if isinstance(own, dict) else None
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
    """Write to `path` when the block that makes the file `out` began and ended (milliseconds since
    1970), its seconds, and on what machine with which libraries it ran; `about` is written too,
    with the `tokens` that were read a second where it has them. Nothing where the block fails."""
    begin = _now()
    yield
    times = {"begin": begin, "end": (end := _now()), "seconds": round((end - begin) / 1000, 1)}
    if tokens := about.get("tokens"):
        times["tokens_per_second"] = round(1000 * int(str(tokens)) / max(end - begin, 1))
    made = {**times, "user": user(), **about, **environment()}
    with replacing(path) as scratch:
        content = {**made, "out": fingerprint([out])}
        scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def record(path: Path, out: Path) -> dict[str, Any]:
    """What `recorded` wrote of the file `out`, or nothing where it was lost, or where `out` was
    made elsewhere or at another time."""
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


def _stages(lock: Path) -> list[dict[str, Any]]:
    stages = _read(lock, whole).get("stages")
    found = stages.values() if isinstance(stages, dict) else []
    return [one for one in found if isinstance(one, dict)]


def whole(text: str) -> str:
    """The text of a dvc.lock up to the record that a kill, a full disk, or a reading while DVC
    writes it has cut off, which is the last one; all of it where that is whole."""
    starts = [found.start() for found in re.finditer(r"^  (?=\S)", text, re.MULTILINE)]
    if not starts or _is_record(text[starts[-1] :]):
        return text if starts else ""
    return text[: starts[-1]] if len(starts) > 1 else ""


def _is_record(text: str) -> bool:
    """Is there a stage's command, and of all its files the last thing that DVC writes of them?"""
    try:
        [record] = yaml.load(text, yaml.CSafeLoader).values()
        files = [*record.get("deps", []), *record["outs"]]
        ends = ["nfiles" if one["md5"].endswith(".dir") else "size" for one in files]
        return text.endswith("\n") and all(map(contains, files, ends)) and "cmd" in record
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return False


def _list(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    listed = content.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _read(path: Path, whole: Callable[[str], str] = str) -> dict[str, Any]:
    """A file of DVC's. Another process may be writing it, or was killed at it: it is read again
    while it is cut, and counts as far as it is whole where it stays so."""
    for attempt in range(TRIES):
        try:
            text = path.read_text(encoding="utf-8")
            content = yaml.load(whole(text), yaml.CSafeLoader)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, yaml.YAMLError):
            content, text = None, ""
        if text and whole(text) == text:
            break
        time.sleep(0.1 * attempt)
    return content if isinstance(content, dict) else {}
