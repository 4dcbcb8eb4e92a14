"""The commands that are stages of dvc.yaml, which names their models, methods and benchmarks."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from medprobe.cli.group import main
from medprobe.core import places
from medprobe.core.errors import BadInput

if TYPE_CHECKING:
    from medprobe.core.executor import Executor
    from medprobe.core.params import EngineParams

Command = TypeVar("Command", bound=Callable[..., Any])


def named(*names: str) -> Callable[[Command], Command]:
    """The options by which dvc.yaml tells a command whose stage it is: `--model taught`."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            parameter = "sentence_set" if name == "set" else name
            command = click.option(f"--{name}", parameter, required=True)(command)
        return command

    return add


@contextmanager
def executing(engine: "EngineParams", here: "Executor | None" = None) -> "Iterator[Executor]":
    """The executor that params.yaml asks for; `here` or `local` is this machine's. At the end of
    the block its workers leave, and what they did is said."""
    from medprobe.core.executor import in_this_process

    if engine.executor == "local":
        yield here or in_this_process
        return
    from medprobe.cluster.executor import Cluster

    with Cluster(engine) as cluster:
        yield cluster
    for line in cluster.staff.costs():
        click.echo(line, err=True)


def lineage_of(executor: "Executor", engine: "EngineParams") -> dict[str, object]:
    """Which devices computed a result, this process's or a cluster's, and how many tokens their
    models read for it."""
    from medprobe.core.executor import in_this_process
    from medprobe.engine.load import choose_device, device_name, token_counter

    if executor is in_this_process:
        return {
            "device": device_name(choose_device(engine.device)),
            "tokens": token_counter["tokens"],
        }
    from medprobe.cluster.executor import Cluster

    assert isinstance(executor, Cluster)
    workers = "; ".join(executor.staff.costs())
    about = {"executor": "ray", "device": executor.staff.devices(), "workers": workers}
    return {**about, "tokens": executor.staff.tokens}


@main.command("check")
def check_() -> None:
    """Check params.yaml to its leaves: by hand, and as the stage that all others wait for."""
    from medprobe import check
    from medprobe.core.files import replacing

    check.check(check.loaded())
    click.echo("params.yaml: nothing is wrong")
    with replacing(places.CHECKED) as scratch:
        scratch.write_text("checked\n", encoding="utf-8")


@main.command()
@named("benchmark")
def build(benchmark: str) -> None:
    """Build a benchmark's tables from its sources."""
    from medprobe import check
    from medprobe.stages.build import build as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(benchmark, params, executor)


@main.command()
@named("benchmark")
def validate(benchmark: str) -> None:
    """Check a benchmark against its expectations: the gate that all probing waits for."""
    from medprobe import check
    from medprobe.stages.validate import validate as run

    run(benchmark, check.loaded())


@main.command("validate-sentences")
@named("set")
def validate_sentences(sentence_set: str) -> None:
    """Check a sentence set against its expectations: the gate that rewiring waits for."""
    from medprobe import check
    from medprobe.stages.validate import validate_sentences as run

    run(sentence_set, check.loaded())


a_model = click.option(
    "--model",
    default=lambda: os.environ.get("DVC_STAGE", "").partition("@")[2],
    help="The model; of a stage of DVC's, which has it in its name: none.",
)


@main.command()
@a_model
def train(model: str) -> None:
    """Train a sample model by its recipe, from nothing or from the model that it continues."""
    from medprobe import check
    from medprobe.stages.train import train as run

    run(model, check.loaded(), places.MODELS / model)


@main.command()
@a_model
def fetch(model: str) -> None:
    """Put a model's checkpoint into outputs/models, from the hub or from its folder."""
    from medprobe import check
    from medprobe.stages.fetch import fetch as run

    run(model, check.loaded(), places.MODELS / model)


@main.command()
@named("model", "set")
@click.option("--sweep", metavar="SETTING", help="A setting that is swept, with its --value.")
@click.option("--value", help="Of the setting that is swept.")
def rewire(model: str, sentence_set: str, sweep: str | None, value: str | None) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step)."""
    if (sweep is None) != (value is None):
        raise BadInput("rewire", "--sweep and --value go together", "name both, or neither")
    from medprobe import check
    from medprobe.stages.rewire import rewire as run

    params, swept = check.loaded(), (sweep, value) if sweep and value else None
    with executing(params.engine) as executor:
        run(model, sentence_set, params, swept, executor)


@main.command()
@named("model", "method", "benchmark")
def probe(model: str, method: str, benchmark: str) -> None:
    """Probe a model by one method on one benchmark, and log the result to MLflow."""
    from medprobe import check
    from medprobe.stages.probe import probe as run
    from medprobe.tracking import lineage

    params = check.loaded()
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    engine = params.engine
    about: dict[str, object] = engine.model_dump(mode="json", exclude={"executor", "address"})
    with lineage.recorded(places.RUNS / model / method / f"{benchmark}.json", out, about):
        with executing(engine) as executor:
            run(model, method, benchmark, params, executor)
        about |= lineage_of(executor, engine)
    from medprobe.stages.track import track_one  # whose libraries probing does not need

    track_one(model, method, benchmark, params)


@main.command()
@named("benchmark")
def baseline(benchmark: str) -> None:
    """Rank the commonest answers of each relation: what looks at no subject."""
    from medprobe import check
    from medprobe.stages.baseline import baseline as run

    check.loaded()
    run(benchmark)


@main.command()
@named("model")
def imported(model: str) -> None:
    """Make the predictions of a model that another program asked."""
    from medprobe import check
    from medprobe.stages.imported import imported as run

    check.loaded()
    run(model)


@main.command()
def score() -> None:
    """Compute every metric from the predictions on disk."""
    from medprobe import check
    from medprobe.stages.score import score as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"})) as executor:
        run(params, executor)


@main.command()
def significance() -> None:
    """Compute the paired tests between all systems."""
    from medprobe import check
    from medprobe.core.executor import in_processes
    from medprobe.stages.significance import significance as run

    params = check.loaded()
    with executing(params.engine.model_copy(update={"device": "cpu"}), in_processes) as executor:
        run(params, executor=executor)


@main.command()
def compare() -> None:
    """Write reports/: the comparison of all models and methods as a table and a page."""
    from medprobe import check
    from medprobe.stages.compare import compare as run

    run(check.loaded())


@main.command()
def track() -> None:
    """Bring all results on disk into MLflow; run it again as often as you like."""
    from medprobe import check
    from medprobe.stages.track import track as run

    run(check.loaded())
