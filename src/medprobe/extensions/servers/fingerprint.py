"""The record of a served model, and its fingerprint: what it answers, in place of its weights.

Batch sizes, threads and hardware move numbers in their last digits, and a greedy answer turns where
two tokens nearly tie. So some answers of the same model may differ, and most of another's do.
"""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from operator import ne
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.core.params import ModelKind
from medprobe.extensions.servers.client import Body, Client, nested, read_choice

RECORD: Final = "server.json"  # in a model's folder: it stands for the checkpoint
SETTINGS: Final = "settings.json"  # next to it: settings on which results depend, not their parts
FINGERPRINT: Final = "fingerprint"  # in a record
FETCH_AGAIN: Final = "run `dvc repro --force --single-item fetch-server@{}`, then `medprobe repro`"
OPENINGS: Final = (
    "The old lighthouse stood",
    "On Monday the baker found",
    "A train to the coast leaves",
    "My grandmother kept her buttons in",
    "Seven ships sailed from",
    "The capital of the smallest country is",
    "When the bell rang, the children",
    "To make a paper kite you need",
    "Two and two are four, three and five are",
    "The letter began with the words",
    "In the year 1912 a man from",
    "def add(first, second):",
    "The opposite of a narrow road is",
    "Once the snow had melted,",
    "The shortest poem about rain goes",
    "Red, yellow, green,",
    "He opened the wooden box and saw",
    "The orchestra stopped because",
    "A good name for a grey cat is",
    "The river flows from the hills to",
    "Dear neighbour, thank you for",
    "The museum closes on",
    "If all keys are lost, then",
    "Le petit garçon regarde",
    "Der Zug nach Norden",
    "The chess player moved her",
    "Tomorrow the weather will be",
    "A list of tools in the shed:",
    "The captain said quietly:",
    "From the window one could see",
    "The word for bread in Spanish is",
    "After the concert they walked",
)
REQUEST: Final = "Go on with this text: "  # before an opening, to a chat
LENGTH: Final = 8  # tokens of an answer, and CHARACTERS of its text
CHARACTERS: Final = 32
FLIPS: Final = len(OPENINGS) // 2  # answers of the same model that may differ (decisions.md)


def read_record(folder: Path) -> dict[str, Any]:
    """Return what is known of a served model."""
    try:
        content: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise BadInput(folder / RECORD, "missing or cut", "run `medprobe repro`") from None
    return content


@dataclass(frozen=True)
class Fingerprint:
    """The greedy answers of a day, with the model's thoughts, in the order of the openings."""

    day: date
    answers: list[str]

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Fingerprint":
        """Return that of a record."""
        day, answers = (nested(record, FINGERPRINT, key) for key in ("day", "answers"))
        if not isinstance(answers, list) or not all(isinstance(text, str) for text in answers):
            remedy = FETCH_AGAIN.format(record.get("name"))
            raise BadInput(f"servers.{record.get('name')}", "its record has no fingerprint", remedy)
        return cls(date.fromisoformat(day), answers)

    def as_json(self) -> dict[str, Any]:
        """Return what a record keeps."""
        return {"day": self.day.isoformat(), "answers": self.answers}


def take(client: Client, kind: ModelKind) -> Fingerprint:
    """Ask a server to go on with all openings."""
    is_chat = kind == "chat"
    bodies: list[Body] = []
    for opening in OPENINGS:
        turns = [{"role": "user", "content": REQUEST + opening}]
        asked: Body = {"messages": turns} if is_chat else {"prompt": opening}
        bodies.append({**asked, "max_tokens": LENGTH, "temperature": 0.0})
    answers = client.post_all("chat/completions" if is_chat else "completions", bodies)
    choices = (read_choice(nested(answer, "choices", 0)) for answer in answers)
    texts = ["".join(part or "" for part in choice)[:CHARACTERS] for choice in choices]
    day = datetime.fromtimestamp(client.clock(), UTC).date()
    return Fingerprint(day, texts)


def count_differing(old: Fingerprint, new: Fingerprint) -> int:
    """Return how many answers of `new` are not those of `old`."""
    return sum(map(ne, old.answers, new.answers))


def is_same(old: Fingerprint, new: Fingerprint) -> bool:
    """Return whether two fingerprints are of one model."""
    return count_differing(old, new) <= FLIPS


def check_answers(client: Client, record: dict[str, Any]) -> None:
    """Ask all openings again."""
    old = Fingerprint.read(record)
    if (count := count_differing(old, take(client, record["kind"]))) > FLIPS:
        day = f"{old.day.day} {old.day:%B %Y}"
        problem = f"this server is not the model of {day}: {count} of {len(OPENINGS)} answers"
        raise BadInput(
            f"servers.{client.name}", f"{problem} differ", FETCH_AGAIN.format(client.name)
        )
