"""The `medprobe` command.

Each command calls one function: a stage of dvc.yaml one of `medprobe.pipeline.stages`, any other
one of `medprobe.pipeline` or of this room.

Options are declared here: in `project.py` for commands that set up and run a project, in
`results.py` for commands that probe a model or show results, in `stages.py` for the stages.
Imports are inside the commands, so that `medprobe --help` answers at once.
"""

from medprobe.cli import project, results, stages
from medprobe.cli.group import main

__all__ = ["main", "project", "results", "stages"]
