"""`medprobe export-lm-eval`: a benchmark as tasks of lm-evaluation-harness."""

from pathlib import Path
from typing import Final

import click

from medprobe.cli.group import benchmarks, example

HEADING: Final = "Look at results"


@click.command(epilog=example("medprobe export-lm-eval medlama --out outputs/tasks"))
@click.argument("benchmark", shell_complete=benchmarks)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--licensed", is_flag=True, help="The licence of the benchmark allows its text in this folder."
)
def export_lm_eval(benchmark: str, out: Path, *, licensed: bool) -> None:
    """Write a benchmark as tasks of lm-evaluation-harness.

    \b
    BENCHMARK  a benchmark of params.yaml
    """
    from medprobe.extensions.exchange.lm_eval import export

    export(benchmark, out, licensed=licensed)
    click.echo(f"wrote {out}; its README.md explains how to use it")


COMMAND: Final = export_lm_eval
