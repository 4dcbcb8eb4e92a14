"""What reads the sources of the kernel and of all papers, and a file for each reader to damage."""

from pathlib import Path
from types import ModuleType
from typing import Final

from helpers import damage
from helpers.damage import Reader
from papers.context import readers as context
from papers.diskne import readers as diskne
from papers.medlama import readers as medlama
from papers.template_free import readers as template_free

MODULES: Final[tuple[ModuleType, ...]] = (damage, medlama, diskne, context, template_free)
READERS: Final[dict[str, Reader]] = {
    name: reader for module in MODULES for name, reader in module.READERS.items()
}


def write_world(data: Path) -> None:
    """Write a small sample world, and files of the formats that it lacks."""
    damage.write_world(data)
    for module in MODULES[1:]:
        module.write_files(data)
