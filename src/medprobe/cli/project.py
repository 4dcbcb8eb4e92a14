"""The commands that set up a project, describe it, and run its stages."""

from pathlib import Path
from typing import Final

import click

from medprobe.cli import group
from medprobe.cli.group import confirm, example, json_option, load_params, main
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.plugins import find_plugins, load_module


@main.command(epilog=example("medprobe init my-project"))
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Create a project: params.yaml, dvc.yaml and the expectations.

    \b
    FOLDER  a new folder, outside a clone of the code

    Next, run `medprobe sample` or add your own sources, edit params.yaml, and run `medprobe repro`.
    """
    from medprobe.pipeline.init import init as create

    create(folder)
    click.echo(f"created {folder}: put sources into its data/, and name them in params.yaml")


@main.command(epilog=example("medprobe sample"))
@click.option("--force", is_flag=True, help="Replace an existing folder, with all its files.")
def sample(force: bool) -> None:
    """Write the sample world into data/: synthetic sources in the real file formats."""
    from medprobe.pipeline.sample import sample as write

    if not force and places.DATA.exists() and any(places.DATA.iterdir()):
        raise BadInput(places.DATA, "already has files", "move them, or replace them by --force")
    params = load_params()
    write(places.DATA, params.sample, params.seed)
    click.echo(f"wrote the sample world into {places.DATA}/")


class Imports(click.Group):
    """A command for each plugin of the kind `imports`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the plugins."""
        return [*find_plugins("imports")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command that imports a release."""
        from medprobe.sources.releases import find_release, import_files

        find_release(cmd_name)
        module = load_module(find_plugins("imports")[cmd_name])
        path = click.Argument(["path"], type=click.Path(path_type=Path))
        text = "Replace existing files that differ."
        force = click.Option(["--force"], is_flag=True, help=text)

        def run(path: Path, *, force: bool) -> None:
            load_params()  # elsewhere, data/ would be of no project
            import_files(cmd_name, path, places.DATA, force=force)

        return click.Command(cmd_name, callback=run, params=[path, force], help=module.__doc__)


@main.group("import", cls=Imports, epilog=example("medprobe import medlama ~/medlama"))
def import_() -> None:
    """Copy released files into data/, where builders check and read them."""


@main.command(epilog=example("medprobe list papers", "medprobe adopt diskne --table 6"))
@click.argument("paper", shell_complete=group.papers)
@click.option("--table", default="", help="Only what this table needs, such as 5.")
@click.option("--figure", default="", help="Only what this figure needs.")
@click.option("--yes", is_flag=True, help="Write without asking, as where there is no terminal.")
def adopt(paper: str, table: str, figure: str, yes: bool) -> None:
    """Put a paper's benchmarks, methods, rewiring and models into params.yaml.

    The command shows the difference and asks before it writes.

    \b
    PAPER  a name from `medprobe list papers`
    """
    from medprobe.pipeline import adopt as command

    if table and figure:
        raise click.UsageError("give --table or --figure")
    table = f"figure {figure}" if figure else table
    old_text, new_text = command.adopt(paper, table)
    if old_text == new_text:
        click.echo("params.yaml already has these settings")
        return
    click.echo(command.difference(old_text, new_text))
    for remark in command.remarks(paper, table):
        click.echo(f"# {remark}")
    if yes or confirm("write params.yaml?"):
        command.write(new_text)


@main.command(epilog=example("medprobe doctor", "medprobe doctor --json"))
@json_option
def doctor(*, as_json: bool) -> None:
    """Check params.yaml and dvc.yaml, and list the available sources and models.

    The exit status is 2 where a source or a folder that params.yaml names is missing.
    """
    from medprobe.pipeline import check
    from medprobe.pipeline.doctor import doctor as run

    check.check(params := load_params())
    if not run(params, places.DATA, as_json=as_json):
        click.get_current_context().exit(2)


@main.command(epilog=example("medprobe clean"))
@click.option("--yes", is_flag=True, help="Remove without asking.")
def clean(yes: bool) -> None:
    """Delete outputs of names that are no longer in params.yaml, and unused parts.

    Lists the paths with their sizes, and asks first. Unused parts are those of other code, settings
    or data. They are listed once all stages are up to date.
    """
    from rich.filesize import decimal

    from medprobe.core import files
    from medprobe.pipeline import check
    from medprobe.pipeline import clean as command
    from medprobe.pipeline.repro import exclusive_lock
    from medprobe.pipeline.stale_stages import find_stale_stages

    check.check(params := load_params())
    with exclusive_lock():
        paths = command.leftovers()
        parts = [] if find_stale_stages() else command.unused_parts(params)
        if paths:
            command.show(paths, command.LEFTOVERS)
        if parts:
            size = decimal(sum(map(files.size, parts)))
            click.echo(f"{len(parts)} unused parts of {size} in {places.PARTS}")
        if not paths and not parts:
            click.echo("outputs/ has nothing of other names, and no unused parts")
        elif yes or confirm("remove them?"):
            command.remove([*paths, *parts])


LISTS: Final = ("models", "methods", "benchmarks", "metrics", "papers", "checkpoints")


@main.command("list", epilog=example("medprobe list methods"))
@click.argument("what", type=click.Choice(LISTS))
def list_(what: str) -> None:
    """List the available models, methods, benchmarks, metrics, papers or checkpoints.

    Only models need a project.

    \b
    WHAT  models of params.yaml, methods, builders of benchmarks, metrics, papers, or
          checkpoints of the papers: the names for `published`
    """
    from medprobe.cli.list_ import list_ as show

    show(what, load_params(required=what == "models"))


@main.command(epilog=example("medprobe plan", "medprobe plan --json"))
@json_option
def plan(*, as_json: bool) -> None:
    """List the stages that would run, with the time that each took before."""
    from medprobe.pipeline.plan import plan as run

    run(load_params(), as_json=as_json)


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
    from medprobe.pipeline.repro import repro as run

    if not (params := load_params()).has_results:
        remedy = "fill in models, benchmarks and methods; `medprobe gate` needs benchmarks alone"
        raise BadInput("params.yaml", "no method probes a model", remedy)
    is_shared = params.engine.device == "spread" or params.engine.executor != "local"
    run(jobs, share_cards=is_shared)


@main.command(epilog=example("medprobe gate", "medprobe gate --base develop"))
@click.option(
    "--base",
    default="main",
    show_default=True,
    envvar="GITHUB_BASE_REF",
    help="The branch that the change is compared with.",
)
def gate(base: str) -> None:
    """Build all benchmarks and check them and the sentence sets, without any model.

    A failed build or check does not stop the others. All failures are listed at the end.
    """
    from medprobe.pipeline.gate import gate as run

    run(load_params(), base)
