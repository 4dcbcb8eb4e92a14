"""The stage `rewire`."""

from typing import Final

import click

from medprobe.cli.group import example
from medprobe.cli.stages import add_options, open_executor
from medprobe.core.errors import BadInput
from medprobe.core.stage_code import checked_code
from medprobe.papers.medlama.checkpoints import make_folder


@click.command(epilog=example("medprobe rewire --model taught --set set-0"))
@add_options("model")
@click.option("--set", "sentence_set", help="A sentence set of params.yaml (default: none).")
@click.option("--sweep", metavar="SETTING", help="A setting to sweep; needs --value.")
@click.option("--value", help="The value of the swept setting.")
def rewire(model: str, sentence_set: str | None, sweep: str | None, value: str | None) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step).

    Without a set, make the folder of the model's rewired checkpoints.
    """
    if (sweep is None) != (value is None) or (sweep and not sentence_set):
        problem = "--sweep and --value go together, and with --set"
        raise BadInput("rewire", problem, "give all of them, or --set alone")
    from medprobe.pipeline import check

    params, swept = check.loaded(), (sweep, value) if sweep and value else None
    if sentence_set is None:
        params.models.kind(model)  # raises BadInput for an unknown one
        return make_folder(model)
    from medprobe.papers.medlama.stages.rewire import rewire as run

    with checked_code("rewire"), open_executor(params.engine) as executor:
        run(model, sentence_set, params, swept, executor)


HEADING: Final = ""
COMMAND: Final = rewire
