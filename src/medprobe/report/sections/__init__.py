"""The page's sections: one file, one section, listed in the order of the page.

A section of a benchmark's chapter is `section(results, benchmark) -> str`, one about benchmarks
together is `section(results) -> str`. Both return HTML, or "" where their data is absent.
"""

from collections.abc import Callable

from medprobe.report.results import Results
from medprobe.report.sections import (
    calibration,
    context,
    differences,
    diskne,
    lengths,
    models,
    published,
    relations,
    statistics,
    sweeps,
    template_free,
)

OF_ONE: list[Callable[[Results, str], str]] = [
    models.section,
    context.section,
    diskne.section,
    calibration.section,
    relations.section,
    sweeps.section,
    lengths.section,
    differences.section,
    published.section,
    statistics.section,
]
TOGETHER: list[Callable[[Results], str]] = [template_free.section]
