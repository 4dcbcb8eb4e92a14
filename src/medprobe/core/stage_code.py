"""A stage runs the code and the libraries that DVC has recorded for it, or it writes nothing.

DVC compares files of the project: the lists of code in outputs/code, the locks of plugins, and
requirements.lock. Python can run something else: the code of another clone, a file that was edited
after the stage `code` listed it, or a library of another version. Each stage compares the two.
"""

import os
import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from medprobe.core import IMPORT_TIME
from medprobe.core.code import (
    PACKAGE,
    ROOT,
    SOURCES,
    closure,
    installed_plugins,
    list_lines,
    list_path,
    stage_module,
)
from medprobe.core.errors import BadInput
from medprobe.core.files import before_replacing
from medprobe.core.libraries import MISSING, differing_versions
from medprobe.core.places import LIBRARIES
from medprobe.core.stage_inputs import AGAIN

TICK: Final = 20_000_000  # nanoseconds by which the time of a file can lag behind the clock
LISTED_CODE: Final = re.compile(rf"^{PACKAGE}==\S+ # code (\w+)$", re.MULTILINE)
INSTALL: Final = "run `pip install --no-deps --editable .` here, or set PYTHONPATH=src"


@contextmanager
def checked_code(stage: str, name: str = "", **plugins: list[str]) -> Iterator[None]:
    """Compare the code and libraries that a stage runs with what DVC has recorded for it.

    The comparison is made now, and again before each output or part of the block gets its place.
    No file of the stage's code can have been written since this process began to import it, since
    the process can have read it before or after. Code for which nothing is recorded is not
    compared: a project outside a clone, without requirements.lock, and a clone without lists.

    Args:
        stage: The name of its module in `medprobe.pipeline.stages`.
        name: As for `core.code.list_path`.
        plugins: As for `core.code.closure`.

    Raises:
        BadInput: The code or a library differs, or a file of the code was written meanwhile.
    """
    check_libraries()
    files = closure(stage_module(stage), plugins=plugins)
    if not _check_recorded_code(list_path(stage, name), plugins, files) and not _check_package():
        yield
        return
    states = {path: _state(path) for path in files}
    now = time.time_ns()
    for path, state in states.items():
        if IMPORT_TIME - TICK < state[0] <= now:  # a later time is of another machine's clock
            raise BadInput(_name(path), "was written while the stage started", AGAIN)
    folders, check_inputs = _library_folders(), before_replacing.get()

    def check_again() -> None:
        check_inputs()
        for path in (path for path in files if _state(path) != states[path]):
            raise BadInput(_name(path), "was written while the stage ran", AGAIN)
        if _library_folders() != folders:
            check_libraries()

    token = before_replacing.set(check_again)
    try:
        yield
    finally:
        before_replacing.reset(token)


def check_libraries() -> None:
    """Compare the installed versions of the libraries with requirements.lock.

    Raises:
        BadInput: One differs.
    """
    differing = differing_versions()
    for name, (version, installed) in differing.items():
        state = "is not installed" if installed == MISSING else f"{installed} is installed"
        others = f", and {len(differing) - 1} more differ" if len(differing) > 1 else ""
        problem = f"{name} {version} is required, {state}{others}"
        change = "change the file" if SOURCES.is_dir() else "run `medprobe pipeline`"
        raise BadInput(LIBRARIES, problem, f"`pip install -r {LIBRARIES}`, or {change}")


def _check_recorded_code(
    path: Path, plugins: Mapping[str, Collection[str]], files: Collection[Path]
) -> bool:
    """Compare a stage's code with its list in `path`, and with the locks of installed plugins.

    Returns whether one of them is there.
    """
    from medprobe.core.parts import plugin_lock  # imports pandas, which --help does not need

    found = False
    if path.is_file():
        found = True
        listed = {*path.read_text(encoding="utf-8").splitlines(keepends=True)}
        lines = list_lines(files, ROOT)
        if differing := listed.symmetric_difference(lines.values()):
            _refuse(min(line.split()[1] for line in differing), path)
    for plugin in installed_plugins(files, plugins):
        if plugin.lock and plugin.lock.is_file():
            found = True
            if plugin.lock.read_text(encoding="utf-8") != plugin_lock(plugin):
                problem = f"is of another version than the installed {plugin.module}"
                raise BadInput(plugin.lock, problem, "run `medprobe pipeline`")
    return found


def _refuse(name: str, path: Path) -> None:
    """Raise BadInput for a file that differs from its line in a list."""
    used = ROOT / Path(name).relative_to(SOURCES)
    if used.resolve() != Path(name).resolve():
        problem = f"Python runs {used}, which {path} does not list"
        raise BadInput(name, problem, INSTALL)
    raise BadInput(name, f"was changed after {path} listed it", AGAIN)


def _check_package() -> bool:
    """Compare the package's code with requirements.lock in a project outside a clone.

    Returns whether the file has a hash of it.
    """
    from medprobe.core.parts import package_fingerprint

    line = LISTED_CODE.search(_text(LIBRARIES))
    if line and not package_fingerprint().startswith(line[1]):
        problem = f"lists other code than the installed {PACKAGE}"
        raise BadInput(LIBRARIES, problem, "run `medprobe pipeline`, then `medprobe repro`")
    return line is not None


def _state(path: Path) -> tuple[int, ...]:
    """When a file changed last, in nanoseconds, and which file it is; zeros without the file.

    The time is the one that the system keeps of each write, rename or change of mode. A program
    cannot set it, as it can set the time of modification.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0, 0, 0)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _library_folders() -> dict[str, int]:
    """When the folders from which Python imports changed last: an installation changes them."""
    return {name: os.stat(name).st_mtime_ns for name in sys.path if os.path.isdir(name)}


def _name(path: Path) -> str:
    return (SOURCES / path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()
