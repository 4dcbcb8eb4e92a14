"""Measures what biomedical knowledge a pre-trained language model holds, and compares models.

model = medprobe.load("dmis-lab/biobert-base-cased-v1.2")
model.rank("[Y] is what aspirin might treat .", ["fever", "gout"], "mask_average")
medprobe.probe(model, facts, "mask_average", prompts={"treats": "[X] treats [Y] ."}).scores
medprobe.results("path/to/project").comparison
"""

import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from medprobe.library import (
        Model,
        ModelComparison,
        ProbeResult,
        Results,
        callback,
        compare,
        figure,
        load,
        probe,
        results,
    )

__all__ = [
    "Model",
    "ModelComparison",
    "ProbeResult",
    "Results",
    "callback",
    "compare",
    "figure",
    "load",
    "probe",
    "results",
]

SOURCES: Final = {Path(__file__).parent}  # folders whose modules no `.pyc` stands for


class _Source(SourceFileLoader):
    """Compiles a module in each process, so that a stage runs the sources that DVC records.

    Python compares a `.pyc` with its source by time and size, and a copy that keeps the time can
    have both in common with an older source.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _find_source(folder: str) -> FileFinder:
    if not any(Path(folder).is_relative_to(root) for root in SOURCES):
        raise ImportError(folder)
    return FileFinder(folder, (_Source, [".py"]))


sys.path_hooks.insert(0, _find_source)


def __getattr__(name: str) -> Any:
    """The names above, whose libraries take seconds to import, when they are first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from medprobe import library

    return vars(library)[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
