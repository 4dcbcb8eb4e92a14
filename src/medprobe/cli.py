"""The `medprobe` command: a command a stage of dvc.yaml, each one function of `stages/`.

Imports stand inside the commands, so that `medprobe --help` answers in a blink.
"""

import errno
from pathlib import Path
from typing import Any

import click

from medprobe import places
from medprobe.errors import BadInput


class OneLine(click.ClickException):
    """An error as one line on standard error, with exit status 2."""

    exit_code = 2


class Commands(click.Group):
    """The group of all commands; what a person can mend is said in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
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
    from medprobe import params
    from medprobe.stages.sample import sample as write

    if data.exists() and not force:
        raise BadInput(data, "is there already", "use --force to replace it with the sample world")
    choices = params.load()
    write(data, choices.sample, choices.seed)


@main.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="At a time.")
def repro(jobs: int) -> None:
    """Run all stages that a change touches, as `dvc repro` does, several models at a time."""
    from medprobe import params
    from medprobe.stages.repro import repro as run

    run(params.load(), jobs)


@main.command("import")
@click.argument("what", type=click.Choice(["medlama", "annotation"]))
@click.argument("folder", type=click.Path(path_type=Path))
def import_(what: str, folder: Path) -> None:
    """Check released files and bring them into data/, ready for `dvc add data`."""
    from medprobe.stages.import_ import import_released

    import_released(what, folder, places.DATA)


@main.command()
@click.argument("benchmark")
def build(benchmark: str) -> None:
    """Build a benchmark's tables from its sources."""
    from medprobe import params
    from medprobe.stages.build import build as run

    run(benchmark, params.load())


@main.command()
@click.argument("benchmark")
def validate(benchmark: str) -> None:
    """Check a benchmark against its expectations: the gate that all probing waits for."""
    from medprobe.stages.validate import validate as run

    run(
        benchmark,
        places.BENCHMARKS / benchmark,
        places.EXPECTATIONS,
        places.VALIDATION / benchmark,
    )


@main.command()
@click.argument("model")
def pretrain(model: str) -> None:
    """Put a model's checkpoint into outputs/models: train a sample model, fetch any other."""
    from medprobe import params
    from medprobe.stages.pretrain import pretrain as run

    run(model, params.load(), places.MODELS / model)


@main.command()
@click.argument("model")
@click.argument("sentence_set")
def rewire(model: str, sentence_set: str) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step)."""
    from medprobe import params
    from medprobe.stages.rewire import rewire as run

    run(model, sentence_set, params.load())


@main.command()
@click.argument("model")
@click.argument("method")
def probe(model: str, method: str) -> None:
    """Probe a model by one method, over all the benchmarks that params.yaml names for it."""
    from medprobe import params
    from medprobe.stages.probe import probe as run

    run(model, method, params.load())


@main.command()
@click.argument("model")
def finetune(model: str) -> None:
    """Fine-tune a model for DisKnE's diseases and test it on each."""
    from medprobe import params
    from medprobe.stages.finetune import finetune as run

    run(model, params.load())


@main.command()
def score() -> None:
    """Compute every metric from the predictions on disk."""
    from medprobe import params
    from medprobe.stages.score import score as run

    run(places.PREDICTIONS, places.BENCHMARKS, places.METRICS, params.load())


@main.command()
def track() -> None:
    """Bring all results on disk into MLflow; run it again as often as you like."""
    from medprobe import params
    from medprobe.stages.track import track as run

    run(params.load())


@main.command()
def compare() -> None:
    """Write reports/: the comparison of all models and methods as a table and a page."""
    from medprobe import params
    from medprobe.stages.compare import compare as run

    run(params.load())


@main.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--method", default="contrastive", show_default=True)
@click.option("--benchmark", default="medlama", show_default=True, help="Whose candidates to rank.")
def ask(model: str, prompt: str, method: str, benchmark: str) -> None:
    """Show a model's ten best answers to a PROMPT with a slot [Y]."""
    from medprobe import params
    from medprobe.stages.ask import ask as run

    run(model, prompt, method, benchmark, params.load())


@main.command()
def doctor() -> None:
    """Say which sources and models are there, and what each missing one would enable."""
    from medprobe import params
    from medprobe.stages.doctor import doctor as run

    run(params.load(), places.DATA)
