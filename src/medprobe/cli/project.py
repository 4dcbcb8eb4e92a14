"""The commands that set a project up, say what there is, and run its stages."""

from pathlib import Path

import click

from medprobe.cli.group import main
from medprobe.core import places
from medprobe.core.errors import BadInput


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make a project in a FOLDER, outside a clone of the code: params.yaml, dvc.yaml, expectations.

    There `medprobe sample` or sources of your own, `params.yaml` and `medprobe repro` come next.
    """
    from medprobe.commands.init import init as make

    make(folder)
    click.echo(f"{folder} is a project: put sources into its data/, and name them in params.yaml")


@main.command()
@click.option("--data", default=places.DATA, type=click.Path(path_type=Path), show_default=True)
@click.option("--force", is_flag=True, help="Replace a data folder that is already there.")
def sample(data: Path, force: bool) -> None:
    """Write the sample world: invented sources in the real file formats."""
    from medprobe import check
    from medprobe.commands.sample import sample as write

    empty = data.is_dir() and not any(data.iterdir())  # as `medprobe init` leaves it
    if data.exists() and not empty and not force:
        raise BadInput(data, "already has files", "use --force to replace all of it")
    params = check.loaded()
    write(data, params.sample, params.seed)


@main.command("import")
@click.argument("what")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace files that exist and differ.")
@click.option("--model", help="Of results: a name for the model that answered.")
@click.option("--benchmark", help="Of results: the benchmark, where their query ids do not say it.")
@click.option("--method", help="Of results: the method to compare them with.")
def import_(
    what: str,
    path: Path,
    *,
    force: bool,
    model: str | None,
    benchmark: str | None,
    method: str | None,
) -> None:
    """Find released files in a clone, archive or folder, check them, bring them into data/. Or
    bring in the results of another program.

    WHAT is annotation (DisKnE's), biolama, lama, lipid, medlama or sentences; or results: a folder
    of lm-evaluation-harness, a JSON log of Inspect, or a table query_id, prediction, score.
    """
    if what == "results":
        from medprobe.commands.import_results import import_results

        name = import_results(path, model=model, benchmark=benchmark, method=method, force=force)
        click.echo(f"copied to {places.IMPORTED / name}; now: write")
        click.echo(f"  models: {{imported: {{{name}: {{}}}}}}")
        click.echo(f"into params.yaml, then dvc add {places.DATA}, then medprobe repro")
        return
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
def pipeline() -> None:
    """Write dvc.yaml anew, after a change of the code: a new method or builder, or an import."""
    from medprobe.commands.pipeline import write

    write()


@main.command()
def doctor() -> None:
    """Check params.yaml and dvc.yaml, and say which sources and models are there."""
    from medprobe import check
    from medprobe.commands.doctor import doctor as run

    check.check(params := check.loaded())
    run(params, places.DATA)


@main.command("list")
@click.argument("what", type=click.Choice(["models", "methods", "benchmarks", "papers"]))
def list_(what: str) -> None:
    """Show what there is to choose from."""
    from medprobe import check
    from medprobe.commands.list_ import list_ as show

    show(what, check.loaded())


@main.command()
def plan() -> None:
    """Say which stages are left to run, and how long each took when it last ran here."""
    from medprobe import check
    from medprobe.commands.plan import plan as run

    run(check.loaded())


@main.command()
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="At a time.")
def repro(jobs: int) -> None:
    """Run all stages that a change touches, as `dvc repro` does, several at a time."""
    from medprobe import check
    from medprobe.commands.repro import repro as run

    check.loaded()
    run(jobs)
