"""Measures what biomedical knowledge a pre-trained language model holds, and compares models.

model = medprobe.load("dmis-lab/biobert-base-cased-v1.2")
model.rank("[Y] is what aspirin might treat .", ["fever", "gout"], "mask_average")
medprobe.probe(model, facts, "mask_average", prompts={"treats": "[X] treats [Y] ."}).scores
medprobe.results("path/to/project").comparison
"""

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """The names above, whose libraries take seconds to import, when they are first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from medprobe import library

    return vars(library)[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
