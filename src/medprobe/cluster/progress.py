"""How far all stages are that use the cluster: each writes down its own share, and whoever wants to
know adds them up."""

import json
from pathlib import Path
from typing import Final, NamedTuple

from medprobe.core import places
from medprobe.core.files import replacing

FOLDER: Final = places.PARTS / "progress"  # a file for each stage


class Progress(NamedTuple):
    """What is done, of how much, and by how many workers."""

    done: int = 0  # jobs
    of: int = 0
    workers: int = 0
    seconds: float = 0.0  # at jobs
    held: float = 0.0  # that workers were there
    tokens: int = 0

    def __str__(self) -> str:
        busy = self.seconds / max(self.held, 1e-9)
        return (
            f"{self.done} of {self.of} parts by {self.workers} workers:"
            f" {self.seconds:.0f} s, {self.tokens} tokens, busy {busy:.0%}"
        )


def tell(stage: str, progress: Progress, folder: Path = FOLDER) -> None:
    """Write down how far a stage is."""
    with replacing(folder / f"{stage}.json") as scratch:
        scratch.write_text(json.dumps(progress), encoding="utf-8")


def whole(folder: Path = FOLDER) -> Progress:
    """How far all are together.

    >>> str(whole(Path("nowhere")))
    '0 of 0 parts by 0 workers: 0 s, 0 tokens, busy 0%'
    """
    told = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("[!.]*.json")]
    return Progress(*(sum(one) for one in zip(*told, strict=True)))
