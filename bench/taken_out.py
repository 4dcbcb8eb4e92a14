"""Runs the kernel's own tests on a package without folders of papers/ and extensions/.

    python -m bench.taken_out                        # without all of them
    python -m bench.taken_out papers/diskne …        # without some

Tests of DVC and browsers are left out: the sample project has all folders.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from test_architecture import TAKEN_OUT, rooms
from test_taken_out import FOLDERS, copy_without

REPOSITORY = Path(__file__).parents[1]


def kernel_tests() -> list[str]:
    """The folders of tests/ that mirror rooms of the kernel."""
    names = sorted({*rooms()} - {*TAKEN_OUT})
    return [f"tests/{name}" for name in names if (REPOSITORY / "tests" / name).is_dir()]


def main() -> None:
    """Exit as pytest does."""
    with TemporaryDirectory() as scratch:
        package = copy_without(sys.argv[1:] or FOLDERS, Path(scratch))
        chosen = "not dvc and not browser and not full"
        command = [sys.executable, "-m", "pytest", "-q", "-m", chosen]
        environment = {**os.environ, "PYTHONPATH": os.fspath(package)}
        run = subprocess.run(
            [*command, *kernel_tests()], cwd=REPOSITORY, env=environment, check=False
        )
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
