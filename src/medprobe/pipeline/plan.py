"""`medprobe plan`: the stages that run next, and how long they took before."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from medprobe.core import places
from medprobe.core.errors import NotAsked
from medprobe.core.params import Params
from medprobe.core.progress import duration
from medprobe.pipeline import outputs, timings
from medprobe.pipeline.repair import check_lock, repair
from medprobe.pipeline.stale_stages import Stage, find_stale_stages, order_by_first_result

CERTAIN: Final = "These stages run: their code, parameters or inputs have changed."
POSSIBLE: Final = "These stages run only if a stage above changes their inputs."


class Time(NamedTuple):
    """How long a stage takes."""

    seconds: float
    measured: bool = True  # in a run of the stage itself, not in runs of others
    note: str = ""


def plan(params: Params, *, as_json: bool = False) -> None:
    """Print the stages to run, with their times, in two groups.

    Stages of the first group run in any case. Stages of the second run only if a stage before them
    changes their inputs.
    """
    repair_unless_running()
    stages = find_stale_stages()
    order = order_by_first_result(stages)
    certain = [name for name in order if stages[name].reason == "now"]
    possible = [name for name in order if stages[name].reason != "now"]
    times = {name: estimate_time(name, stage, params) for name, stage in stages.items()}
    if as_json:
        rows = [_output(name, stages[name].reason, times[name]) for name in [*certain, *possible]]
        outputs.Plan(stages=rows).print()
        return
    width = max(map(len, stages), default=0)
    groups = ((CERTAIN, certain, "take"), (POSSIBLE, possible, "take at most"))
    for title, names, verb in groups:
        if names:
            print(title)
            for name in names:
                print(format_line(name.ljust(width), times[name], stages[name].reason))
            print(summary([times[name] for name in names], verb))
            for benchmark in sorted({stages[name].options.get("benchmark", "") for name in names}):
                if size := _queries(benchmark, families=True):
                    total = _queries(benchmark)
                    print(f"{size:,} of the {total:,} queries of {benchmark} are of families.")
            print()
    if not stages:
        print("All stages are up to date.")


def _output(name: str, reason: str, time: Time | None) -> outputs.PlannedStage:
    return outputs.PlannedStage(
        stage=name,
        after=None if reason == "now" else reason.removeprefix("after "),
        seconds=time.seconds if time else None,
        measured=time.measured if time else None,
    )


def repair_unless_running() -> None:
    """Repair what a killed process left, unless a `medprobe repro` is running.

    Raises:
        BadInput: if dvc.lock is incomplete.
    """
    places.PARTS.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(places.REPRO, timeout=0):
            repair()
    except Timeout:
        check_lock()


def estimate_time(name: str, stage: Stage, params: Params) -> Time | None:
    """Estimate how long a stage takes.

    Returns:
        The time of its last run here. For a probing stage that never ran, the method's time per
        query with this model, otherwise with all models, times the queries. None without any run.
        For a model behind a server, the requests that are left, at the rates of its proof.
    """
    options = stage.options
    if options[""] == "probe" and options["model"] in params.servers:
        return _time_of_requests(options["model"], options["method"], options["benchmark"], params)
    if (seconds := timings.read_seconds(name)) is not None:
        return Time(seconds)
    if options[""] != "probe":
        return None
    model, method, benchmark = (options[key] for key in ("model", "method", "benchmark"))
    if record := _record(places.RUNS / model / method / f"{benchmark}.json"):
        return Time(record["seconds"])
    rates = _rates(_device(params.engine.device)) if (queries := _queries(benchmark)) else {}
    rate = rates.get((model, method)) or rates.get(("", method))
    return Time(rate * queries, measured=False) if rate else None


def _time_of_requests(model: str, method: str, benchmark: str, params: Params) -> Time | None:
    """The time of the requests to a server that are left; None before its proof."""
    from medprobe.pipeline.stages.probe import estimate_seconds, open_probing

    if not (places.MODELS / model).is_dir() or not (places.BENCHMARKS / benchmark).is_dir():
        return None
    try:
        seconds = estimate_seconds(open_probing(model, method, benchmark, params))
    except NotAsked as error:
        return Time(0.0, measured=False, note=f"not asked: {error}")
    hours = params.servers[model].hours
    note = f"refused, hours: {hours:g} is allowed" if seconds > 3600 * hours else ""
    return Time(seconds, measured=False, note=note)


@cache
def _rates(device: str) -> Mapping[tuple[str, str], float]:
    """Return the seconds per query of probing on this device, by model and method.

    `("", method)` stands for all models.
    """
    seconds: dict[tuple[str, str], float] = {}
    queries: dict[tuple[str, str], int] = {}
    for path in places.RUNS.glob("*/*/*.json"):
        method, model = path.parent.name, path.parent.parent.name
        record, size = _record(path), _queries(path.stem)
        if size and record.get("device") == device and "not_asked" not in record:
            for key in ((model, method), ("", method)):
                seconds[key] = seconds.get(key, 0.0) + record["seconds"]
                queries[key] = queries.get(key, 0) + size
    return {key: seconds[key] / queries[key] for key in seconds}


def _record(path: Path) -> dict[str, Any]:
    """Read the record that `tracking.lineage.recorded` wrote; empty if it does not exist."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


@cache
def _queries(benchmark: str, *, families: bool = False) -> int:
    """The number of queries of a benchmark, or of those of families; 0 before it is built."""
    path = places.BENCHMARKS / benchmark / "queries.parquet"
    if not path.is_file():
        return 0
    if not families:
        return int(pq.read_metadata(path).num_rows)
    if "family_id" not in pq.read_schema(path).names:
        return 0
    ids = pq.read_table(path, columns=["family_id"])["family_id"].to_pylist()
    return sum(bool(name) for name in ids)


@cache
def _device(setting: str) -> str:
    """The name of the device in the records of runs."""
    from medprobe.engine.load import choose_device, device_name

    return device_name(choose_device(setting))


def format_line(name: str, time: Time | None, reason: str) -> str:
    """Format a stage as one line: its name, its time, and the stage that it waits for.

    >>> format_line("score", Time(42.0), "after probe-xfactr@a-b")
    'score            42 s  after probe-xfactr@a-b'
    """
    clock = duration(time.seconds) if time else "unknown"
    estimate = clock if not time or time.measured else f"about {clock}"
    notes = [reason if reason != "now" else "", time.note if time else ""]
    return f"{name} {estimate:>15}  {'; '.join(filter(None, notes))}".rstrip()


def summary(times: Sequence[Time | None], verb: str) -> str:
    """Summarise the stages of a group.

    >>> summary([Time(200.0), Time(100.0), None], "take")
    '3 stages; one after another they take 5 min, and 1 of unknown time'
    """
    seconds = [time.seconds for time in times if time]
    text = f"{len(times)} {'stage' if len(times) == 1 else 'stages'}"
    if seconds:
        text += f"; one after another they {verb} {duration(sum(seconds))}"
    if unknown := len(times) - len(seconds):
        text += f"{', and' if seconds else ';'} {unknown} of unknown time"
    return text
