"""`medprobe export benchmark`: a benchmark in the form of another tool.

A plugin of the kind `exports` writes for one tool, and has a function
`export(benchmark, out, licensed)`.
"""

from pathlib import Path

from medprobe.core.errors import BadInput, nearest
from medprobe.core.plugins import find_plugins, load_module


def export_benchmark(tool: str, benchmark: str, out: Path, *, licensed: bool) -> None:
    """Write a benchmark for another tool.

    Args:
        tool: such as `lm-eval`.
        benchmark: of params.yaml.
        out: a new folder.
        licensed: whether the licence of the benchmark allows its text in that folder.

    Raises:
        BadInput: no plugin writes for this tool, or it cannot write this benchmark.
    """
    plugins = {name.replace("_", "-"): plugin for name, plugin in find_plugins("exports").items()}
    if tool not in plugins:
        problem = f"no tool to write for{nearest(tool, [*plugins])}"
        raise BadInput(tool, problem, f"choose one of: {', '.join(plugins) or 'none'}")
    load_module(plugins[tool]).export(benchmark, out, licensed=licensed)
