"""`medprobe pipeline`: write dvc.yaml from its template and what the code says of itself.

The template holds the stages; the code fills in which files a stage's numbers follow from, which
sources a builder reads, and which kinds of model a method serves.
"""

import textwrap
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medprobe import benchmarks, methods
from medprobe.check import SETS
from medprobe.core.code import ROOT, closure
from medprobe.core.files import replacing
from medprobe.core.params import MODEL_KINDS, SWEPT
from medprobe.core.parts import LIBRARIES
from medprobe.core.places import CHECKED, EXPECTATIONS
from medprobe.quality.suites import folders

PIPELINE: Final = Path("dvc.yaml")
TEMPLATE: Final = "pipeline.yaml.jinja"
TOOLS: Final = "requirements-tools.lock"  # versions of what checks, draws and logs
WIDTH: Final = 100
CORE: Final = ROOT / "core"


def write(path: Path = PIPELINE) -> None:
    """Write `dvc.yaml`."""
    with replacing(path) as scratch:
        scratch.write_text(text(), encoding="utf-8")


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
        builders={name: benchmarks.find(name) for name in benchmarks.names()},
        methods={name: methods.find(name) for name in methods.names()},
        kinds=MODEL_KINDS,
        sets=SETS,
        swept=SWEPT,
        tools=TOOLS,
        checked=CHECKED.as_posix(),
        code=code,
        sources=lambda names: [f"data/{name}" for name in names],
        listed=listed,
        suites=lambda name: [path.as_posix() for path in folders(EXPECTATIONS / name)],
    )


def code(stage: str, **plugins: list[str]) -> list[str]:
    """What the numbers of a stage follow from beside data and parameters: the libraries, and files
    of the package. A folder that counts with all its files stands for them, and `core`, which all
    stages share, always does.

    >>> "src/medprobe/stages/build.py" in code("build", benchmarks=["medlama"])
    True
    """
    files = closure(f"medprobe.stages.{stage}", plugins=plugins)
    short: dict[str, None] = {}
    for file in files:
        whole = file
        for folder in file.parents:
            if folder != CORE and (folder == ROOT or not _files(folder) <= set(files)):
                break
            whole = folder
        short[f"src/medprobe/{whole.relative_to(ROOT).as_posix()}"] = None
    return [LIBRARIES.as_posix(), *short]


def _files(folder: Path) -> set[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path for path in files if "__pycache__" not in path.parts}


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
