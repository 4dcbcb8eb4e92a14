"""The fingerprint of a served model: what it answers to fixed openings, in place of its weights.

Batch sizes, threads and hardware move the numbers of one model in their last digits. So answers are
compared within a tolerance, and only as far as no other token nearly ties with one of them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.extensions.servers.client import Body, Client, nested, read_choice
from medprobe.extensions.servers.records import PROVE_AGAIN, PROVED

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
FINGERPRINT: Final = "fingerprint"  # its name in a record
REQUEST: Final = "Go on with this text: "  # before an opening, to a chat
ALL: Final = range(len(OPENINGS))
SOME: Final = ALL[::8]  # asked again before each stage
LENGTH: Final = 8  # tokens of an answer, and CHARACTERS of its text
CHARACTERS: Final = 32
TOP: Final = 20  # likeliest tokens kept of each place
BEST: Final = 5  # of them, which are compared
TOLERANCE: Final = 0.25  # nats, on average over an answer's tokens (decisions.md)
NEAR: Final = 0.5  # nats between the two likeliest tokens, below which either may be written
FLIPS: Final = 16  # texts that may differ where no numbers show what is nearly tied


@dataclass(frozen=True)
class Answer:
    """A greedy answer, and the log-probabilities (nats) of the likeliest tokens at each place."""

    text: str  # with the model's thoughts
    places: Sequence[dict[str, float]] = ()  # empty where the server gives none


@dataclass(frozen=True)
class Fingerprint:
    """The answers of a day, by the number of their opening."""

    day: date
    answers: dict[int, Answer]

    @classmethod
    def read(cls, content: dict[str, Any]) -> "Fingerprint":
        """Return what a record contains (see `as_json`)."""
        answers = (Answer(**answer) for answer in content["answers"])
        return cls(date.fromisoformat(content["day"]), dict(enumerate(answers)))

    @property
    def allowed(self) -> int:
        """How many answers of the same model may differ."""
        return 0 if all(answer.places for answer in self.answers.values()) else FLIPS

    def as_json(self) -> dict[str, Any]:
        """Return what a record keeps of all answers."""
        answers = [asdict(self.answers[number]) for number in ALL]
        return {"day": self.day.isoformat(), "answers": answers}


def take(client: Client, record: dict[str, Any], numbers: Sequence[int] = ALL) -> Fingerprint:
    """Ask a server to go on with openings.

    Args:
        client: The server.
        record: What it has proved: `kind`, and whether it gives log-probabilities.
        numbers: Which of the openings.

    Raises:
        BadInput: The server does not answer.
    """
    is_chat = record["kind"] == "chat"
    path = "chat/completions" if is_chat else "completions"
    options: Body = {"max_tokens": LENGTH, "temperature": 0.0}
    if record["proof"]["top_logprobs"] == PROVED:
        options |= {"logprobs": True, "top_logprobs": TOP} if is_chat else {"logprobs": TOP}
    bodies: list[Body] = []
    for number in numbers:
        opening = OPENINGS[number]
        turns = [{"role": "user", "content": REQUEST + opening}]
        bodies.append({**({"messages": turns} if is_chat else {"prompt": opening}), **options})
    answers = map(_read, client.post_all(path, bodies))
    day = datetime.fromtimestamp(client.clock(), UTC).date()
    return Fingerprint(day, dict(zip(numbers, answers, strict=True)))


def compare(old: Fingerprint, new: Fingerprint) -> int:
    """Return how many answers of `new` are not those of the model of `old`."""
    return sum(_differ(old.answers[number], answer) for number, answer in new.answers.items())


def check(client: Client, record: dict[str, Any]) -> None:
    """Ask some openings again, and all of them if an answer differs.

    Args:
        client: The server.
        record: What it has proved.

    Raises:
        BadInput: The server has another model now, or does not answer.
    """
    remedy = PROVE_AGAIN.format(client.name)
    if FINGERPRINT not in record:
        raise BadInput(f"servers.{client.name}", "its record has no fingerprint", remedy)
    old = Fingerprint.read(record[FINGERPRINT])
    for numbers in (SOME, ALL):
        count = compare(old, take(client, record, numbers))
        if not count:
            return
    if count > old.allowed:
        day = f"{old.day.day} {old.day:%B %Y}"
        problem = f"this server is not the model of {day}: {count} of {len(ALL)} answers differ"
        raise BadInput(f"servers.{client.name}", problem, remedy)


def _differ(old: Answer, new: Answer) -> bool:
    if not (old.places and new.places):
        return old.text != new.text
    gaps: list[float] = []
    for first, second in zip(old.places, new.places, strict=False):
        gaps += [*_gaps(first, second), *_gaps(second, first)]
        if min(_margin(first), _margin(second)) < NEAR:  # what follows may go on with either
            break
    return sum(gaps) / len(gaps) > TOLERANCE


def _gaps(first: dict[str, float], second: dict[str, float]) -> Iterator[float]:
    """Yield by how much log-probabilities differ; at least, where the second leaves a token out."""
    for token, log_prob in sorted(first.items(), key=lambda item: -item[1])[:BEST]:
        gap = log_prob - second.get(token, min(second.values()))
        yield abs(gap) if token in second else max(0.0, gap)


def _margin(place: dict[str, float]) -> float:
    """Return by how much the likeliest token is ahead."""
    best, *others = sorted(place.values(), reverse=True)
    return best - max(others, default=-math.inf)


def _read(answer: Body) -> Answer:
    """Read an answer of either kind; what is not there or has another shape is left out."""
    choice = nested(answer, "choices", 0)
    text = "".join(part or "" for part in read_choice(choice))
    listed = nested(choice, "logprobs", "content")
    if listed is None:
        listed = nested(choice, "logprobs", "top_logprobs")
    places = [*map(_place, listed[:LENGTH])] if isinstance(listed, list) else []
    return Answer(text[:CHARACTERS], places if all(places) else ())


def _place(listed: Any) -> dict[str, float]:
    """Return the likeliest tokens at a place; of tokens with one text the likeliest."""
    if isinstance(top := nested(listed, "top_logprobs"), list):
        pairs = [(nested(token, "token"), nested(token, "logprob")) for token in top]
    else:
        pairs = [*listed.items()] if isinstance(listed, dict) else []
    numbers = [
        (float(log_prob), token)
        for token, log_prob in pairs
        if isinstance(token, str) and isinstance(log_prob, int | float) and math.isfinite(log_prob)
    ]
    return {token: round(log_prob, 4) for log_prob, token in sorted(numbers)[-TOP:]}
