"""What pyproject.toml cannot say: which other files of the repository the wheel holds.

`medprobe init` needs them. They are the package's folder `project`.
"""

import ast
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

INIT = Path("src/medprobe/pipeline/init.py")


def files() -> list[str]:
    """`FILES` of pipeline/init.py, read off its text: the package's libraries are not there yet."""
    for node in ast.parse(INIT.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FILES":
            assert node.value is not None
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{INIT}: no FILES")


class BuildWithProject(build_py):
    """Copies them beside the code, but for an editable install, which finds them in the clone."""

    def run(self) -> None:
        """Build the package, and copy the files of a project into it."""
        super().run()
        for name in files() if not self.editable_mode else []:
            source, target = Path(name), Path(self.build_lib, "medprobe/project", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithProject})
