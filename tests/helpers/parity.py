"""What released code gives on invented inputs, and the table of how far ours agrees.

The inputs stand in `tests/fixtures/parity`, or in another folder of the same shape that the
environment variable MEDPROBE_PARITY names: nothing here may be fitted to one of them.
"""

import json
import os
from pathlib import Path
from typing import Any

from helpers import FIXTURES
from medprobe.core.params import EngineParams
from medprobe.engine.load import Head, Model, load

OWN_FOLDER = FIXTURES / "parity"
FOLDER = Path(os.environ.get("MEDPROBE_PARITY") or OWN_FOLDER)
ENGINE = EngineParams(device="cpu")


def read(item: str, name: str) -> Any:
    """A file of one item, such as `xfactr/outputs.json`."""
    return json.loads((FOLDER / item / f"{name}.json").read_text(encoding="utf-8"))


def folder(name: str) -> Path:
    """The checkpoint of a tiny model."""
    return FOLDER / "models" / name


def model(name: str, head: Head) -> Model:
    """A tiny model, loaded as every method loads it."""
    return load(folder(name), head, ENGINE)
