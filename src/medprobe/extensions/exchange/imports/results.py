"""`medprobe import results`: what another program measured."""

from pathlib import Path
from typing import Final

import click

from medprobe.cli.group import example
from medprobe.core import places


@click.command(epilog=example("medprobe import results output/ --method likelihood"))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace existing files that differ.")
@click.option("--model", help="A name for the model.")
@click.option("--benchmark", help="The benchmark (default: from the query ids).")
@click.option("--method", help="The method to compare the results with.")
@click.option("--partial", is_flag=True, help="Of some of the queries: a subset of its own.")
def results(
    path: Path,
    *,
    force: bool,
    model: str | None,
    benchmark: str | None,
    method: str | None,
    partial: bool,
) -> None:
    """Check the results of another program, and copy them into data/.

    \b
    PATH  a folder of lm-evaluation-harness, or a table with the columns query_id, prediction
          and score
    """
    from medprobe.extensions.exchange.import_results import IMPORTED, import_results

    options = {"model": model, "benchmark": benchmark, "method": method}
    name = import_results(path, **options, force=force, partial=partial)
    click.echo(f"copied to {IMPORTED / name}; now: write")
    click.echo(f"  models: {{imported: {{{name}: {{}}}}}}")
    click.echo(f"into params.yaml, then dvc add {places.DATA}, then medprobe repro")


COMMAND: Final = results
