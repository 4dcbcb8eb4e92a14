"""`medprobe pipeline`: write dvc.yaml from its template and what the code says of itself.

The template holds the stages; the code fills in which files a stage's numbers follow from, which
sources a builder reads, and which kinds of model a method serves. In a project that does not hold
the code, requirements.lock stands for it: it is written too, with the versions that are installed.
"""

import re
import textwrap
from importlib import metadata
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medprobe import benchmarks, methods
from medprobe.check import SETS
from medprobe.core.code import PACKAGE, ROOT, closure, closure_candidates
from medprobe.core.files import replacing
from medprobe.core.params import MODEL_KINDS, SWEPT
from medprobe.core.parts import LIBRARIES, fingerprint
from medprobe.core.places import CHECKED, EXPECTATIONS
from medprobe.quality.suites import folders

PIPELINE: Final = Path("dvc.yaml")
TEMPLATE: Final = "pipeline.yaml.jinja"
TOOLS: Final = "requirements-tools.lock"  # versions of what checks, draws and logs
SOURCES: Final = Path("src") / PACKAGE  # where a project that holds the code has it
WIDTH: Final = 100
CHECKING: Final = [  # what the stage `check` follows from, beside params.yaml
    (SOURCES / "core" / name).as_posix() for name in ("files.py", "params.py", "places.py")
]


def write() -> None:
    """Write `dvc.yaml`, and `requirements.lock` where that is not the code's own."""
    for path, content in files().items():
        with replacing(path) as scratch:
            scratch.write_text(content, encoding="utf-8")


def files() -> dict[Path, str]:
    """What is written, by its place: what these files must be."""
    made = {PIPELINE: text()}
    return made if _holds_code() else {**made, LIBRARIES: installed()}


def _holds_code() -> bool:
    """Is the project in this folder a clone, which holds the code that runs?"""
    return SOURCES.is_dir()


def installed() -> str:
    """The versions that are installed of this package, with a hash of its code, and of all that it
    requires, as lines of `requirements.lock`."""
    required = {re.split(r"[^\w.-]", line)[0] for line in metadata.requires(PACKAGE) or ()}
    own = f"{PACKAGE}=={metadata.version(PACKAGE)} # code {fingerprint([ROOT])[:32]}"
    lines = [f"{name}=={version}" for name in sorted(required) if (version := _version(name))]
    return "\n".join(["# written by `medprobe pipeline`", own, *lines]) + "\n"


def _version(name: str) -> str:
    """Of an installed package; empty where it is none: what only an extra requires."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def text() -> str:
    """What dvc.yaml must be."""
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
        checking=CHECKING if _holds_code() else [],
        tools=[TOOLS] if _holds_code() else [],
        checked=CHECKED.as_posix(),
        code=code,
        sources=lambda names: [f"data/{name}" for name in names],
        listed=listed,
        suites=lambda name: [path.as_posix() for path in folders(EXPECTATIONS / name)],
    )


def code(stage: str, **plugins: list[str]) -> list[str]:
    """What the numbers of a stage follow from beside data and parameters: the libraries, and files
    of the package. A folder that counts with all its files stands for them, since each line more in
    its lock costs DVC time at each stage.

    >>> code("build", benchmarks=["medlama"])[0]
    'requirements.lock'
    """
    if not _holds_code():
        return [LIBRARIES.as_posix()]
    files = closure(f"medprobe.stages.{stage}", plugins=plugins)
    short: dict[str, None] = {}
    for file in files:
        whole = file
        for folder in file.parents:
            if folder == ROOT or not closure_candidates(folder) <= set(files):
                break
            whole = folder
        short[(SOURCES / whole.relative_to(ROOT)).as_posix()] = None
    return [LIBRARIES.as_posix(), *short]


def listed(names: list[str], indent: int) -> str:
    """Names as a YAML list that ends its lines before they are too long.

    >>> print(listed(["data/umls", "src/medprobe/errors.py"], 2))
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
