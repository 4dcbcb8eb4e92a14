"""What tests and measurements share: tiny models, small projects, damaged and marked data."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests/fixtures"

FolderOf = Callable[[str], Path]  # what the fixtures `tiny_model` and `released_data` are
