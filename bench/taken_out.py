"""Runs the kernel's tests on packages from which a folder of papers/ or extensions/ is taken out.

`python -m bench.taken_out` takes each folder out in turn, `python -m bench.taken_out papers/diskne`
one. A test file counts unless it names a plugin of the folder: it then tests that plugin as well.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from medprobe.core.plugins import KINDS, ROOT, find_plugins, own_folders
from test_taken_out import copy_without

TESTS = Path(__file__).parents[1] / "tests"
NOT_KERNEL = {"papers", "extensions", "documents", "helpers", "fixtures"}


def test_files(folder: Path) -> Iterator[Path]:
    """The kernel's test files that name nothing of a folder."""
    names = {folder.name}
    for kind in KINDS:
        plugins = find_plugins(kind).values()
        names |= {plugin.name for plugin in plugins if plugin.path.is_relative_to(folder)}
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    for path in sorted(TESTS.rglob("test_*.py")):
        room = path.relative_to(TESTS).parts[0]
        if room not in NOT_KERNEL and path.parent != TESTS and not pattern.search(path.read_text()):
            yield path


def main() -> None:
    """Print how many files were run without each folder, and stop with status 1 if any fails."""
    failed = []
    for folder in own_folders():
        name = folder.relative_to(ROOT).as_posix()
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        files = [os.fspath(path) for path in test_files(folder)]
        with tempfile.TemporaryDirectory() as target:
            environment = {**os.environ, "PYTHONPATH": os.fspath(copy_without(name, Path(target)))}
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-m",
                "not dvc and not browser",
                *files,
            ]
            status = subprocess.run(command, env=environment, check=False).returncode
        print(f"without {name}: {len(files)} files, {'failed' if status else 'passed'}")
        failed += [name] if status else []
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
