"""A stage runs and reads what DVC has recorded for it, or it writes nothing.

DVC compares files of the project: the lists of code in outputs/code, the locks of plugins, and
requirements.lock. Python can run something else: the code of another clone, a file that was edited
after the stage `code` listed it, or a library of another version. Each stage compares the two
(`checked_code`). And DVC reads files and parameters when a stage has ended: what changes while it
runs would be recorded, although no number follows from it (`unchanged_inputs`).
"""

import os
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

from medprobe.core import IMPORT_TIME
from medprobe.core.code import (
    PACKAGE,
    ROOT,
    SOURCES,
    closure,
    installed_plugins,
    is_scratch,
    list_lines,
    list_path,
    stage_module,
)
from medprobe.core.dvc_records import flat
from medprobe.core.errors import BadInput
from medprobe.core.files import before_replacing, read_any
from medprobe.core.libraries import MISSING, differing_versions
from medprobe.core.places import LIBRARIES, PARAMS, PIPELINE

# Nanoseconds by which the time of a file can lag behind the clock.
TICK: Final = 20_000_000
LISTED_CODE: Final = re.compile(rf"^{PACKAGE}==\S+ # code (\w+)$", re.MULTILINE)
INSTALL: Final = "run `pip install --no-deps --editable .` here, or set PYTHONPATH=src"
AGAIN: Final = "run `medprobe repro` again; finished parts are kept"
FIELD: Final = re.compile(r"\$\{([^}]+)\}")  # in dvc.yaml, for a name of params.yaml


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
    # Versions are read again only if something was installed meanwhile, which changes a folder.
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

    line = LISTED_CODE.search(read_any(LIBRARIES))
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


def _library_folders() -> dict[str, int]:
    """When the folders from which Python imports changed last: an installation changes them."""
    return {name: os.stat(name).st_mtime_ns for name in sys.path if os.path.isdir(name)}


def _name(path: Path) -> str:
    return (SOURCES / path.relative_to(ROOT) if path.is_relative_to(ROOT) else path).as_posix()


@contextmanager
def unchanged_inputs(stage: str) -> Iterator[None]:
    """Compare the inputs of a stage of dvc.yaml at the end, and before outputs get their places.

    Of params.yaml only the parameters that the stage names are compared, and of files the times and
    sizes.

    Raises:
        BadInput: An input has changed since the block began, or since DVC began the stage.
    """
    sections = _sections()
    try:
        files, names = named_inputs(stage, sections)
    except KeyError as error:
        raise BadInput(PARAMS, f"has no {error} for the stage {stage}", AGAIN) from None
    states, params = _states(files), _values(sections, names)

    def check() -> None:
        now = _states(files)
        for path in sorted(states.keys() | now.keys()):
            if states.get(path) != now.get(path):
                raise BadInput(path, "was changed while the stage ran", AGAIN)
        values = _values(_sections(), names)
        for name in sorted(params.keys() | values.keys()):
            if params.get(name) != values.get(name):
                raise BadInput(f"{PARAMS}: {name}", "was changed while the stage ran", AGAIN)

    token = before_replacing.set(check)
    try:
        yield
        check()
    finally:
        before_replacing.reset(token)


def named_inputs(stage: str, sections: Any) -> tuple[list[str], list[str]]:
    """Return the dependencies and the names of parameters of a stage of dvc.yaml.

    They are as DVC resolves them, which would take it half a second; none of a stage that is not
    there.

    Args:
        stage: Its name, such as `build-medlama@medlama`.
        sections: The content of params.yaml.

    Raises:
        KeyError: The sections have no such item.
    """
    import yaml

    name, _, key = stage.partition("@")
    entry = (yaml.load(read_any(PIPELINE), yaml.CSafeLoader) or {}).get("stages", {}).get(name, {})
    fields: dict[str, Any] = {}
    if "matrix" in entry:
        items = [[*_find(sections, FIELD.sub(r"\1", of))] for of in entry["matrix"].values()]
        for chosen in product(*items):
            if "-".join(map(str, chosen)) == key:
                fields = flat(dict(zip(entry["matrix"], chosen, strict=True)), "item")
    elif "foreach" in entry:
        item = _find(sections, FIELD.sub(r"\1", entry["foreach"]))[key]
        fields, entry = {"key": key, **flat(item, "item")}, entry["do"]
    paths, names = (
        [FIELD.sub(lambda match: str(fields[match[1]]), text) for text in entry.get(part, ())]
        for part in ("deps", "params")
    )
    return paths, names


def _sections() -> Any:
    """The content of params.yaml, as DVC reads it."""
    from ruamel.yaml import YAML, YAMLError

    try:
        return YAML(typ="safe").load(PARAMS.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, YAMLError):
        return {}  # which DVC refuses as well


def _find(sections: Any, name: str) -> Any:
    """The value of a dotted name; an empty mapping where there is none."""
    for key in name.split("."):
        sections = sections.get(key, {}) if isinstance(sections, dict) else {}
    return sections


def _values(sections: Any, names: Iterable[str]) -> dict[str, Any]:
    """The values of parameters, by dotted names."""
    parts = [flat(_find(sections, name), name) for name in names]
    return {name: value for part in parts for name, value in part.items()}


def _states(paths: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    """When each file was written, its size, and which file it is; those below folders too."""
    states: dict[str, tuple[int, int, int]] = {}
    for path in paths:
        files = [path]
        for folder, folders, names in os.walk(path, followlinks=True):
            folders[:] = [name for name in folders if not is_scratch(name)]
            files += [os.path.join(folder, name) for name in names if not is_scratch(name)]
        for file in files:
            if os.path.isfile(file):
                status = os.stat(file)
                states[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return states
