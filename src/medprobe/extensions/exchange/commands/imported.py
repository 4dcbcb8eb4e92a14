"""The stage `imported`."""

from typing import Final

import click

from medprobe.cli.group import example
from medprobe.cli.stages import add_options, warn_of_unanswered
from medprobe.core import places
from medprobe.core.stage_code import checked_code


@click.command(epilog=example("medprobe imported --model gpt-imported"))
@add_options("model")
def imported(model: str) -> None:
    """Compute the predictions of a model whose results were imported."""
    from medprobe.extensions.exchange.stages.imported import imported as run
    from medprobe.pipeline import check

    check.loaded()
    with checked_code("imported"):
        run(model)
    for path in sorted((places.PREDICTIONS / model).glob("*/*.parquet")):
        warn_of_unanswered(path)


HEADING: Final = ""
COMMAND: Final = imported
