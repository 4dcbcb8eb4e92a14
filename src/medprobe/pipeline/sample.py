"""`medprobe sample`: write the sample world in the formats of the real files."""

from pathlib import Path
from typing import Any

from medprobe.core.files import replacing
from medprobe.core.plugins import find_plugins, load_module
from medprobe.core.settings import parse_section
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import build


def sample(data: Path, settings: dict[str, Any], seed: int) -> None:
    """Replace the folder `data` by all sources of the sample world.

    The same settings and seed give the same bytes.
    """
    sizes = parse_section(SampleSettings, settings, "params.yaml: sample")
    world = build(sizes, seed)
    with replacing(data) as folder:
        folder.mkdir()
        for plugin in find_plugins("samples").values():  # each writes its own files
            load_module(plugin).write(world, folder, seed)
