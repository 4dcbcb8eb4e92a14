"""`medprobe plan`: the stages that run next, and how long they took before."""

from collections.abc import Sequence
from typing import Final

from medprobe.backends import read_plugin_model
from medprobe.core import places
from medprobe.core.errors import NotAsked
from medprobe.core.params import Params
from medprobe.core.progress import duration
from medprobe.pipeline import timings
from medprobe.pipeline.clean import repair
from medprobe.pipeline.outputs import to_json
from medprobe.pipeline.stale_stages import Stage, find_stale_stages, order_by_first_result

CERTAIN: Final = "These stages run; `dvc status` says what has changed."
POSSIBLE: Final = "These stages run only if a stage above changes their inputs."


def plan(params: Params, *, as_json: bool = False) -> None:
    """Print the stages to run, with the times of their last runs here, in two groups.

    Stages of the first group run in any case. Stages of the second run only if a stage before them
    changes their inputs.
    """
    repair()
    stages = find_stale_stages()
    order = order_by_first_result(stages)
    certain = [name for name in order if stages[name].reason == "now"]
    possible = [name for name in order if stages[name].reason != "now"]
    times = {name: timings.read_seconds(name) for name in stages}
    if as_json:
        rows = [
            {
                "stage": name,
                "after": stages[name].reason.removeprefix("after ") if name in possible else None,
                "seconds": times[name],
            }
            for name in [*certain, *possible]
        ]
        print(to_json({"stages": rows}))
        return
    width = max(map(len, stages), default=0)
    groups = ((CERTAIN, certain, "take"), (POSSIBLE, possible, "take at most"))
    for title, names, verb in groups:
        if names:
            print(title)
            for name in names:
                after = stages[name].reason.removeprefix("now")
                notes = [note for note in (after, requests(stages[name], params)) if note]
                print(format_line(name.ljust(width), times[name], notes))
            print(summary([times[name] for name in names], verb), end="\n\n")
    if not stages:
        print("All stages are up to date.")


def requests(stage: Stage, params: Params) -> str:
    """Say how many requests a stage sends to a server; empty if it sends none, or none yet."""
    from medprobe.pipeline.probing import prepare

    options = stage.options
    if options[""] != "probe":
        return ""
    model = options["model"]
    described = read_plugin_model(places.MODELS / model)
    if not (described and described.remote):
        return ""
    results = [pair for pair in params.results(model) if (places.BENCHMARKS / pair[1]).is_dir()]
    if not results:
        return ""
    count, reasons = 0, dict[str, None]()
    for method, benchmark in results:
        try:
            count += prepare(model, method, benchmark, params).count_requests()
        except NotAsked as error:
            reasons[f"not asked: {error}"] = None
    return "; ".join([f"{count:,} requests", *reasons])


def format_line(name: str, seconds: float | None, notes: Sequence[str]) -> str:
    """Format a stage as one line: its name, its time, and the stage that it waits for.

    >>> format_line("score", 42.0, ["after probe-masked@bert"])
    'score       42 s  after probe-masked@bert'
    """
    clock = "unknown" if seconds is None else duration(seconds)
    return f"{name} {clock:>10}  {'; '.join(notes)}".rstrip()


def summary(times: Sequence[float | None], verb: str) -> str:
    """Summarise the stages of a group.

    >>> summary([200.0, 100.0, None], "take")
    '3 stages; one after another they take 5 min, and 1 of unknown time'
    """
    seconds = [time for time in times if time is not None]
    text = f"{len(times)} {'stage' if len(times) == 1 else 'stages'}"
    if seconds:
        text += f"; one after another they {verb} {duration(sum(seconds))}"
    if unknown := len(times) - len(seconds):
        text += f"{', and' if seconds else ';'} {unknown} of unknown time"
    return text
