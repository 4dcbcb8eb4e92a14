"""`medprobe pipeline`: write dvc.yaml from its template and the code.

The template contains the stages. The code fills in the sources of each builder, the kinds of model
of each method, and what stands for the code on which a stage's numbers depend. In a clone, this is
a list of the files that the stage imports, with their hashes; the stage `code` writes it. In a
project outside a clone, it is requirements.lock, which is written too, with the installed versions.
For each plugin of another installed package, `plugins/<kind>/<name>.lock` has the version and a
hash of its code. A plugin of the project itself is named by its files.

`repro`, `plan` and `doctor` write dvc.yaml again where the code or params.yaml asks for another one
(`write_outdated`). What it follows from is compared first, since to write it all methods are
imported, for seconds.
"""

import json
import re
import textwrap
from collections.abc import Callable, Collection
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medprobe import benchmarks, methods
from medprobe.core.code import (
    PACKAGE,
    SOURCES,
    closure,
    installed_plugins,
    list_lines,
    list_path,
    plugin_files,
    stage_module,
)
from medprobe.core.files import read_any, replacing, write_whole
from medprobe.core.libraries import MISSING, installed_versions
from medprobe.core.params import MODEL_KINDS, Params, find_settings, load_params
from medprobe.core.parts import package_fingerprint, plugin_lock
from medprobe.core.places import (
    CHECKED,
    CODE,
    EXPECTATIONS,
    LIBRARIES,
    LOWER_CASE,
    MODELS,
    NAMED,
    PIPELINE,
)
from medprobe.core.plugins import KINDS, find_outside_plugins, find_plugins
from medprobe.core.progress import print_above
from medprobe.gate.suites import folders, plugins_of
from medprobe.sample.settings import find_recipe

TEMPLATE: Final = "dvc.yaml.jinja"
MARK: Final = "# Written by `medprobe pipeline`"  # begins the template
CODE_STAGE: Final = "code"  # the stage that lists the code on which the others depend
AT_ONCE: Final = ("benchmarks", "methods", "metrics")  # kinds of plugins that it names one by one
CHANGED: Final = "because the code or params.yaml changed"
TOOLS: Final = "requirements-tools.lock"  # versions of the libraries that check, draw and log
DEVELOPING: Final = re.compile(r"""extra == ["'](dev|serve|site)["']""")  # extras without results
WIDTH: Final = 100
OWN: Final = "\n  # Stages of your own: what is below this line stays as it is.\n"
BLOCK: Final = re.compile(r"^  [\w-]+:.*\n(?:(?:    .*| *)\n)*", re.MULTILINE)  # of a stage
CHECKING: Final = [  # the code on which the stage `check` depends
    (SOURCES / "core" / name).as_posix()
    for name in ("files.py", "params.py", "places.py", "settings.py")
]


def write(*, locks: bool = True) -> list[Path]:
    """Write `dvc.yaml`, the locks of plugins and, outside a clone, `requirements.lock`.

    Args:
        locks: Whether a lock that is there may be replaced. What was computed by what it names is
            then stale.

    Returns:
        The paths of those that differed.
    """
    texts = {
        path: text
        for path, text in files().items()
        if (locks or path == PIPELINE or not path.exists()) and read_any(path) != text
    }
    for path, content in texts.items():
        write_whole(path, content)
    return list(texts)


def write_outdated(stages: Collection[str]) -> bool:
    """Write dvc.yaml again if code or params.yaml asks for another one; return whether it did.

    A dvc.yaml that `medprobe pipeline` did not write stays. So do locks: where another version is
    installed, a line says so, and stages refuse to run until a person has run `medprobe pipeline`.

    Args:
        stages: The names of the stages that would run.
    """
    for path, content in locks().items():
        if path.is_file() and read_any(path) != content:
            remedy = "`medprobe pipeline` writes it, and what depends on it runs again"
            print_above(f"{path}: does not match what is installed; {remedy}")
    current = read_any(PIPELINE)
    if not current.startswith(MARK) or not _may_differ(current, stages):
        return False
    written = write(locks=False)
    for path in written:
        print_above(f"{path}: regenerated, {CHANGED}")
    return bool(written)


def _may_differ(current: str, stages: Collection[str]) -> bool:
    """Whether package, plugins or models to train may be other ones than at the last writing."""
    if artifacts(load_params()) not in current:
        return True
    if any(stages and find_outside_plugins(kind) for kind in KINDS):
        return True  # an edited one may read or need other things
    named = (
        plugin.lock or plugin.file
        for kind in AT_ONCE
        for plugin in find_outside_plugins(kind).values()
    )
    if not all(path and path.as_posix() in current for path in named):
        return True
    return _is_clone() and CODE_STAGE in stages


def files() -> dict[Path, str]:
    """The files that `write` writes, and their texts."""
    return {PIPELINE: text(), **locks()}


def locks() -> dict[Path, str]:
    """The locks of installed plugins and, outside a clone, of the libraries, and their texts."""
    return plugin_locks() if _is_clone() else {**plugin_locks(), LIBRARIES: libraries_lock()}


def _is_clone() -> bool:
    return SOURCES.is_dir()


def libraries_lock() -> str:
    """Format `requirements.lock`.

    It has the installed versions of this package, with a hash of its code, and of its requirements
    but for those of DEVELOPING.
    """
    needed = [line for line in metadata.requires(PACKAGE) or () if not DEVELOPING.search(line)]
    required = {re.split(r"[^\w.-]", line)[0] for line in needed}
    package = f"{PACKAGE}=={metadata.version(PACKAGE)} # code {package_fingerprint()[:32]}"
    versions = installed_versions(sorted(required))  # those of an unused extra are missing
    lines = [f"{name}=={version}" for name, version in versions.items() if version != MISSING]
    return "\n".join(["# written by `medprobe pipeline`", package, *lines]) + "\n"


def plugin_locks() -> dict[Path, str]:
    """The lock of each plugin of an installed package, and its text."""
    plugins = [plugin for kind in KINDS for plugin in find_outside_plugins(kind).values()]
    return {plugin.lock: plugin_lock(plugin) for plugin in plugins if plugin.lock}


def text() -> str:
    """Render dvc.yaml: the models that params.yaml trains, and the stages.

    Stages below the line `OWN` stay as they are. One that a person has added above it is moved
    there, if it runs no `medprobe`.
    """
    generated = _render(
        code,
        lambda name: [path.as_posix() for path in folders(EXPECTATIONS / name)],
        artifacts(load_params()),
    )
    before, _, own = read_any(PIPELINE).partition(OWN)
    stages = BLOCK.findall(before.partition("\nstages:\n")[2])
    added = [stage for stage in stages if "cmd:" in stage and "medprobe " not in stage]
    return "".join([generated, OWN, *added, own])


def artifacts(params: Params) -> str:
    """Format the section `artifacts`: the models that a project trains, for DVC's model registry.

    DVC has no `foreach` there, so that it names the models of params.yaml one by one.

    Raises:
        BadInput: a recipe is wrong.
    """
    entries: dict[str, dict[str, Any]] = {}
    for name in (*params.train, *params.continued):
        recipe, base = find_recipe(name, params)
        start = f"{base}, trained further" if base else f"{recipe.kind} model, trained"
        entries[name] = {
            "path": (MODELS / name).as_posix(),
            "type": "model",
            "desc": f"{start} on the corpus {recipe.corpus}",
        }
    section = yaml.safe_dump(
        {"artifacts": entries}, sort_keys=False, allow_unicode=True, width=1000
    )
    return f"# The models that the project trains (docs/how-to/dvc.md).\n{section}"


def code_lists() -> dict[Path, str]:
    """List the files of the package on which each stage's numbers depend.

    Returns:
        The path of each list, and its text: a line per file, as `sha256sum` writes it.
    """
    texts = {}
    for stage, name, plugins in _stages_with_code():
        paths = closure(stage_module(stage), plugins=plugins, root=SOURCES)
        texts[list_path(stage, name)] = "".join(list_lines(paths, SOURCES).values())
    return texts


def _stages_with_code() -> list[tuple[str, str, dict[str, list[str]]]]:
    """The stages whose code dvc.yaml names, with their plugins: all that the template asks for."""
    # The template is the one place that says which stages there are: it is filled in to hear it.
    asked = []

    def note(stage: str, name: str = "", **plugins: list[str]) -> list[str]:
        asked.append((stage, name, plugins))
        return []  # no paths: nobody reads this dvc.yaml

    _render(note, lambda _: [])
    return asked


def write_code_lists() -> None:
    """Write the lists of the code in the folder `outputs/code`."""
    with replacing(CODE) as scratch:
        scratch.mkdir()
        for path, content in code_lists().items():
            (scratch / path.name).write_text(content, encoding="utf-8")


def _render(
    code_of: Callable[..., list[str]], suites: Callable[[str], list[str]], trained: str = ""
) -> str:
    """Fill in the template.

    Args:
        code_of: Returns the paths that stand for the code of a stage, as `code` does.
        suites: Returns the folders of the suites of a builder.
        trained: The section `artifacts`.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # YAML, from the package's own names
    )
    names: dict[str, Any] = dict(
        builders={name: benchmarks.find(name) for name in benchmarks.list_names()},
        methods={
            kind: {name: methods.find(name) for name in methods.find_by_kind([kind])}
            for kind in MODEL_KINDS
        },
        settings=find_settings(),
        sections={
            name: json.dumps(found.empty) for name, found in find_settings().items() if found.type
        },
        libraries=LIBRARIES.as_posix(),
        checking=CHECKING if _is_clone() else [],
        tools=[TOOLS] if _is_clone() else [],
        checked=CHECKED.as_posix(),
        named=NAMED.as_posix(),
        lower_case=LOWER_CASE.as_posix(),
        code_files=_listed_files() if _is_clone() else [],
        code_folder=CODE.as_posix(),
        code=code_of,
        sources=lambda names: [f"data/{name}" for name in names],
        yaml_list=yaml_list,
        suites=suites,
        artifacts=trained,
        plugins_of=plugins_of,
        reads=lambda plugins: [*dict.fromkeys(x for plugin in plugins for x in plugin.READS)],
        sections_of=lambda plugins: [
            *dict.fromkeys(x for plugin in plugins for x in plugin.PARAMS)
        ],
    )
    return environment.get_template(TEMPLATE).render(names, blocks=_blocks(environment, names))


def _blocks(environment: Environment, names: dict[str, Any]) -> list[str]:
    """The blocks of dvc.yaml of stages that papers and extensions bring, from their templates."""
    files = [plugin.path.with_suffix(".yaml.jinja") for plugin in find_plugins("stages").values()]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return [environment.from_string(text).render(names) for text in texts]


def code(stage: str, name: str = "", **plugins: list[str]) -> list[str]:
    """Return the paths that stand for the code on which a stage's numbers depend.

    They are the lock of the libraries, the list of the package's files, the files of the project's
    own plugins, and the locks of installed plugins.

    >>> code("build", "medlama", benchmarks=["medlama"])[0]
    'requirements.lock'
    """
    files = closure(stage_module(stage), plugins=plugins)
    dependencies = [LIBRARIES, *([list_path(stage, name)] if _is_clone() else [])]
    dependencies += [path for path in files if not path.is_absolute()]
    locks = (plugin.lock for plugin in installed_plugins(files, plugins) if plugin.lock)
    return [*dict.fromkeys(path.as_posix() for path in (*dependencies, *locks))]


def _listed_files() -> list[str]:
    """What the lists of code follow from: the package, the suites, and plugins from outside."""
    suites = [EXPECTATIONS] if EXPECTATIONS.is_dir() else []
    plugins = [plugin for kind in KINDS for plugin in find_outside_plugins(kind).values()]
    files = {path for plugin in plugins if not plugin.lock for path in plugin_files(plugin)}
    locks = {plugin.lock for plugin in plugins if plugin.lock}
    return [path.as_posix() for path in (SOURCES, *suites, *sorted(files | locks))]


def yaml_list(names: list[str], indent: int) -> str:
    """Format names as a YAML list under the key `deps`, with line breaks if it is long.

    >>> print(yaml_list(["data/umls", "src/medprobe/errors.py"], 2))
    [data/umls, src/medprobe/errors.py]
    """
    names = [f'"{name}"' if "$" in name else name for name in names]
    line = f"[{', '.join(names)}]"
    if indent + len("deps: ") + len(line) <= WIDTH:
        return line
    return textwrap.fill(
        line,
        WIDTH,
        initial_indent=" " * (indent + len("deps: ")),
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    ).lstrip()
