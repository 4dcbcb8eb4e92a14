"""Runs the kernel's tests on packages from which folders of papers/ and extensions/ are taken out.

First without all of them. A test that fails then runs again with those folders alone that its file
names, or the helpers that it imports. `python -m bench.taken_out` runs all files, `python -m
bench.taken_out FILE …` some.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest import ExitCode

from medprobe.core.plugins import KINDS, ROOT, find_plugins
from test_taken_out import FOLDERS, NEEDS, copy_without

REPOSITORY = Path(__file__).parents[1]
ENDINGS = {ExitCode.OK, ExitCode.TESTS_FAILED, ExitCode.NO_TESTS_COLLECTED}
NOT_KERNEL = {  # of tests/
    *("papers", "extensions", "sample_project", "documents", "helpers", "fixtures"),
}


def kernel_tests() -> list[str]:
    """The kernel's test files, relative to the repository."""
    rooms = [room for room in (REPOSITORY / "tests").iterdir() if room.name not in NOT_KERNEL]
    files = sorted(file for room in rooms for file in room.rglob("test_*.py"))
    return [file.relative_to(REPOSITORY).as_posix() for file in files]


def folders_by_name() -> dict[str, str]:
    """The folder of each name: its own, and those of its plugins."""
    plugins = [plugin for kind in KINDS for plugin in find_plugins(kind).values()]
    return {Path(folder).name: folder for folder in FOLDERS} | {
        plugin.name: folder
        for plugin in plugins
        for folder in FOLDERS
        if plugin.path.is_relative_to(ROOT / folder)
    }


def texts(file: Path) -> Iterator[str]:
    """The text of a test file, of the helpers that it imports, and of the project's params.yaml."""
    yield (text := file.read_text(encoding="utf-8"))
    if 'ROOT / "params.yaml"' in text:
        yield (REPOSITORY / "params.yaml").read_text(encoding="utf-8")
    for line in re.findall(r"^from (?:helpers|bench)\b.*", text, re.MULTILINE):
        for name in re.findall(r"\w+", line):
            for helper in (REPOSITORY / "tests/helpers", REPOSITORY / "bench"):
                if (path := helper / f"{name}.py").is_file() and path != file:
                    yield path.read_text(encoding="utf-8")


def failures(files: Sequence[str], without: Collection[str]) -> list[str]:
    """Run test files without folders, and return those that fail."""
    with TemporaryDirectory() as scratch:
        package = copy_without(without, Path(scratch, "package"))
        options = ["-q", "-m", "not dvc and not browser", "--continue-on-collection-errors"]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-o", f"cache_dir={scratch}/cache", *files],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": os.fspath(package)},
            check=False,
        )
        assert run.returncode in ENDINGS, "pytest itself failed"
        failed = Path(scratch, "cache/v/cache/lastfailed")
        tests = json.loads(failed.read_text(encoding="utf-8")) if failed.exists() else {}
    return sorted({test.partition("::")[0] for test in tests})


def main() -> None:
    """Print how many files pass without each folder, and stop with status 1 if any fails."""
    files = sys.argv[1:] or kernel_tests()
    rest = failures(files, FOLDERS)
    passed = Counter({folder: len(files) - len(rest) for folder in FOLDERS})
    folders = folders_by_name()
    pattern = re.compile(rf"\b({'|'.join(folders)})\b")
    files_without = defaultdict(list)
    for file in rest:
        words = (word for text in texts(REPOSITORY / file) for word in pattern.findall(text))
        named = {folders[word] for word in words}
        named |= {needed for folder, needed in NEEDS if folder in named}
        files_without[frozenset(FOLDERS) - named].append(file)
    failed = []
    for without, members in files_without.items():
        if without:  # or else the file is about them all
            failed += failures(members, without)
            passed.update(dict.fromkeys(without, len({*members} - {*failed})))
    for folder in FOLDERS:
        print(f"without {folder}: {passed[folder]} of {len(files)} files pass")
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
