"""What DVC records of a stage's inputs is what the stage has read, or the stage fails.

DVC reads files and parameters when a stage has ended. What changes while the stage runs would be
recorded, although no number follows from it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import yaml
from ruamel.yaml import YAML, YAMLError

from medprobe.core.code import is_scratch
from medprobe.core.dvc_records import flat
from medprobe.core.errors import BadInput
from medprobe.core.files import before_replacing
from medprobe.core.places import PARAMS

PIPELINE: Final = Path("dvc.yaml")
AGAIN: Final = "run `medprobe repro` again; finished parts are kept"
FIELD: Final = re.compile(r"\$\{([^}]+)\}")  # in dvc.yaml, for a name of params.yaml


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
    name, _, key = stage.partition("@")
    content = PIPELINE.read_text(encoding="utf-8") if PIPELINE.is_file() else ""
    entry = (yaml.load(content, yaml.CSafeLoader) or {}).get("stages", {}).get(name, {})
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
