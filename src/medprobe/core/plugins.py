"""Plugins from outside the package: of installed packages, and of the project's folder `plugins/`.

An installed package names its plugins as entry points of the groups `medprobe.methods`,
`medprobe.benchmarks`, `medprobe.metrics` and `medprobe.backends`. A project has them in
`plugins/<kind>/<name>.py` or `plugins/<kind>/<name>/__init__.py`; a name that begins with `_` is no
plugin. They are listed without importing anything.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.core.places import PARAMS, PLUGINS

KINDS: Final = {  # of plugins: the module that finds them
    "methods": "medprobe.methods",
    "benchmarks": "medprobe.benchmarks",
    "metrics": "medprobe.metrics",
    "backends": "medprobe.backends.finder",
}
PROJECT: Final = "medprobe_plugins"  # the package as which `plugins/` is imported


@dataclass(frozen=True)
class Plugin:
    """A plugin from outside the package.

    Attributes:
        kind: one of `KINDS`.
        name: as in `params.yaml`.
        module: the full name of its module.
        attribute: what the module defines; empty if the kind's rule names it.
        file: of a project's plugin, relative to the project; None for an installed one.
        package: the distribution and its version; empty for a project's plugin.
    """

    kind: str
    name: str
    module: str
    attribute: str = ""
    file: Path | None = None
    package: str = ""

    @property
    def origin(self) -> str:
        """Where it comes from, for people: a file or a package."""
        return self.file.as_posix() if self.file else f"{self.package}, {self.module}"

    @property
    def lock(self) -> Path | None:
        """The file that stands for an installed plugin's code as a dependency of DVC."""
        return None if self.file else PLUGINS / self.kind / f"{self.name}.lock"


def class_name(name: str) -> str:
    """Return the name of the class that a plugin's file defines.

    >>> class_name("mask_average")
    'MaskAverage'
    """
    return "".join(part.capitalize() for part in name.split("_"))


def find_plugins(kind: str, built_in: Collection[str] = ()) -> dict[str, Plugin]:
    """Find the plugins of a kind from outside, by name.

    Args:
        kind: one of `KINDS`.
        built_in: names that a plugin must not have.

    Raises:
        BadInput: two have one name, or one has the name of a built-in, or a name is malformed.
    """
    plugins: dict[str, Plugin] = {}
    for plugin in [*_of_packages(kind), *_of_project(kind)]:
        if plugin.name in built_in:
            problem = f"'{plugin.name}' is the name of one of medprobe's own {kind}"
            raise BadInput(plugin.origin, problem, "choose another name")
        if plugin.name in plugins:
            problem = f"'{plugin.name}' is also in {plugins[plugin.name].origin}"
            raise BadInput(plugin.origin, problem, "rename or remove one")
        if not plugin.name.isidentifier():
            problem = f"'{plugin.name}' is not a name of letters, digits and _"
            raise BadInput(plugin.origin, problem, "rename it")
        plugins[plugin.name] = plugin
    return plugins


def _of_packages(kind: str) -> list[Plugin]:
    points = _entry_points(f"medprobe.{kind}", tuple(sys.path))
    return [
        Plugin(kind, point.name, point.module, point.attr, package=_distribution(point))
        for point in sorted(points, key=lambda point: (point.name, point.value))
    ]


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group; where packages are searched for keys the cache."""
    return tuple(entry_points(group=group))


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name}=={point.dist.version}" if point.dist else point.module


def _of_project(kind: str) -> list[Plugin]:
    """Those of the folder `plugins/` of the project that is the working folder."""
    if not PARAMS.is_file():
        return []
    folder, plugins = PLUGINS / kind, []
    for file in sorted([*folder.glob("[!.]*.py"), *folder.glob("[!.]*/__init__.py")]):
        name = file.parent.name if file.name == "__init__.py" else file.stem
        if name.startswith("_") or file == folder / "__init__.py":
            continue
        if file.resolve() != Path.cwd().resolve() / file:
            problem = "a link to a file outside this folder, expected a file"
            raise BadInput(file, problem, "copy the file")
        plugins.append(Plugin(kind, name, f"{PROJECT}.{kind}.{name}", file=file))
    return plugins


def load(
    plugin: Plugin,
    attribute: str,
    base: Any,
    needed: Collection[str] = (),
    *,
    is_class: bool = False,
) -> Any:
    """Import a plugin and return what it defines.

    Args:
        plugin: one of `find_plugins`.
        attribute: what its module must define, unless its entry point names something else.
        base: the class that it must be an instance or, with `is_class`, a subclass of.
        needed: attributes that it must have, not only from `base`.
        is_class: whether it must be a class.

    Raises:
        BadInput: the module cannot be imported, or does not define what it must.
    """
    attribute = plugin.attribute or attribute
    try:
        module = _import(plugin)
    except Exception as error:
        raise BadInput(*_describe(plugin, error), "correct or remove the plugin") from error
    value = vars(module).get(attribute)
    where = module.__file__ if plugin.file is None else plugin.file
    cls = value if isinstance(value, type) else type(value)
    if isinstance(value, type) != is_class or base not in cls.__mro__:
        problem = f"defines no {attribute} that is a {base.__name__}"
        raise BadInput(where, problem, "docs/how-to/extending.md has an example")
    defined = {name for part in cls.__mro__[: cls.__mro__.index(base)] for name in vars(part)}
    for name in needed:
        if name not in defined:
            raise BadInput(where, f"{attribute} has no {name}", "define it")
    return value


def _import(plugin: Plugin) -> ModuleType:
    if plugin.file:
        folder = str(PLUGINS.resolve())
        package = sys.modules.get(PROJECT)
        if package is None or package.__path__ != [folder]:  # this process read another project
            for name in [name for name in sys.modules if name.partition(".")[0] == PROJECT]:
                del sys.modules[name]
            package = ModuleType(PROJECT)
            package.__path__ = [folder]
            sys.modules[PROJECT] = package
        importlib.invalidate_caches()
    return importlib.import_module(plugin.module)


def _describe(plugin: Plugin, error: Exception) -> tuple[str, str]:
    """The file and line at which importing a plugin failed, and why."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}, line {error.lineno}", error.msg
    folder = str(PLUGINS.resolve()) if plugin.file else f"/{plugin.module.partition('.')[0]}"
    calls = traceback.extract_tb(error.__traceback__)
    frames = [call for call in calls if folder in call.filename]
    where = f"{_short(frames[-1].filename)}, line {frames[-1].lineno}" if frames else plugin.origin
    return where, f"{type(error).__name__}: {error}"


def _short(file: str) -> str:
    path, folder = Path(file), Path.cwd().resolve()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def source_folders() -> dict[str, Path]:
    """The folder of each package that has plugins, by the package's name.

    For a package that is a single module, it is the module's path without `.py`.

    Raises:
        BadInput: an entry point names a package that does not exist.
    """
    folders = {PROJECT: PLUGINS}
    for kind in KINDS:
        for plugin in _of_packages(kind):
            name = plugin.module.partition(".")[0]
            if name not in folders:
                spec = importlib.util.find_spec(name)
                locations = [*(spec.submodule_search_locations or ())] if spec else []
                if not locations and not (spec and spec.origin):
                    problem = f"its entry point names a module {plugin.module}, which is not there"
                    raise BadInput(plugin.package, problem, "install the package again")
                origin = spec.origin if spec else ""
                folders[name] = Path(locations[0] if locations else str(origin)).with_suffix("")
    return folders
