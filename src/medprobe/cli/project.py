"""The commands that set up a project, describe it, and run its stages."""

from pathlib import Path
from typing import Final

import click

from medprobe.cli.group import example, json_option, load_params, main
from medprobe.core import places
from medprobe.core.errors import BadInput


@main.command(epilog=example("medprobe init my-project"))
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Create a project: params.yaml, dvc.yaml and the expectations.

    \b
    FOLDER  a new folder, outside a clone of the code

    Next, run `medprobe sample` or add your own sources, edit params.yaml, and run `medprobe repro`.
    """
    from medprobe.commands.init import init as create

    create(folder)
    click.echo(f"created {folder}: put sources into its data/, and name them in params.yaml")


@main.command(epilog=example("medprobe sample"))
@click.option("--force", is_flag=True, help="Replace an existing folder, with all its files.")
def sample(force: bool) -> None:
    """Write the sample world into data/: synthetic sources in the real file formats."""
    from medprobe import check
    from medprobe.commands.sample import sample as write

    if not force and places.DATA.exists() and any(places.DATA.iterdir()):
        raise BadInput(places.DATA, "already has files", "move them, or replace them by --force")
    params = check.loaded()
    write(places.DATA, params.sample, params.seed)


@main.command("import", epilog=example("medprobe import medlama ~/medlama"))
@click.argument("what")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace existing files that differ.")
@click.option("--model", help="For results: a name for the model.")
@click.option("--benchmark", help="For results: the benchmark (default: from the query ids).")
@click.option("--method", help="For results: the method to compare them with.")
@click.option(
    "--partial", is_flag=True, help="For results of some of the queries: a subset of its own."
)
def import_(
    what: str,
    path: Path,
    *,
    force: bool,
    model: str | None,
    benchmark: str | None,
    method: str | None,
    partial: bool,
) -> None:
    """Check released files, or the results of another program, and copy them into data/.

    Results are a folder of lm-evaluation-harness, or a table with the
    columns query_id, prediction and score.

    \b
    WHAT  annotation (DisKnE's), biolama, lama, lipid, medlama, sentences or results
    PATH  a clone, an unpacked archive or a folder that contains the files
    """
    if what == "results":
        from medprobe.commands.import_results import import_results

        options = {"model": model, "benchmark": benchmark, "method": method}
        name = import_results(path, **options, force=force, partial=partial)
        click.echo(f"copied to {places.IMPORTED / name}; now: write")
        click.echo(f"  models: {{imported: {{{name}: {{}}}}}}")
        click.echo(f"into params.yaml, then dvc add {places.DATA}, then medprobe repro")
        return
    from medprobe.commands.imports import import_files

    import_files(what, path, places.DATA, force=force)


@main.command(epilog=example("medprobe list papers", "medprobe adopt diskne"))
@click.argument("paper")
@click.option("--yes", is_flag=True, help="Write without a question.")
def adopt(paper: str, yes: bool) -> None:
    """Put a paper's benchmarks, methods, rewiring and models into params.yaml.

    The command shows the difference, and writes only after your consent.

    \b
    PAPER  a name from `medprobe list papers`
    """
    from medprobe.commands import adopt as command

    old_text, new_text = command.adopt(paper)
    if old_text == new_text:
        click.echo("params.yaml already has these settings")
        return
    click.echo(command.difference(old_text, new_text))
    for remark in command.remarks(paper):
        click.echo(f"# {remark}")
    if yes or click.confirm("write params.yaml?"):
        command.write(new_text)


@main.command(epilog=example("medprobe pipeline"))
def pipeline() -> None:
    """Write dvc.yaml again, after a new method, builder or import in the code."""
    from medprobe.commands.pipeline import write

    for path in write():
        click.echo(f"{path} written")


@main.command(epilog=example("medprobe doctor", "medprobe doctor --json"))
@json_option
def doctor(*, as_json: bool) -> None:
    """Check params.yaml and dvc.yaml, and list the available sources and models."""
    from medprobe import check
    from medprobe.commands.doctor import doctor as run

    check.check(params := check.loaded())
    run(params, places.DATA, as_json=as_json)


@main.command(epilog=example("medprobe clean"))
@click.option("--yes", is_flag=True, help="Remove without asking.")
def clean(yes: bool) -> None:
    """Remove what stages made of names that params.yaml no longer has, and unused parts.

    Lists the paths with their sizes, and asks. A name that comes back has its results from DVC's
    cache. Unused parts are what stages computed with other code, settings or data. They are listed
    once all stages are up to date. Runs that were deleted in MLflow are removed with their files.
    """
    from rich.filesize import decimal

    from medprobe import check
    from medprobe.commands import clean as command
    from medprobe.commands.repro import exclusive_lock
    from medprobe.commands.stale_stages import find_stale_stages
    from medprobe.core import files
    from medprobe.tracking import garbage

    check.check(params := check.loaded())
    with exclusive_lock():
        paths = command.leftovers()
        parts = [] if find_stale_stages() else command.unused_parts(params)
        deleted = garbage.count_deleted()
        if paths:
            command.show(paths, command.LEFTOVERS)
        if parts:
            size = decimal(sum(map(files.size, parts)))
            click.echo(f"{len(parts)} unused parts of {size} in {places.PARTS}")
        if deleted:
            click.echo(f"mlruns/: {deleted:,} runs that were deleted in MLflow, with their files")
        if not paths and not parts and not deleted:
            click.echo("outputs/ has nothing of other names, and no unused parts")
        elif yes or click.confirm("remove them?"):
            command.remove([*paths, *parts])
            if deleted:
                garbage.remove_deleted()


LISTS: Final = ("models", "methods", "benchmarks", "metrics", "papers", "checkpoints")


@main.command("list", epilog=example("medprobe list methods"))
@click.argument("what", type=click.Choice(LISTS))
@json_option
def list_(what: str, *, as_json: bool) -> None:
    """List the available models, methods, benchmarks, metrics, papers or checkpoints.

    Only models need a project.

    \b
    WHAT  models of params.yaml, methods, builders of benchmarks, metrics, papers, or
          checkpoints of the papers: the names for `published`
    """
    from medprobe.commands.list_ import list_ as show

    show(what, load_params(required=what == "models"), as_json=as_json)


@main.command(epilog=example("medprobe plan", "medprobe plan --json"))
@json_option
def plan(*, as_json: bool) -> None:
    """List the stages that would run, with the time that each took before."""
    from medprobe import check
    from medprobe.commands.plan import plan as run

    run(check.loaded(), as_json=as_json)


@main.command(epilog=example("medprobe repro", "medprobe repro --jobs 4"))
@click.option(
    "--jobs",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="How many stages run at the same time.",
)
def repro(jobs: int) -> None:
    """Run all stages that are out of date, as `dvc repro` does, but several at a time."""
    from medprobe import check
    from medprobe.commands.repro import repro as run

    check.loaded()
    run(jobs)


@main.command(epilog=example("medprobe gate", "medprobe gate --base develop"))
@click.option(
    "--base",
    default="main",
    show_default=True,
    envvar="GITHUB_BASE_REF",
    help="The branch for which the change is meant, as a pull request on GitHub sets it.",
)
def gate(base: str) -> None:
    """Build all benchmarks and check them and the sentence sets, without any model.

    A failing build or gate stops no other one. All failures are listed at the end.
    """
    from medprobe import check
    from medprobe.commands.gate import gate as run

    run(check.loaded(), base)
