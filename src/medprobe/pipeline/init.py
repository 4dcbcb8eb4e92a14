"""`medprobe init`: create a project outside a clone of the code."""

import json
import shutil
import subprocess
import sys
from contextlib import chdir
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from medprobe import benchmarks
from medprobe.core.errors import BadInput
from medprobe.core.libraries import write_versions
from medprobe.core.places import LIBRARIES, PARAMS, PIPELINE
from medprobe.core.plugins import ROOT, find_plugins

START: Final = Path(__file__).with_name("params.yaml")  # of a project, without plugins' sections
WORKFLOW: Final = Path(".github/workflows/data-quality.yml")  # of a pull request on GitHub
WHEELS: Final = Path("wheels")  # where the workflow's pip looks for what no index has
FILES: Final = (  # of a clone that every project has; setup.py puts them into the wheel
    "expectations",
    ".gitattributes",
    ".gitignore",
    ".dvcignore",
    ".dvc/config",
    ".dvc/.gitignore",
    "mlruns/README.md",
    "plugins/README.md",
    "dvc.yaml",
)


def init(folder: Path) -> None:
    """Create a project: a git repository, DVC's files, the expectations, params.yaml, dvc.yaml.

    A folder inside a git repository becomes a part of it. A workflow that runs the gate for each
    pull request is written too, unless there is one.
    """
    for name in [*FILES, PARAMS.name]:
        if (folder / name).exists():
            raise BadInput(folder / name, "already exists", "choose another folder")
    for builder in benchmarks.list_names():
        benchmarks.find(builder)  # fails before a file is written where an extra is not installed
    if not shutil.which("git"):
        raise BadInput("git", "cannot be run", "install git, which DVC needs")
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        _git()
        for name in FILES:
            source, target = packaged(name), Path(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, target)
        PARAMS.write_text(params_text(), encoding="utf-8")
        Path("data").mkdir(exist_ok=True)
        PIPELINE.write_text(pipeline_text(), encoding="utf-8")
        write_versions()
        _write_workflow()


def packaged(name: str) -> Path:
    """The path of one of FILES, in the wheel or in the clone that this code is from."""
    folder = ROOT / "project"
    return (folder if folder.is_dir() else ROOT.parents[1]) / name


def pipeline_text() -> str:
    """The dvc.yaml of a project outside a clone, which has no code to depend on."""
    lines = packaged(PIPELINE.name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith("src/"))


def params_text() -> str:
    """The params.yaml of a new project: the kernel's sections, then those of plugins."""
    plugins = find_plugins("settings").values()
    parts = [START, *(plugin.path.with_suffix(".yaml") for plugin in plugins)]
    return "\n".join(part.read_text(encoding="utf-8") for part in parts if part.is_file())


def _write_workflow() -> None:
    if WORKFLOW.exists():
        print(f"{WORKFLOW}: left as it is; `medprobe gate` is the command that checks the data")
        return
    WORKFLOW.parent.mkdir(parents=True, exist_ok=True)
    text = Path(__file__).with_name(WORKFLOW.name).read_text(encoding="utf-8")
    version = "{}.{}".format(*sys.version_info)  # that the pinned libraries are of
    WORKFLOW.write_text(text.replace("3.11", version), encoding="utf-8")
    _keep_wheel()
    if not Path(".git").exists():
        print(f"{WORKFLOW}: GitHub runs it only from the root of the repository; move it there")


def _keep_wheel() -> None:
    """Copy the wheel that medprobe is installed from, unless an index has it (PEP 610)."""
    origin = metadata.distribution("medprobe").read_text("direct_url.json")
    if not origin:
        return
    wheel = Path(url2pathname(urlsplit(json.loads(origin)["url"]).path))
    if wheel.suffix == ".whl" and wheel.is_file():
        WHEELS.mkdir(exist_ok=True)
        shutil.copy(wheel, WHEELS)
    else:
        print(
            f"{WORKFLOW}: installs the medprobe of {LIBRARIES} from {WHEELS}/: put its wheel there"
        )


def _git() -> None:
    """Create the repository that DVC needs, unless the folder is in one."""
    status = subprocess.run(["git", "rev-parse"], capture_output=True, check=False)
    if status.returncode != 0:
        try:
            subprocess.run(["git", "init", "--quiet"], capture_output=True, check=True, text=True)
        except subprocess.CalledProcessError as error:
            raise BadInput("git init", error.stderr) from None
