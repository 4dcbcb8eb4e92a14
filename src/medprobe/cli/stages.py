"""The stages of dvc.yaml as commands."""

import json
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from medprobe.cli import group
from medprobe.cli.group import example, load_params, main
from medprobe.core import places
from medprobe.pipeline.unchanged import unchanged

Command = TypeVar("Command", bound=Callable[..., Any])


HELP: Final = {
    "benchmark": "A benchmark of params.yaml.",
    "method": "A method of params.yaml.",
    "model": "A model of params.yaml.",
}


def add_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the options that dvc.yaml passes, such as `--model taught`."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            complete = getattr(group, f"{name}s")
            more: Any = {"help": HELP[name], "shell_complete": complete}
            command = click.option(f"--{name}", required=True, **more)(command)
        return command

    return add


@main.command("check", epilog=example("medprobe check"))
@unchanged()
def check_() -> None:
    """Check every setting in params.yaml, before any other stage runs."""
    from medprobe.core.files import write_whole
    from medprobe.pipeline import check

    check.check(params := load_params())
    check.check_blocks(params)
    click.echo("params.yaml is valid")
    write_whole(places.NAMED, json.dumps(params.names, indent=1) + "\n")
    write_whole(places.LOWER_CASE, json.dumps(params.lower_case) + "\n")
    sweeps = params.model_dump(mode="json").get("sweeps", {})  # DVC names no section left out
    write_whole(places.SENTENCES / "sweeps.json", json.dumps(sweeps) + "\n")
    write_whole(places.CHECKED, "checked\n")


@main.command(epilog=example("medprobe build --benchmark medlama"))
@add_options("benchmark")
@unchanged()
def build(benchmark: str) -> None:
    """Build a benchmark's tables from its sources."""
    from medprobe.pipeline.cluster import open_executor
    from medprobe.pipeline.stages.build import build as run

    params = load_params()
    with open_executor(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(benchmark, params, executor)


@main.command(epilog=example("medprobe validate --benchmark medlama"))
@add_options("benchmark")
@unchanged()
def validate(benchmark: str) -> None:
    """Check a benchmark against its expectations; probing requires that it passes."""
    from medprobe.pipeline.stages.validate import validate as run

    run(benchmark, load_params())


model_option = click.option(
    "--model",
    default=lambda: os.environ.get("DVC_STAGE", "").partition("@")[2],
    help="A model of params.yaml (default: the one in the name of the DVC stage).",
)


@main.command(epilog=example("medprobe train --model taught"))
@model_option
@unchanged()
def train(model: str) -> None:
    """Train a sample model from scratch, or from the model that it continues."""
    from medprobe.pipeline.stages.train import train as run

    run(model, load_params(), places.MODELS / model)


@main.command(epilog=example("medprobe fetch --model pubmedbert"))
@model_option
@unchanged()
def fetch(model: str) -> None:
    """Copy a model's checkpoint from the hub or a folder into outputs/models."""
    from medprobe.pipeline.stages.fetch import fetch as run

    run(model, load_params(), places.MODELS / model)


@main.command(
    epilog=example(
        "medprobe probe --model taught",
        "medprobe probe --model taught --method contrastive --benchmark medlama",
    )
)
@add_options("model")
@click.option("--method", default="", help="Only with this method of params.yaml.")
@click.option("--benchmark", default="", help="Only on this benchmark of params.yaml.")
@unchanged()
def probe(model: str, method: str, benchmark: str) -> None:
    """Probe a model with all methods and benchmarks of its kind, and log results to MLflow."""
    from medprobe.backends.finder import describe
    from medprobe.pipeline.stages.probe import probe_model
    from medprobe.pipeline.stages.track import track_model  # whose libraries probing does not need

    params = load_params()
    params.models.kind(model)  # refuses an unknown one, before MLflow is opened
    try:
        probe_model(model, params, method, benchmark, describe=describe)
    finally:
        track_model(model, params)


@main.command(epilog=example("medprobe score"))
@unchanged()
def score() -> None:
    """Compute every metric from the predictions on disk."""
    from medprobe.pipeline.cluster import open_executor
    from medprobe.pipeline.stages.score import score as run

    params = load_params()
    with open_executor(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(params, executor)


@main.command(epilog=example("medprobe compare"))
@unchanged()
def compare() -> None:
    """Write reports/: a table and a page that compare all models and methods."""
    from medprobe.core.executor import in_processes
    from medprobe.pipeline.stages.compare import compare as run

    run(load_params(), executor=in_processes)


@main.command(epilog=example("medprobe track"))
@unchanged()
def track() -> None:
    """Log all results to MLflow; results that are already logged are skipped."""
    from medprobe.pipeline.stages.track import track as run

    run(load_params(), required="DVC_STAGE" not in os.environ)  # logging stops no pipeline
