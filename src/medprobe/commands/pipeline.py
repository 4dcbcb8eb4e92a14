"""`medprobe pipeline`: write dvc.yaml from its template and the code.

The template contains the stages. The code fills in the files on which a stage's numbers depend, the
sources of each builder, and the kinds of model of each method. In a project outside a clone,
requirements.lock replaces the code as a dependency: it is written too, with the installed versions.
For each plugin of another installed package, `plugins/<kind>/<name>.lock` has the version and a
hash of its code. A plugin of the project itself is named by its files.
"""

import re
import textwrap
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medprobe import benchmarks, methods
from medprobe.check import SETS
from medprobe.core.code import (
    PACKAGE,
    ROOT,
    closure,
    closure_candidates,
    module_file,
    plugin_files,
)
from medprobe.core.files import replacing
from medprobe.core.params import MODEL_KINDS, SWEPT
from medprobe.core.parts import LIBRARIES, fingerprint
from medprobe.core.places import CHECKED, EXPECTATIONS, NAMED
from medprobe.core.plugins import KINDS, find_plugins
from medprobe.quality.suites import folders

PIPELINE: Final = Path("dvc.yaml")
TEMPLATE: Final = "pipeline.yaml.jinja"
TOOLS: Final = "requirements-tools.lock"  # versions of the libraries that check, draw and log
SOURCES: Final = Path("src") / PACKAGE  # of the code in a clone
WIDTH: Final = 100
CHECKING: Final = [  # the code on which the stage `check` depends
    (SOURCES / "core" / name).as_posix() for name in ("files.py", "params.py", "places.py")
]


def write() -> list[Path]:
    """Write `dvc.yaml`, the locks of plugins and, outside a clone, `requirements.lock`.

    Returns their paths.
    """
    texts = files()
    for path, content in texts.items():
        with replacing(path) as scratch:
            scratch.write_text(content, encoding="utf-8")
    return list(texts)


def files() -> dict[Path, str]:
    """The files that `write` writes, and their texts."""
    texts = {PIPELINE: text(), **plugin_locks()}
    return texts if _is_clone() else {**texts, LIBRARIES: installed_versions()}


def _is_clone() -> bool:
    """Whether this folder contains the code."""
    return SOURCES.is_dir()


def installed_versions() -> str:
    """Format `requirements.lock`.

    It has the installed versions of this package, with a hash of its code, and of its requirements.
    """
    required = {re.split(r"[^\w.-]", line)[0] for line in metadata.requires(PACKAGE) or ()}
    required -= {PACKAGE}  # the extra `dev` names the extra `project`
    package = f"{PACKAGE}=={metadata.version(PACKAGE)} # code {fingerprint([ROOT])[:32]}"
    lines = [f"{name}=={version}" for name in sorted(required) if (version := _version(name))]
    return "\n".join(["# written by `medprobe pipeline`", package, *lines]) + "\n"


def plugin_locks() -> dict[Path, str]:
    """The lock of each plugin of an installed package, and its text."""
    plugins = [plugin for kind in KINDS for plugin in find_plugins(kind).values()]
    return {
        plugin.lock: f"{plugin.package} # code {fingerprint(plugin_files(plugin))[:32]}\n"
        for plugin in plugins
        if plugin.lock
    }


def _version(name: str) -> str:
    """The version of a package; empty if it is not installed, as those of an unused extra."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def text() -> str:
    """Render dvc.yaml."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # YAML, from the package's own names
    )
    return environment.get_template(TEMPLATE).render(
        builders={name: benchmarks.find(name) for name in benchmarks.list_names()},
        methods={name: methods.find(name) for name in methods.list_names()},
        kinds=MODEL_KINDS,
        sets=SETS,
        swept=SWEPT,
        libraries=LIBRARIES.as_posix(),
        checking=CHECKING if _is_clone() else [],
        tools=[TOOLS] if _is_clone() else [],
        checked=CHECKED.as_posix(),
        named=NAMED.as_posix(),
        code=code,
        sources=lambda names: [f"data/{name}" for name in names],
        yaml_list=yaml_list,
        suites=lambda name: [path.as_posix() for path in folders(EXPECTATIONS / name)],
    )


def code(stage: str, **plugins: list[str]) -> list[str]:
    """List the code on which a stage's numbers depend.

    It is the libraries, files of the package, files of the project's plugins, and the locks of
    installed plugins. If all files of a folder of the package count, the folder replaces them: each
    line in dvc.lock costs DVC time.

    >>> code("build", benchmarks=["medlama"])[0]
    'requirements.lock'
    """
    files = closure(f"medprobe.stages.{stage}", plugins=plugins)
    package_files = [file for file in files if file.is_relative_to(ROOT)]
    dependencies: dict[str, None] = {}
    for file in package_files if _is_clone() else []:
        path = file
        for folder in file.parents:
            if folder == ROOT or not closure_candidates(folder) <= set(files):
                break
            path = folder
        dependencies[(SOURCES / path.relative_to(ROOT)).as_posix()] = None
    dependencies |= dict.fromkeys(path.as_posix() for path in files if not path.is_absolute())
    dependencies |= dict.fromkeys(_locks(files, plugins))
    return [LIBRARIES.as_posix(), *dependencies]


def _locks(files: list[Path], used: dict[str, list[str]]) -> Iterator[str]:
    """The locks of the installed plugins among these files: all of a kind, or those used."""
    for kind, finder in KINDS.items():
        plugins = find_plugins(kind) if module_file(finder) in files else {}
        for name, plugin in plugins.items():
            if plugin.lock and name in used.get(kind, [name]):
                yield plugin.lock.as_posix()


def yaml_list(names: list[str], indent: int) -> str:
    """Format names as a YAML list, with line breaks.

    >>> print(yaml_list(["data/umls", "src/medprobe/errors.py"], 2))
    [
        data/umls, src/medprobe/errors.py]
    """
    blank = " " * indent
    quoted = [f'"{name}"' if "$" in name else name for name in names]
    body = textwrap.fill(
        ", ".join(quoted) + "]",
        WIDTH,
        initial_indent=f"{blank}  ",
        subsequent_indent=f"{blank}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"[\n{body}"
