"""dvc.yaml is regenerated if the code or params.yaml changed.

What it follows from is compared first, since to write it all methods are imported, for seconds.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from medprobe.core.code import SOURCES
from medprobe.core.params import load_params
from medprobe.core.plugins import KINDS, find_outside_plugins
from medprobe.core.progress import print_above
from medprobe.pipeline.artifacts import artifacts
from medprobe.pipeline.stale_stages import CODE_STAGE

PIPELINE: Final = Path("dvc.yaml")
NAMED: Final = ("benchmarks", "methods", "metrics")  # kinds of plugins that dvc.yaml names at once
MARK: Final = "# Written by `medprobe pipeline`"
CHANGED: Final = "because the code or params.yaml changed"


def write_outdated(stages: Collection[str]) -> bool:
    """Write dvc.yaml again if code or params.yaml asks for another one; return whether it did.

    A dvc.yaml that `medprobe pipeline` did not write stays. So do locks: where another version is
    installed, stages refuse to run until a person has run `medprobe pipeline`.

    Args:
        stages: The names of the stages that would run.
    """
    if not PIPELINE.is_file():
        return False
    text = PIPELINE.read_text(encoding="utf-8")
    if not text.startswith(MARK) or not _may_differ(text, stages):
        return False
    from medprobe.pipeline import dvc_yaml

    written = dvc_yaml.write(locks=False)
    for path in written:
        print_above(f"{path}: regenerated, {CHANGED}")
    return bool(written)


def _may_differ(text: str, stages: Collection[str]) -> bool:
    """Whether package, plugins or models to train may be other ones than at the last writing."""
    if artifacts(load_params()) not in text:
        return True
    if any(stages and find_outside_plugins(kind) for kind in KINDS):
        return True  # an edited one may read or need other things
    named = (
        plugin.lock or plugin.file
        for kind in NAMED
        for plugin in find_outside_plugins(kind).values()
    )
    if not all(path and path.as_posix() in text for path in named):
        return True
    return SOURCES.is_dir() and CODE_STAGE in stages
