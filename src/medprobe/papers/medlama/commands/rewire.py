"""The stage `rewire`."""

from typing import Final

import click

from medprobe.cli.group import example
from medprobe.cli.stages import add_options, open_executor
from medprobe.core.errors import BadInput
from medprobe.core.stage_code import checked_code


@click.command(epilog=example("medprobe rewire --model taught --set set-0"))
@add_options("model")
@click.option("--set", "sentence_set", required=True, help="A sentence set of params.yaml.")
@click.option("--sweep", metavar="SETTING", help="A setting to sweep; needs --value.")
@click.option("--value", help="The value of the swept setting.")
def rewire(model: str, sentence_set: str, sweep: str | None, value: str | None) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step)."""
    if (sweep is None) != (value is None):
        raise BadInput("rewire", "--sweep and --value go together", "give both or neither")
    from medprobe.papers.medlama.stages.rewire import rewire as run
    from medprobe.pipeline import check

    params, swept = check.loaded(), (sweep, value) if sweep and value else None
    with checked_code("rewire"), open_executor(params.engine) as executor:
        run(model, sentence_set, params, swept, executor)


HEADING: Final = ""
COMMAND: Final = rewire
