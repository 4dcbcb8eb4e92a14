"""The commands that ask a model at once, and those that show, compare and share results."""

from pathlib import Path

import click

from medprobe.cli.group import main
from medprobe.core import places


@main.command()
@click.argument("model")
@click.option("--benchmark", required=True, help="A name of params.yaml, or a file of facts.")
@click.option("--method", required=True, help="How to ask; `medprobe list methods` names them.")
@click.option(
    "--prompts", type=click.Path(path_type=Path), help="The templates of a file of facts."
)
@click.option("--limit", type=click.IntRange(1), help="Queries at most, drawn by the seed.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Keep the predictions: a parquet file."
)
def run(
    model: str,
    benchmark: str,
    method: str,
    *,
    prompts: Path | None,
    limit: int | None,
    out: Path | None,
) -> None:
    """Probe a MODEL, by name or folder, at once: without DVC, and nothing is recorded. A folder and
    a file of facts need no project."""
    from medprobe import check
    from medprobe.commands.ask import run as now
    from medprobe.core.params import Params

    alone = Path(model).is_dir() and Path(benchmark).is_file() and not check.PARAMS.is_file()
    params = Params() if alone else check.loaded()
    now(model, method, benchmark, params, prompts=prompts, limit=limit, out=out)


@main.command()
@click.argument("model")
@click.argument("prompt")
@click.option("--method", help="Else contrastive, or likelihood where the model writes.")
@click.option("--benchmark", default="medlama", show_default=True, help="Whose candidates to rank.")
def ask(model: str, prompt: str, method: str | None, benchmark: str) -> None:
    """Show a model's ten best answers to a PROMPT with a slot [Y]."""
    from medprobe import check
    from medprobe.commands.ask import ask as run

    run(model, prompt, method, benchmark, check.loaded())


@main.command()
@click.argument("benchmark")
@click.argument("query")
def show(benchmark: str, query: str) -> None:
    """Show what every model answered to a QUERY of a BENCHMARK, under every method."""
    from medprobe import check
    from medprobe.commands.show import show as run

    run(benchmark, query, check.loaded())


@main.command()
@click.argument("benchmark")
@click.argument("a")
@click.argument("b")
def diff(benchmark: str, a: str, b: str) -> None:
    """Show which queries of a BENCHMARK one of A and B, each MODEL/METHOD, gets right and the other
    does not."""
    from medprobe import check
    from medprobe.commands.show import diff as run

    run(benchmark, a, b, check.loaded())


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
@click.argument("view")
@click.argument("benchmark", required=False)
@click.option("--format", "form", type=click.Choice(["latex", "markdown", "csv"]))
@click.option("--metric", help="As reports/comparison.csv names it; else the main one.")
@click.option("--project", default=".", type=click.Path(path_type=Path), show_default=True)
@click.option(
    "--to", "tool", type=click.Choice(["lm-eval"]), help="The tool that a benchmark is for."
)
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for a benchmark.")
@click.option("--licensed", is_flag=True, help="The benchmark's text may be in that folder.")
def export(
    view: str,
    benchmark: str | None,
    form: str | None,
    metric: str | None,
    project: Path,
    *,
    tool: str | None,
    out: Path | None,
    licensed: bool,
) -> None:
    """Print a VIEW of the results as a table for a paper: leaderboard, a benchmark, or
    BENCHMARK/SUBSET. Or, as `export benchmark NAME --to lm-eval --out DIR`, write a benchmark for
    lm-evaluation-harness.

    The best of each column is bold; a mark says which are significantly worse.
    """
    if benchmark is not None:
        from medprobe.commands import exports

        if view != "benchmark" or not tool or not out:
            raise click.UsageError("expected: export benchmark NAME --to TOOL --out DIR")
        exports.export(benchmark, tool, out, licensed=licensed)
        click.echo(f"{out}: its README.md says how it is used")
        return
    from medprobe.commands.export import export as text
    from medprobe.library.project import results

    if not form:
        raise click.UsageError("expected: export VIEW --format latex, markdown or csv")
    click.echo(text(results(project), view, form, metric), nl=False)


@main.command()
@click.option("--since", default="HEAD", show_default=True, help="A commit, branch or tag.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="How far a number may move, as a share of itself; a headline also by one answer.",
)
@click.option(
    "--allow",
    type=click.FloatRange(0, 1),
    default=0.005,
    show_default=True,
    help="The share of the numbers that may move further; of the headlines none may.",
)
@click.pass_context
def moved(ctx: click.Context, since: str, tolerance: float, allow: float) -> None:
    """Say how far the recorded numbers are from those of a commit.

    Exits with 1 where a headline moved too far, or more of all numbers than are allowed.
    """
    from medprobe.commands.moved import moved as compared

    headlines, numbers = compared(since, tolerance)
    click.echo(f"{headlines}\n{numbers}")
    ctx.exit(int(headlines.moved > 0 or numbers.moved > allow * numbers.numbers))


@main.command()
@click.argument("names", nargs=-1, required=True)
def cite(names: tuple[str, ...]) -> None:
    """Print what to cite for benchmarks, methods and models as BibTeX."""
    from medprobe import check
    from medprobe.commands.cite import cite as text
    from medprobe.core.params import Params

    click.echo(text(names, check.loaded() if check.PARAMS.is_file() else Params()), nl=False)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
def merge(paths: tuple[Path, ...], out: Path) -> None:
    """Bring the results of several projects or results files, PATHS, into one comparison.

    Of one project alone it writes the results file that others can check.
    """
    from medprobe.commands.merge import merge as run

    if untested := run(paths, out):
        few = f"{', '.join(untested[:3])}{', …' if untested[3:] else ''}"
        click.echo(f"no paired tests of {few}: neither predictions nor units came with them")
    click.echo(f"{out}: `medprobe export leaderboard --format markdown --project {out}` shows it")


@main.command()
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535))
def ui(port: int) -> None:
    """Bring all results into MLflow, print the addresses of their runs, and serve its pages, unless
    a server does (MLFLOW_TRACKING_URI)."""
    from medprobe import check
    from medprobe.stages import track as stage
    from medprobe.tracking import pages, store

    stage.track(check.loaded())
    client = store.connect()
    remote = client.tracking_uri.startswith("http")
    server = client.tracking_uri if remote else f"http://127.0.0.1:{port}"
    for name, address in pages.addresses(client, server).items():
        click.echo(f"{name}: {address}")
    if not remote:
        pages.serve(client, port)
