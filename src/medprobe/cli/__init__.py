"""The `medprobe` command. A command is one function, of `medprobe.stages` where it is a stage of
dvc.yaml, else of `medprobe.commands`; here it gets its options: in `stages.py`, in `project.py`
(what sets a project up and runs it) or in `results.py` (what asks a model, and shows numbers).

Imports stand inside the commands, so that `medprobe --help` answers in a blink.
"""

from medprobe.cli import project, results, stages
from medprobe.cli.group import main

__all__ = ["main", "project", "results", "stages"]
