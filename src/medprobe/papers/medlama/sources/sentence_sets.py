"""What `medprobe doctor` says of sentence sets: which there are, and what each enables."""

from pathlib import Path

from medprobe.core.params import Params
from medprobe.papers.medlama.sentences import SENTENCES


def list_uses(params: Params, data: Path) -> dict[str, list[str]]:
    """List what each sentence set enables, by its path in `data`.

    What is not in params.yaml is in parentheses.
    """
    folder = SENTENCES.name
    sets = {path.stem for path in (data / folder).glob("*.txt")}
    uses = {}
    for name in sorted({*params.sentence_sets, *sets}):
        use = f"rewiring on {name}"
        uses[f"{folder}/{name}.txt"] = [use if name in params.sentence_sets else f"({use})"]
    return uses
