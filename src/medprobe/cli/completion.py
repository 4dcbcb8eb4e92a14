"""What a shell completes: the names of models, methods and benchmarks."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from medprobe.cli.group import load_params


def models(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete a model of params.yaml, or the path of a folder."""
    if any(mark in text for mark in "/.~"):
        return [CompletionItem(text, type="dir")]
    return _matching(load_params().models.all(), text)


def benchmarks(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Complete a benchmark of params.yaml, or the path of a file of facts."""
    if any(mark in text for mark in "/.~"):
        return [CompletionItem(text, type="file")]
    return _matching(load_params().benchmark_names, text)


def methods(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete a method."""
    from medprobe.methods import list_names

    return _matching(list_names(), text)


def systems(context: click.Context, parameter: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete a system of this project: MODEL/METHOD."""
    from medprobe.core import places

    paths = places.PREDICTIONS.glob("*/*")
    return _matching((f"{path.parent.name}/{path.name}" for path in paths if path.is_dir()), text)


def _matching(names: Iterable[str], text: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(text)]
