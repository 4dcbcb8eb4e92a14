"""The package's own methods and builders: more is expected of them than of plugins from outside."""

from medprobe import benchmarks, methods
from medprobe.core.plugins import find_outside_plugins


def own_names(kind: str) -> list[str]:
    """The names of a kind (`methods` or `benchmarks`) without those of plugins from outside."""
    every = {"methods": methods, "benchmarks": benchmarks}[kind].list_names()
    outside = find_outside_plugins(kind)
    return [name for name in every if name not in outside]
