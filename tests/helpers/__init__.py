"""What tests and measurements share: tiny models, small projects, damaged and marked data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests/fixtures"

FolderOf = Callable[[str], Path]  # what the fixtures `tiny_model` and `released_data` are


def nightly(*values: Any) -> list[Any]:
    """Parameters of a test that `make test-all` runs alone: further ones of a kind."""
    return [pytest.param(value, marks=pytest.mark.full) for value in values]
