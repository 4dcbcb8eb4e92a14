"""The models and benchmarks that a command names: of params.yaml, or by their paths.

An error says what is wrong with the argument, not what a project would have made of it.
"""

import re
from pathlib import Path

from medprobe.core.errors import BadInput
from medprobe.core.places import PARAMS
from medprobe.engine.formats import ENDING, is_gguf


def is_path(name: str) -> bool:
    """Is it the folder of a checkpoint, or a GGUF file?"""
    return Path(name).is_dir() or is_gguf(Path(name))


def is_hub_name(name: str) -> bool:
    """Is it a model's name on the hub, `owner/name`, and no path?"""
    return bool(re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name)) and not Path(name).parent.exists()


def check_model(name: str) -> bool:
    """Check a model's name or path; return whether it is a name that needs a project.

    Raises:
        BadInput: `name` is a file, a path to nothing, or a name where there is no project.
    """
    path = Path(name)
    if is_path(name) or is_hub_name(name):
        return False
    if path.is_file():
        problem = f"a file, expected the folder of a checkpoint or a {ENDING} file"
        raise BadInput(name, problem, f"give {path.parent}")
    if path.parts[1:]:
        raise BadInput(name, "no such folder", "give a checkpoint's folder, or a model's name")
    if not PARAMS.is_file():
        raise BadInput(name, "no such folder, and no params.yaml here that names a model")
    return True


def check_benchmark(name: str) -> bool:
    """Check a benchmark's name or its facts; return whether it is a name, which needs a project.

    Raises:
        BadInput: `name` is a path to nothing, or a name where there is no project.
    """
    path = Path(name)
    if path.suffix or path.parts[1:]:
        check_path(path)
    if path.is_file():
        return False
    if not PARAMS.is_file():
        if path.is_dir():
            return False
        raise BadInput(name, "no such file, and no params.yaml here that names a benchmark")
    return not path.is_dir()


def check_path(path: Path, option: str = "") -> None:
    """Raise BadInput where a path leads to nothing."""
    if not path.exists():
        raise BadInput(f"{option} {path}".strip(), "no such file", "correct its path")
