"""The stage `prove`."""

from typing import Final

import click

from medprobe.cli.group import example
from medprobe.cli.stages import model_option
from medprobe.core import places
from medprobe.core.stage_code import checked_code


@click.command(epilog=example("medprobe prove --model llama"))
@model_option
def prove(model: str) -> None:
    """Ask the server of a model what it can do, before it is probed."""
    from medprobe.extensions.servers.stages.prove import prove as run
    from medprobe.pipeline import check

    with checked_code("prove"):
        run(model, check.loaded(), places.MODELS / model)


HEADING: Final = ""
COMMAND: Final = prove
