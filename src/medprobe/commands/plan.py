"""`medprobe plan`: which stages run next, and how long they took before."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from medprobe.commands import timings
from medprobe.commands.mend import check_lock, mend
from medprobe.commands.todo import Stage, early, todo
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.progress import duration

CERTAIN: Final = "Run for certain: their code, parameters or inputs have changed."
POSSIBLE: Final = "Run only if a stage above gives something new: at most these."


class Time(NamedTuple):
    """How long a stage takes."""

    seconds: float
    measured: bool = True  # by a run of the stage itself, not by those of others


def plan(params: Params) -> None:
    """Print the stages that are left, with their times, in two groups: those that certainly run,
    and those behind them. A stage behind others runs only if what it reads changes by them."""
    after_a_kill()
    stages = todo()
    now = [name for name in early(stages) if stages[name].when == "now"]
    behind = [name for name in early(stages) if stages[name].when != "now"]
    times = {name: time_of(name, stage, params) for name, stage in stages.items()}
    width = max(map(len, stages), default=0)
    for title, names, verb in ((CERTAIN, now, "take"), (POSSIBLE, behind, "take at most")):
        if names:
            print(title)
            for name in names:
                print(line(name.ljust(width), times[name], stages[name].when))
            print(f"{summary([times[name] for name in names], verb)}\n")
    if not stages:
        print("Nothing is left to run.")


def after_a_kill() -> None:
    """Mend what a kill left half-made, unless a `medprobe repro` is running and makes it now.
    Raises BadInput where that is writing dvc.lock."""
    places.PARTS.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(places.REPRO, timeout=0):
            mend()
    except Timeout:
        check_lock()


def time_of(name: str, stage: Stage, params: Params) -> Time | None:
    """What a stage took when it last ran here. Of a probing stage that never did: what the method
    took for as many queries with this model, or else with others. None where nothing is known."""
    if (seconds := timings.read(name)) is not None:
        return Time(seconds)
    options = stage.options
    if options[""] != "probe":
        return None
    model, method, benchmark = (options[key] for key in ("model", "method", "benchmark"))
    if record := _record(places.RUNS / model / method / f"{benchmark}.json"):
        return Time(float(str(record["seconds"])))
    rates = _rates(_device(params.engine.device)) if (queries := _queries(benchmark)) else {}
    rate = rates.get((model, method)) or rates.get(("", method))
    return Time(rate * queries, measured=False) if rate else None


@cache
def _rates(device: str) -> Mapping[tuple[str, str], float]:
    """The seconds a query that probing took on this device, by model and method, and for all models
    by `("", method)`."""
    seconds: dict[tuple[str, str], float] = {}
    queries: dict[tuple[str, str], int] = {}
    for path in places.RUNS.glob("*/*/*.json"):
        method, model = path.parent.name, path.parent.parent.name
        record, size = _record(path), _queries(path.stem)
        if size and record.get("device") == device:
            for key in ((model, method), ("", method)):
                seconds[key] = seconds.get(key, 0.0) + float(str(record["seconds"]))
                queries[key] = queries.get(key, 0) + size
    return {key: seconds[key] / queries[key] for key in seconds}


def _record(path: Path) -> dict[str, object]:
    """What `tracking.lineage.recorded` wrote beside a prediction table; empty where it did not."""
    content: dict[str, object] = {}
    if path.is_file():
        content = json.loads(path.read_text(encoding="utf-8"))
    return content


@cache
def _queries(benchmark: str) -> int:
    """How many queries a benchmark has; 0 where it is not built yet."""
    path = places.BENCHMARKS / benchmark / "queries.parquet"
    return int(pq.read_metadata(path).num_rows) if path.is_file() else 0


@cache
def _device(wanted: str) -> str:
    """The name of the device that is computed on, as records have it."""
    from medprobe.engine.load import choose_device, device_name

    return device_name(choose_device(wanted))


def line(name: str, time: Time | None, when: str) -> str:
    """A stage as one line: its name, its time, and what it waits for.

    >>> line("score", Time(42.0), "after probe-xfactr@a-b")
    'score            42 s  after probe-xfactr@a-b'
    """
    clock = duration(time.seconds) if time else "unknown"
    known = clock if not time or time.measured else f"about {clock}"
    return f"{name} {known:>15}  {when if when != 'now' else ''}".rstrip()


def summary(times: Sequence[Time | None], verb: str) -> str:
    """One sentence on the stages of a group.

    >>> summary([Time(200.0), Time(100.0), None], "take")
    '3 stages; one after another they take 5 min, and 1 of unknown time'
    """
    known = [time.seconds for time in times if time]
    text = f"{len(times)} {'stage' if len(times) == 1 else 'stages'}"
    if known:
        text += f"; one after another they {verb} {duration(sum(known))}"
    if unknown := len(times) - len(known):
        text += f"{', and' if known else ';'} {unknown} of unknown time"
    return text
