"""What stands for code in the key of a result or a part, from which it is known what changed.

In a clone it is a hash of the rooms and folders that compute, so that each edit counts. An
installed package changes by an upgrade alone. There the whole number stands for the code that its
author raises when a number moves: an upgrade computes again what moved, and nothing else.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from medprobe.core.files import list_files
from medprobe.core.libraries import installed_versions
from medprobe.core.parts import fingerprint
from medprobe.core.places import LIBRARIES, PLUGINS
from medprobe.core.plugins import PACKAGE, ROOT, Plugin

SOURCES: Final = Path("src") / PACKAGE  # the package's code in a clone
# Files that compute nothing, which .dvcignore names too: hidden, of editors and merges, documents.
SCRATCH_FILE: Final = re.compile(r"__pycache__|\..*|#.*#|.*(~|\.orig|\.rej|\.md)")


def code_key(*rooms: str, version: int | None = None, plugins: Iterable[Plugin] = ()) -> str:
    """Return what stands for code in the key of what it computes."""
    plugins, in_clone = [*plugins], SOURCES.is_dir()
    stated = [plugin.package for plugin in plugins if plugin.package] if version is None else []
    stated += [str(version)] if version is not None else []
    code = [path for plugin in plugins if plugin.file or in_clone for path in own_code(plugin)]
    if in_clone:
        code += [*(ROOT / room for room in rooms), LIBRARIES]
    elif version is None:
        stated += installed_versions([PACKAGE]).values()
    files = {file for path in code for file in list_files(path) if not is_scratch(file)}
    return " ".join([*stated, fingerprint(sorted(files))])


def own_code(plugin: Plugin) -> list[Path]:
    """List the folders and files that are a plugin's own, none of another installed package.

    A plugin of the kernel is a file or a folder; that of a paper has the paper's folder, that of an
    extension those of all extensions, which use each other, and the metrics, whose control they
    draw. A project's plugins share the files directly in `plugins/`.
    """
    own = plugin.path.parent if plugin.path.name == "__init__.py" else plugin.path
    if plugin.is_outside:
        return [own, *sorted(PLUGINS.glob("*.py"))] if plugin.file else []
    place, *below = plugin.path.relative_to(ROOT).parts
    wider = {
        "papers": [ROOT / place / below[0]],
        "extensions": [ROOT / place, ROOT / "metrics"],
    }
    return wider.get(place, [own])


def is_scratch(file: Path) -> bool:
    """Return whether a file of a clone or a project is none that computes."""
    return any(map(SCRATCH_FILE.fullmatch, (file.name, file.parent.name)))
