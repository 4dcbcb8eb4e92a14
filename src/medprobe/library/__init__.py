"""What notebooks and scripts use and the command line builds on: no project folder is needed.

`medprobe` itself hands these names on, so that `import medprobe` is all that a script needs.
"""

from medprobe.library.comparing import ModelComparison, compare
from medprobe.library.model import Model, load
from medprobe.library.probing import ProbeResult, callback, probe
from medprobe.library.project import Results, figure, results

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
