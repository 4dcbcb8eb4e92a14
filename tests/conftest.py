"""Fixtures that several test files share."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tiny_model("bert")`: the folder of a tiny random checkpoint, made once a session.

    Tests must not write into it.
    """
    import tiny

    made: dict[str, Path] = {}

    def folder(arch: str) -> Path:
        if arch not in made:
            made[arch] = tiny.model(arch, tmp_path_factory.mktemp("tiny") / arch)
        return made[arch]

    return folder
