"""Stage `validate-sentences`: the gate. Nothing is rewired on a sentence set that fails it."""

import shutil
from typing import Final

import click
import pandas as pd

from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.papers.medlama.sentences import SENTENCES, read_sentences
from medprobe.papers.medlama.settings.sentence_sets import check_sentences
from medprobe.papers.medlama.settings.sweeps import check_sizes
from medprobe.pipeline.stages.validate import run_gate
from medprobe.sources.publishers import compare


def validate_sentences(name: str, params: Params) -> None:
    """Check a sentence set against `expectations/sentences/lines.json`, and as `check` does.

    Writes `outputs/validation/sentences/<name>/`, and the set to `outputs/sentences`, from where
    it is read, if no critical check fails.
    """
    path, passed = SENTENCES / f"{name}.txt", places.SENTENCES / f"{name}.txt"
    passed.unlink(missing_ok=True)
    rows = [(number, text) for number, text in enumerate(read_sentences(path), 1) if text]
    lines = pd.DataFrame(rows, columns=["line", "text"]).astype({"text": str})
    run_gate(
        name,
        places.EXPECTATIONS / "sentences",
        needed=["lines"],
        tables={"lines": lines},
        files={"lines": path},
        settings={},
        params=params,
        out=places.VALIDATION / "sentences" / name,
        published=compare(places.DATA, [path.relative_to(places.DATA).as_posix()]),
        rows={str(number): f"{path}, line {number}" for number, _ in rows},
    )
    check_sentences(name, params)
    check_sizes(name, params)
    with replacing(passed) as scratch:
        shutil.copyfile(path, scratch)


@click.command(epilog="\b\nExample:\n  medprobe validate-sentences --set set-0")
@click.option("--set", "sentence_set", required=True, help="A sentence set of params.yaml.")
def command(params: Params, sentence_set: str) -> None:
    """Check a sentence set against its expectations; rewiring requires that it passes."""
    validate_sentences(sentence_set, params)


COMMAND: Final = command
