"""`medprobe annotate`: sheets for experts."""

from typing import Final

import click

from medprobe.cli import group
from medprobe.cli.group import example
from medprobe.core import places

HEADING: Final = "Bring data"


@click.command(
    epilog=example(
        "medprobe annotate predictions medlama round-1 --rater ana --rater ben \\",
        "  --system taught contrastive",
        "medprobe annotate prompts lipid round-1 --rater ana --rater ben",
    )
)
@click.argument("kind", type=click.Choice(["predictions", "prompts"]))
@click.argument("benchmark", shell_complete=group.benchmarks)
@click.argument("name")
@click.option(
    "--rater", "raters", multiple=True, required=True, help="A rater's name; repeat the option."
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    nargs=2,
    metavar="MODEL METHOD",
    help="Whose predictions to rate; repeat the option.",
)
@click.option(
    "--queries",
    type=click.IntRange(1),
    help="Number of items (default: 15 queries or 200 prompts).",
)
def annotate(
    kind: str,
    benchmark: str,
    name: str,
    *,
    raters: tuple[str, ...],
    systems: tuple[tuple[str, str], ...],
    queries: int | None,
) -> None:
    """Draw a sample of predictions or prompts, and write one sheet (CSV) per rater.

    \b
    BENCHMARK  a benchmark of params.yaml
    NAME       the sheets go to data/annotations/NAME
    """
    from medprobe.papers.medlama import annotation as command

    params = group.load_params()
    params.builder(benchmark)
    tables = [command.table_of(system, benchmark, places.PREDICTIONS) for system in systems]
    folder = places.BENCHMARKS / benchmark
    items = command.draw(kind, folder, tables, queries, params.seed)
    target = command.write(items, name, raters, places.DATA)
    click.echo(f"{target}: give each rater their sheet, and put it back when it is filled in")


COMMAND: Final = annotate
