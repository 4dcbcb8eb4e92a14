"""What tests and measurements share: tiny models, small projects, damaged and marked data."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests/fixtures"
