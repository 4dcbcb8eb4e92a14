"""One value of a params.yaml is wrong, and `medprobe check` says so in one line."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers import ROOT
from medprobe.core.errors import BadInput
from medprobe.core.params import load_params
from medprobe.pipeline import check


def own_params() -> dict[str, Any]:
    """The params.yaml of this repository."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    return content


def edited(content: dict[str, Any], dotted: str, value: Any) -> dict[str, Any]:
    """A copy with one value put in, where `dotted` is its path, with slashes."""
    edited_content = inner = deepcopy(content)
    *parents, last = dotted.split("/")
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return edited_content


def write_params(folder: Path, content: str | dict[str, Any]) -> Path:
    path = folder / "params.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def check_typo(folder: Path, content: dict[str, Any], says: str) -> None:
    """Fail unless what is wrong is said before any stage runs, and nothing is written."""
    path = write_params(folder, content)
    before = {*folder.rglob("*")}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(BadInput) as caught:
            check.check(load_params(path))
    assert says in str(caught.value)
    assert {file for file in folder.rglob("*") if "__pycache__" not in file.parts} == before
