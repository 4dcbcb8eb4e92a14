"""What DVC records of data, and of stages' outputs.

It is read from dvc.lock, data.dvc and the runs in DVC's cache. A file that is missing, damaged or
not DVC's counts as empty.
"""

import hashlib
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

LOCK: Final = Path("dvc.lock")
DATA: Final = Path("data.dvc")
TRIES: Final = 5  # readings of a file that DVC may be writing
NOT_PINNED: Final = "not pinned by data.dvc"


def hashes() -> dict[str, str]:
    """DVC's hashes of the data and of stages' outputs, by path."""
    return pinned() | {out["path"]: out["md5"] for out in _outs(LOCK) if "md5" in out}


def pinned() -> dict[str, str]:
    """DVC's hashes of the data, by path: of `data`, or of the sources that are pinned alone."""
    files = [DATA, *sorted(DATA.with_suffix("").glob("*.dvc"))]
    outs = [(file.parent / out["path"], out.get("md5")) for file in files for out in _outs(file)]
    return {path.as_posix(): md5 for path, md5 in outs if md5}


def outs() -> list[str]:
    """The outputs that dvc.lock names."""
    return [out["path"] for out in _outs(LOCK)]


def data_hash() -> str:
    """Return DVC's hash of the data folder, a hash of those of its sources, or NOT_PINNED."""
    by_path = pinned()
    if "data" in by_path or not by_path:
        return by_path.get("data", NOT_PINNED)
    return hashlib.md5(repr(by_path).encode(), usedforsecurity=False).hexdigest()


def stage_of(path: Path) -> str:
    """Return the stage whose output a path is, or is below; empty if DVC has no record of it."""
    places = {place.as_posix() for place in (path, *path.parents)}
    for name, record in _mapping(_text(LOCK)).get("stages", {}).items():
        if any(out.get("path") in places for out in record.get("outs", [])):
            return str(name)
    return ""


def check_out(*paths: Path) -> None:
    """Bring back from DVC's cache the outputs that dvc.lock names and that are not here.

    DVC itself does so before it runs a stage, but not for outputs that persist. What the cache
    lacks stays missing.
    """
    lost = {path.as_posix() for path in paths if not path.exists()}
    if lost and (recorded := lost.intersection(outs())):
        from dvc.exceptions import DvcException  # DVC takes a second
        from dvc.repo import Repo

        with suppress(DvcException), Repo(_wait_for_lock=True) as repo:
            repo.checkout([*recorded], allow_missing=True)


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


def _outs(file: Path) -> list[dict[str, Any]]:
    """What DVC records of outputs; one whose path was cut off is left out."""
    content = _mapping(_text(file))
    records = content["stages"].values() if "stages" in content else [content]
    return [out for record in records for out in record.get("outs", []) if "path" in out]


@lru_cache(maxsize=2)  # dvc.lock takes a fifth of a second
def _mapping(text: str) -> dict[str, Any]:
    """A YAML mapping; empty where the text is none."""
    import yaml  # which --help does not need

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
        if _is_whole(text):
            return text
    return ""


def is_cut() -> bool:
    """Return whether dvc.lock is incomplete, and nobody completes it."""
    return LOCK.is_file() and not _text(LOCK)


def _is_whole(text: str) -> bool:
    """Whether the text of a file of DVC's is whole.

    DVC writes in place, so that a kill, or reading it meanwhile, leaves a line without its end or a
    key without its value. What is lost after a whole line DVC makes good itself: it runs the stage
    again, or takes it from its cache.
    """
    return text.endswith("\n") and not text.endswith(":\n")
