"""The `medprobe` command. A command is one function: of `stages/` where it is a stage of dvc.yaml,
else of `commands/`.

Imports stand inside the commands, so that `medprobe --help` answers in a blink.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from medprobe.core import places
from medprobe.core.errors import BadInput, withheld

Command = TypeVar("Command", bound=Callable[..., Any])


class OneLine(click.ClickException):
    """An error as one line on standard error, with exit status 2."""

    exit_code = 2


class Commands(click.Group):
    """The group of all commands; what a person can mend is said in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with withheld():
                return super().invoke(ctx)
        except BadInput as error:
            if ctx.params["verbose"]:
                raise
            raise OneLine(str(error)) from error
        except OSError as error:
            if ctx.params["verbose"]:
                raise
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = "make room and run the command again" if full else "see -v for the traceback"
            where = error.filename or "the file system"
            raise OneLine(f"{where}: {error.strerror or error}; {remedy}") from error


def named(*names: str) -> Callable[[Command], Command]:
    """The options by which dvc.yaml tells a command whose stage it is: `--model taught`."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            parameter = "sentence_set" if name == "set" else name
            command = click.option(f"--{name}", parameter, required=True)(command)
        return command

    return add


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="medprobe")
def main(verbose: bool) -> None:
    """Measure what biomedical knowledge a pre-trained language model holds.

    `dvc repro` runs these commands in order; each can be run alone, in the project's folder.
    """


@main.command()
@click.option("--data", default=places.DATA, type=click.Path(path_type=Path), show_default=True)
@click.option("--force", is_flag=True, help="Replace a data folder that is already there.")
def sample(data: Path, force: bool) -> None:
    """Write the sample world: invented sources in the real file formats."""
    from medprobe import check
    from medprobe.commands.sample import sample as write

    if data.exists() and not force:
        raise BadInput(data, "is there already", "use --force to replace it with the sample world")
    params = check.loaded()
    write(data, params.sample, params.seed)


@main.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="At a time.")
def repro(jobs: int) -> None:
    """Run all stages that a change touches, as `dvc repro` does, several at a time."""
    from medprobe import check
    from medprobe.commands.repro import repro as run

    check.loaded()
    run(jobs)


@main.command()
@click.option("--measure/--no-measure", default=True, help="Count, and try for seconds each.")
def plan(measure: bool) -> None:
    """Say what is left to run, how much there is of it, and how long it takes on this device."""
    from medprobe import check
    from medprobe.commands.plan import plan as run

    run(check.loaded(), measure)


@main.command("import")
@click.argument("what")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def import_(what: str, path: Path, force: bool) -> None:
    """Find released files in a clone, archive or folder, check them, bring them into data/.

    WHAT is annotation (DisKnE's), biolama, lama, lipid, medlama or sentences.
    """
    from medprobe.commands.imports import bring

    bring(what, path, places.DATA, force=force)


@main.command()
@click.argument("paper")
@click.option("--yes", is_flag=True, help="Write without asking.")
def adopt(paper: str, yes: bool) -> None:
    """Put a PAPER's benchmarks, methods, rewiring and models into params.yaml.

    Shows the difference, and asks before it writes.
    """
    from medprobe.commands import adopt as command

    before, after = command.adopted(paper)
    if before == after:
        click.echo("params.yaml has them already")
        return
    click.echo(command.difference(before, after))
    for remark in command.remarks(paper):
        click.echo(f"# {remark}")
    if yes or click.confirm("write params.yaml?"):
        command.write(after)


@main.command()
@named("benchmark")
def build(benchmark: str) -> None:
    """Build a benchmark's tables from its sources."""
    from medprobe import check
    from medprobe.stages.build import build as run

    run(benchmark, check.loaded())


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


@main.command()
@named("model")
def train(model: str) -> None:
    """Train a sample model by its recipe."""
    from medprobe import check
    from medprobe.stages.train import train as run

    run(model, check.loaded(), places.MODELS / model)


@main.command()
@click.option("--model", help="The model; of a stage of DVC's, which has it in its name: none.")
def fetch(model: str | None) -> None:
    """Put a model's checkpoint into outputs/models, from the hub or from its folder."""
    from medprobe import check
    from medprobe.stages.fetch import fetch as run

    name = model or os.environ.get("DVC_STAGE", "").partition("@")[2]
    run(name, check.loaded(), places.MODELS / name)


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

    run(model, sentence_set, check.loaded(), (sweep, value) if sweep and value else None)


@main.command()
@named("model", "method", "benchmark")
def probe(model: str, method: str, benchmark: str) -> None:
    """Probe a model by one method on one benchmark."""
    from medprobe import check
    from medprobe.engine.load import device_of
    from medprobe.stages.probe import probe as run
    from medprobe.tracking import lineage

    params = check.loaded()
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    engine = params.engine
    about = {**engine.model_dump(mode="json"), "device": str(device_of(engine.device))}
    with lineage.recorded(places.RUNS / model / method / f"{benchmark}.json", out, about):
        run(model, method, benchmark, params)


@main.command()
def score() -> None:
    """Compute every metric from the predictions on disk."""
    from medprobe import check
    from medprobe.stages.score import score as run

    run(check.loaded())


@main.command()
@click.option("--model")
@click.option("--method")
@click.option("--benchmark")
def track(model: str | None, method: str | None, benchmark: str | None) -> None:
    """Bring all results on disk into MLflow, or that of one model, method and benchmark; run it
    again as often as you like."""
    from medprobe import check
    from medprobe.stages import track as stage

    params = check.loaded()
    if model and method and benchmark:
        stage.track_one(model, method, benchmark, params)
    elif model or method or benchmark:
        raise BadInput("track", "expected --model, --method and --benchmark, or none of them")
    else:
        stage.track(params)


@main.command()
def compare() -> None:
    """Write reports/: the comparison of all models and methods as a table and a page."""
    from medprobe import check
    from medprobe.stages.compare import compare as run

    run(check.loaded())


@main.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--method", default="contrastive", show_default=True)
@click.option("--benchmark", default="medlama", show_default=True, help="Whose candidates to rank.")
def ask(model: str, prompt: str, method: str, benchmark: str) -> None:
    """Show a model's ten best answers to a PROMPT with a slot [Y]."""
    from medprobe import check
    from medprobe.commands.ask import ask as run

    run(model, prompt, method, benchmark, check.loaded())


@main.command("check")
def check_() -> None:
    """Refuse names and sections of params.yaml that are none: the first stage, which all others
    wait for. What a section holds is checked by every command."""
    from medprobe.core.files import replacing
    from medprobe.core.params import load

    load()
    with replacing(places.CHECKED) as scratch:
        scratch.write_text("checked\n", encoding="utf-8")


@main.command()
@click.argument("model")
@click.option("--benchmark", required=True, help="A benchmark of params.yaml that is built.")
@click.option("--method", required=True, help="How to ask; `medprobe list methods` names them.")
@click.option("--limit", type=click.IntRange(1), help="Queries at most, drawn by the seed.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Keep the predictions: a parquet file."
)
def run(model: str, benchmark: str, method: str, limit: int | None, out: Path | None) -> None:
    """Probe a MODEL, by name or folder, at once: without DVC, and nothing is recorded."""
    from medprobe import check
    from medprobe.commands.run import run as now

    now(model, method, benchmark, check.loaded(), limit=limit, out=out)


@main.command("list")
@click.argument("what", type=click.Choice(["models", "methods", "benchmarks", "papers"]))
def list_(what: str) -> None:
    """Show what there is to choose from."""
    from medprobe import check
    from medprobe.commands.list_ import list_ as show

    show(what, check.loaded())


@main.command()
@click.argument("asked", type=click.Choice(["predictions", "prompts"]))
@click.argument("benchmark")
@click.argument("name")
@click.option("--rater", "raters", multiple=True, required=True, help="Whose sheet; repeat it.")
@click.option(
    "--system", "systems", multiple=True, nargs=2, metavar="MODEL METHOD", help="Whose predictions."
)
@click.option("--queries", type=click.IntRange(1), help="How many; else 15, or 200 prompts.")
@click.option("--form", type=click.Choice(["xlsx", "csv"]), default="xlsx", show_default=True)
def annotate(
    asked: str,
    benchmark: str,
    name: str,
    *,
    raters: tuple[str, ...],
    systems: tuple[tuple[str, str], ...],
    queries: int | None,
    form: str,
) -> None:
    """Draw predictions or prompts of a BENCHMARK, and write a sheet for each rater below
    data/annotations/NAME."""
    from medprobe import check
    from medprobe.commands import annotate as command

    params = check.loaded()
    params.builder(benchmark)
    tables = [command.table_of(one, benchmark, places.PREDICTIONS) for one in systems]
    folder = places.BENCHMARKS / benchmark
    drawn = command.draw(asked, folder, tables, queries, params.seed)
    target = command.write(drawn, name, raters, form, places.DATA)
    click.echo(f"{target}: give each rater the sheet of that name, and put it back filled in")


@main.command()
def doctor() -> None:
    """Check params.yaml and dvc.yaml, and say which sources and models are there."""
    from medprobe import check
    from medprobe.commands.doctor import doctor as run

    run(check.loaded(), places.DATA)


@main.command()
def pipeline() -> None:
    """Write dvc.yaml anew, after a change of the code: a new method or builder, or an import."""
    from medprobe.commands.pipeline import write

    write()
