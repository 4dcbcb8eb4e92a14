"""`make install` finds a Python that fits and says which; what fails leaves no half environment."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from helpers import ROOT

PYTHON = sys._base_executable  # type: ignore[attr-defined]
TOOLS = ("awk", "bash", "cat", "dirname", "env", "make", "rm", "sed", "touch")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The Makefile beside a lock that pip cannot install, and a folder of programs as the path."""
    folder, programs = tmp_path / "clone", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("requirements.lock", "requirements-tools.lock"):
        (folder / name).write_text("nothing @ file:///no/such/file.whl\n")
    (folder / "pyproject.toml").write_text("")
    for name in TOOLS:
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout
        (programs / name).symlink_to(found.strip())
    return folder


def install(clone: Path, *words: str) -> tuple[int, str]:
    process = subprocess.run(
        [clone.parent / "bin/make", "install", *words],
        cwd=clone,
        env={"PATH": str(clone.parent / "bin")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout


def add_program(clone: Path, name: str, script: str) -> None:
    path = clone.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_the_first_python_that_fits_is_named_and_a_failure_leaves_no_half_environment(
    clone: Path,
) -> None:
    add_program(clone, "python3", "exit 1")  # as one of another version does, when it is asked
    add_program(clone, "python3.12", f'exec "{PYTHON}" "$@"')
    code, out = install(clone)
    assert code != 0
    assert re.search(rf"into \.venv with Python 3\.1[123]\.\d+, {re.escape(PYTHON)}", out)
    assert "ERROR:" in out  # of pip
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("words", [(), ("PYTHON=python3",)])
def test_without_a_python_that_fits_nothing_is_made(clone: Path, words: tuple[str, ...]) -> None:
    add_program(clone, "python3", "exit 1")
    code, out = install(clone, *words)
    assert code == 2
    assert "is no Python 3.11, 3.12 or 3.13" in out
    assert "make install PYTHON=/path/to/python" in out
    assert not (clone / ".venv").exists()


def test_the_makefile_asks_for_the_versions_of_the_package() -> None:
    [low, high] = re.findall(
        r"\d+", " ".join(re.findall(r"\(3, (\d+)\)", (ROOT / "Makefile").read_text()))
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">=3.{low},<3.{int(high) + 1}"
