"""Two checks that keep "up to date" true: DVC records the code and the settings that ran.

DVC reads what a stage depends on when the stage has ended. So a stage refuses to run the code of
another clone, and to go on with code that changes meanwhile. What it has finished stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from medprobe.core.code import SOURCES, is_scratch
from medprobe.core.errors import BadInput
from medprobe.core.files import before_replacing, list_files
from medprobe.core.parts import fingerprint
from medprobe.core.places import EXPECTATIONS, PARAMS, PLUGINS
from medprobe.core.plugins import ROOT

INSTALL: Final = "run `pip install --no-deps --editable .` here, or set PYTHONPATH=src"
AGAIN: Final = "run `medprobe repro` again; finished parts are kept"
States = dict[Path, tuple[int, int]]


@contextmanager
def unchanged() -> Iterator[None]:
    """Refuse code of another clone, and what changes while the block runs.

    Code is compared before each output gets its place, settings and suites at the end: what a stage
    writes follows from the settings that it has read.
    """
    _check_clone()
    code, settings = _states(SOURCES, PLUGINS), _states(PARAMS, EXPECTATIONS)

    def check_code() -> None:
        _compare(code, _states(SOURCES, PLUGINS))

    token = before_replacing.set(check_code)
    try:
        yield
        check_code()
        _compare(settings, _states(PARAMS, EXPECTATIONS))
    finally:
        before_replacing.reset(token)


def _check_clone() -> None:
    if not SOURCES.is_dir() or ROOT.samefile(SOURCES):
        return
    if fingerprint([ROOT]) != fingerprint([SOURCES]):
        raise BadInput(SOURCES, f"Python runs other code, that in {ROOT}", INSTALL)


def _states(*places: Path) -> States:
    """When each file was written last, and its size."""
    files = [file for place in places for file in list_files(place) if not is_scratch(file)]
    return {file: ((stat := file.stat()).st_mtime_ns, stat.st_size) for file in files}


def _compare(before: States, now: States) -> None:
    for path in sorted(before.keys() | now.keys()):
        if before.get(path) != now.get(path):
            raise BadInput(path, "was changed while the stage ran", AGAIN)
