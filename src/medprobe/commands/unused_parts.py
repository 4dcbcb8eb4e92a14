"""Finished parts that nothing is made of any more; `medprobe clean` removes them."""

from pathlib import Path

from medprobe.commands.stale_stages import find_stale_stages
from medprobe.core import places
from medprobe.core.params import Params


def unused_parts(params: Params) -> list[Path]:
    """List the finished parts that no result of params.yaml is made of.

    Parts of older code, settings or data, and states of trainings. None is listed while stages are
    left to run: they may need them.
    """
    if find_stale_stages():
        return []
    records = [path for path in places.USED_PARTS.rglob("*.txt") if _is_named(path, params)]
    used = {name for path in records for name in path.read_text(encoding="utf-8").splitlines()}
    return sorted(
        path
        for path in places.PARTS.glob("[!.]*")
        if path.name not in used and (path.is_file() or path.name.startswith("rewire-"))
    )


def _is_named(record: Path, params: Params) -> bool:
    """Whether params.yaml names the result of which a file records the used parts."""
    names = record.relative_to(places.USED_PARTS).with_suffix("").parts
    return len(names) == 1 or params.names_result(*names)
