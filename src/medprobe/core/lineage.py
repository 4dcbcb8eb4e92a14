"""How a result was made: by which code, when, where, by whom, and with which libraries.

What cannot be known is `unknown`: lineage fails nothing.
"""

import getpass
import json
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from medprobe.core import dvc_records
from medprobe.core.files import write_whole
from medprobe.core.libraries import installed_versions
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint

FOLLOWED: Final = ("src", "params.yaml", "data.dvc", "data/*.dvc", "requirements.lock")
LIBRARIES: Final = ("torch", "transformers", "tokenizers", "numpy", "pandas", "faiss-cpu")
UNKNOWN: Final = "unknown"


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


def probing_settings(method: str, settings: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """Return the seed, the precision and a method's settings, by dotted name."""
    of_method = dvc_records.flat(settings, method)
    return {"seed": params.seed, "engine.precision": params.engine.precision, **of_method}


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
    write_whole(path, json.dumps({**run, "out": fingerprint([out])}, indent=1) + "\n")


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
    versions = {f"version.{name}": text for name, text in installed_versions(LIBRARIES).items()}
    return {"python": platform.python_version(), "machine": platform.machine(), **versions}


def _now() -> int:
    return int(time.time() * 1000)
