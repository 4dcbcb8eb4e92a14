"""Plugins: the parts of medprobe that are found by the names of their files.

A *place* is a folder with a folder for each kind of plugin, such as `methods/<name>.py` or
`benchmarks/<name>/__init__.py`. There are five sorts of places, all of the same shape: the kernel
itself, each folder of `papers/` and of `extensions/`, each package that an installed distribution
names as an entry point of the group `medprobe.plugins`, and the project's own folder `plugins/`.
A name that begins with `_` is no plugin. Plugins are listed without importing anything. Those of
the kind `published` are data, YAML files.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from medprobe.core.errors import BadInput
from medprobe.core.places import PARAMS, PLUGINS

PACKAGE: Final = "medprobe"
ROOT: Final = Path(__file__).parent.parent  # of the code that Python runs
GROUP: Final = "medprobe.plugins"  # of entry points
PROJECT: Final = "medprobe_plugins"  # the package as which `plugins/` is imported


class Kind(NamedTuple):
    """A kind of plugin.

    Attributes:
        folder: where the kernel's own plugins are, below the package. Other places have them in
            the folder of the kind's name. Empty: the kernel has none.
        defines: how the text of a file shows that it is a plugin, as the kernel's folders have
            other modules too; `{}` is the name of the plugin's class.
        suffix: of its files.
    """

    folder: str
    defines: str = ""
    suffix: str = ".py"


KINDS: Final = {
    "methods": Kind("methods", "\nclass {}("),
    "benchmarks": Kind("benchmarks", "\nBENCHMARK = "),
    "metrics": Kind("metrics", "\nSCORER = "),
    "backends": Kind("", "\nclass {}"),
    "expectations": Kind("gate/expectations"),
    "sections": Kind("report/sections", "\nSECTION = "),
    "stages": Kind("pipeline/stages"),
    "samples": Kind("sample", "\ndef write("),
    "settings": Kind(""),
    "imports": Kind(""),
    "commands": Kind(""),
    "published": Kind("", suffix=".yaml"),
}


@dataclass(frozen=True)
class Plugin:
    """A plugin.

    Attributes:
        kind: one of `KINDS`.
        name: as in `params.yaml`.
        module: the full name of its module.
        path: of its file.
        file: of a project's plugin, relative to the project; otherwise None.
        package: the distribution and its version; empty for a plugin of medprobe or the project.
    """

    kind: str
    name: str
    module: str
    path: Path
    file: Path | None = None
    package: str = ""

    @property
    def is_outside(self) -> bool:
        """Whether it is none of medprobe's own."""
        return bool(self.file or self.package)

    @property
    def origin(self) -> str:
        """Where it comes from, for people: a file or a package."""
        return self.file.as_posix() if self.file else f"{self.package}, {self.module}"


def class_name(name: str) -> str:
    """Return the name of the class that a plugin's file defines.

    >>> class_name("mask_average")
    'MaskAverage'
    """
    return "".join(part.capitalize() for part in name.split("_"))


def find_plugins(kind: str, root: Path = ROOT) -> dict[str, Plugin]:
    """Find all plugins of a kind, by name, in alphabetical order."""
    plugins: dict[str, Plugin] = {}
    for plugin in [*_of_medprobe(kind, root), *_of_packages(kind), *_of_project(kind)]:
        if (other := plugins.get(plugin.name)) and not other.is_outside:
            problem = f"'{plugin.name}' is the name of one of medprobe's own {kind}"
            raise BadInput(plugin.origin, problem, "choose another name")
        if other:
            problem = f"'{plugin.name}' is also in {other.origin}"
            raise BadInput(plugin.origin, problem, "rename or remove one")
        if KINDS[kind].suffix == ".py" and not plugin.name.isidentifier():
            problem = f"'{plugin.name}' is not a name of letters, digits and _"
            raise BadInput(plugin.origin, problem, "rename it")
        plugins[plugin.name] = plugin
    return dict(sorted(plugins.items()))


def find_outside_plugins(kind: str) -> dict[str, Plugin]:
    """Find the plugins of a kind that are none of medprobe's own, by name."""
    return {name: plugin for name, plugin in find_plugins(kind).items() if plugin.is_outside}


def own_folders(root: Path = ROOT) -> list[Path]:
    """List the folders of `papers/` and `extensions/`, which have the shape of `plugins/`."""
    folders = [*(root / "papers").glob("[!._]*"), *(root / "extensions").glob("[!._]*")]
    compiled = ("", ".pyc")  # all that git leaves of a folder that was removed
    return sorted(f for f in folders if any(p.suffix not in compiled for p in f.rglob("*")))


@cache
def _of_medprobe(kind: str, root: Path) -> list[Plugin]:
    """Those of the kernel, of `papers/*` and of `extensions/*`."""
    kernel, defines = KINDS[kind].folder, KINDS[kind].defines
    folders = [folder / kind for folder in own_folders(root)]
    plugins = []
    for folder in [root / kernel, *folders] if kernel else folders:
        package = ".".join([PACKAGE, *folder.relative_to(root).parts])
        for name, file in _files(folder, kind):
            text = file.read_text(encoding="utf-8") if defines else ""
            if defines.format(class_name(name)) in text:
                plugins.append(Plugin(kind, name, f"{package}.{name}", file))
    return plugins


def _files(folder: Path, kind: str) -> Iterator[tuple[str, Path]]:
    """The files and packages in a folder that can be plugins, with their names."""
    files = folder.glob(f"[!._]*{KINDS[kind].suffix}")
    for file in sorted([*files, *folder.glob("[!._]*/__init__.py")]):
        yield file.parent.name if file.name == "__init__.py" else file.stem, file


def _of_packages(kind: str) -> Iterator[Plugin]:
    for point in sorted(_entry_points(tuple(sys.path)), key=lambda point: point.value):
        for name, file in _files(_folder(point) / kind, kind):
            module = f"{point.value}.{kind}.{name}"
            yield Plugin(kind, name, module, file, package=_distribution(point))


@cache
def _entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of the group; where packages are searched for keys the cache."""
    return tuple(entry_points(group=GROUP))


def _folder(point: EntryPoint) -> Path:
    spec = importlib.util.find_spec(point.value.partition(".")[0])
    locations = [*(spec.submodule_search_locations or ())] if spec else []
    folder = Path(locations[0] if locations else "", *point.value.split(".")[1:])
    if not locations or not folder.is_dir():
        problem = f"its entry point names a package {point.value}, which is not there"
        raise BadInput(_distribution(point), problem, "install it again")
    return folder


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name}=={point.dist.version}" if point.dist else point.value


def _of_project(kind: str) -> Iterator[Plugin]:
    """Those of the folder `plugins/` of the project that is the working folder."""
    if not PARAMS.is_file():
        return
    for name, file in _files(PLUGINS / kind, kind):
        if file.resolve() != Path.cwd().resolve() / file:
            problem = "a link to a file outside this folder, expected a file"
            raise BadInput(file, problem, "copy the file")
        yield Plugin(kind, name, f"{PROJECT}.{kind}.{name}", file, file=file)


def load(
    plugin: Plugin,
    attribute: str,
    base: Any,
    needed: Collection[str] = (),
    *,
    is_class: bool = False,
) -> Any:
    """Import a plugin and return what it defines."""
    module = load_module(plugin)
    value = vars(module).get(attribute)
    if not plugin.is_outside:
        return value
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


def load_module(plugin: Plugin) -> ModuleType:
    """Import the module of a plugin."""
    if not plugin.is_outside:
        return importlib.import_module(plugin.module)
    try:
        return _import(plugin)
    except Exception as error:
        raise BadInput(*_describe(plugin, error), "correct or remove the plugin") from error


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
