"""The stage `validate-sentences`."""

from typing import Final

import click

from medprobe.cli.group import example
from medprobe.core.stage_code import checked_code


@click.command(epilog=example("medprobe validate-sentences --set set-0"))
@click.option("--set", "sentence_set", required=True, help="A sentence set of params.yaml.")
def validate_sentences(sentence_set: str) -> None:
    """Check a sentence set against its expectations; rewiring requires that it passes."""
    from medprobe.papers.medlama.stages.validate_sentences import validate_sentences as run
    from medprobe.pipeline import check

    with checked_code("validate_sentences", benchmarks=[]):
        run(sentence_set, check.loaded())


HEADING: Final = ""
COMMAND: Final = validate_sentences
