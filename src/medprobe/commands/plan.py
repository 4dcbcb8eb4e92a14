"""`medprobe plan`: what is left to run, how much of it there is, and how long it will take here."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from filelock import FileLock, Timeout
from rich.filesize import decimal

from medprobe.commands.mend import check_lock, mend
from medprobe.commands.todo import early, todo
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.parts import duration

READ: Final = 2**26  # bytes of sources that are built from
PATIENCE: Final = 2.0  # seconds that a stage is tried for
ROW: Final = 15  # bytes of a prediction on disk
PAIRS: Final = 32  # of sentences in a step of rewiring that is tried
RUNS: Final = "medprobe.check, torch, transformers.models.bert.modeling_bert"  # models
STARTS: Final = {  # what the other stages import first
    "build": "medprobe.check, medprobe.stages.build, pandas",
    "validate": "medprobe.check, medprobe.quality.gate, great_expectations",
    "validate-sentences": "medprobe.check, medprobe.quality.gate, great_expectations",
    "train": f"medprobe.stages.train, {RUNS}",
    "score": "medprobe.check, medprobe.stages.score, pandas",
    "significance": "medprobe.check, medprobe.stages.significance, pandas",
    "compare": "medprobe.check, medprobe.stages.compare, matplotlib.pyplot",
}
LOGS: Final = "medprobe.stages.track, mlflow.store.tracking.sqlalchemy_store, matplotlib.pyplot"
KEPT: Final = 2  # times as long as these imports: with them, a result is kept


@dataclass
class Left:
    """What a stage has left to do; None where it cannot be told."""

    stage: str
    when: str  # now, or after a stage that may change what it reads
    parts: str = ""  # finished of all
    work: str = ""  # what a stage without models goes through
    exact: bool = True  # are texts, tokens and passes counted, or foreseen from a few queries?
    texts: int | None = None
    tokens: int | None = None
    passes: int | None = None
    checkpoints: int | None = None
    disk: int | None = None  # bytes
    memory: int | None = None  # bytes
    seconds: float | None = None
    options: dict[str, str] = field(default_factory=dict)


def plan(params: Params, measure: bool) -> None:
    """Print a line a stage that is left, and the sum. Where `measure`, models are loaded: what
    probing and rewiring will read is counted, and tried for seconds each on this device."""
    after_a_kill()
    rows = list(left())
    for row in rows:
        if measure:
            measured(row, params)
        print(shown(row), flush=True)
    print(summed(rows))
    if measure:
        keep(rows)


def after_a_kill() -> None:
    """Mend what a kill left half-made, unless a `medprobe repro` is running and makes it now.
    Raises BadInput where that is writing dvc.lock."""
    places.PARTS.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(places.REPRO, timeout=0):
            mend()
    except Timeout:
        check_lock()


def keep(rows: list[Left]) -> None:
    """Write down what memory the stages take, for `planned`."""
    with replacing(places.PLANNED) as scratch:
        taken = {row.stage: row.memory for row in rows if row.memory is not None}
        scratch.write_text(json.dumps(taken, indent=1) + "\n", encoding="utf-8")


def planned(stage: str) -> int | None:
    """The bytes that a stage takes, as it was last planned; None where it was not."""
    try:
        taken = json.loads(places.PLANNED.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    memory: int | None = taken.get(stage)
    return memory


def left() -> Iterator[Left]:
    """The stages that DVC would run, as `medprobe repro` takes them up."""
    stages = todo()
    for name in early(stages):
        yield Left(name, stages[name].when, options=stages[name].options)


def measured(row: Left, params: Params) -> None:
    """Fill in what can be told of a stage whose inputs are there."""
    stages = {"probe": _probing, "rewire": _rewiring, "build": _building, "track": _tracking}
    tried = stages.get(row.options[""], _watching)
    try:
        tried(row, params)
    except (BadInput, OSError, EOFError):  # what it reads is not made yet, or not by its head alone
        row.when = row.when if row.when != "now" else "inputs are not made yet"


def _watching(row: Left, params: Params) -> None:
    """A stage that tells how far it is: it runs for some seconds, and is stopped before it writes
    to its place."""
    from medprobe.commands import trial
    from medprobe.stages.compare import compare
    from medprobe.stages.score import score
    from medprobe.stages.significance import significance
    from medprobe.stages.train import train
    from medprobe.stages.validate import validate, validate_sentences

    one, stage = row.options, row.options[""]
    model = one.get("model") or row.stage.partition("@")[2]
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        runs: dict[str, Callable[[], None]] = {
            "train": lambda: train(model, params, out),
            "validate": lambda: validate(one["benchmark"], params, out),
            "validate-sentences": lambda: validate_sentences(one["set"], params, out),
            "score": lambda: score(params),
            "significance": lambda: significance(params, out),
            "compare": lambda: compare(params, out),
        }
        if stage not in runs:
            return
        took, now = trial.watched(runs[stage], PATIENCE)
    if now and now.total is not None:
        row.work = f"{now.total - (now.first or 0):,} {now.unit}"
        row.seconds = starting(STARTS[stage]) + took


def _building(row: Left, params: Params) -> None:
    from medprobe import benchmarks
    from medprobe.commands import trial
    from medprobe.core.params import section
    from medprobe.core.statistics import statistics

    name = row.options["benchmark"]
    builder = params.builder(name)
    benchmark = benchmarks.find(builder)
    settings = section(benchmark.settings, params.benchmarks[builder][name], name)
    sources = [places.DATA / source for source in benchmark.metadata.sources]
    size = sum(file.stat().st_size for source in sources for file in trial.below(source))
    row.work = f"{decimal(size)} of sources"
    with trial.heads(places.DATA, sources, READ) as (data, share):
        begin = time.perf_counter()
        tables = benchmark.build(data, settings, params.seed)
        statistics(tables)
        took = time.perf_counter() - begin
    row.work += f", {len(tables.queries):,} queries" if share == 1.0 else ""
    row.seconds = starting(STARTS["build"]) + took / share


def _tracking(row: Left, params: Params) -> None:
    """Results of single models that `outputs/tracked.json` does not name yet; what MLflow takes to
    keep them is not foreseen."""
    from medprobe.metrics.results import prediction_tables
    from medprobe.stages.track import TRACKED
    from medprobe.tracking import runs

    every = [runs.of(one, params, fresh=False) for one in prediction_tables(places.PREDICTIONS)]
    known = json.loads(TRACKED.read_text(encoding="utf-8")) if TRACKED.is_file() else {}
    new = [one for one in every if known.get(one.name) != one.key]
    row.work = f"{len(new)} of {len(every)} results"
    begin, done = time.perf_counter(), 0
    while done < len(new) and time.perf_counter() - begin < PATIENCE:
        new[done].content()
        done += 1
    took = (time.perf_counter() - begin) / max(done, 1) * len(new)
    row.seconds = starting(LOGS) + took


def _probing(row: Left, params: Params) -> None:
    import psutil

    from medprobe import methods
    from medprobe.commands import trial
    from medprobe.engine.inspection import read_config
    from medprobe.engine.load import device_of, token_budget
    from medprobe.stages.probe import ready

    one = row.options
    folder = places.MODELS / one["model"]
    device = device_of(params.engine.device)
    budget = params.engine.token_budget or token_budget(device, read_config(folder))
    begin = time.perf_counter()
    probing = ready(one["model"], one["method"], one["benchmark"], params)
    prober, jobs = probing.prober, trial.jobs(probing)
    loading = time.perf_counter() - begin
    ahead = [job for job in jobs if not job.path.is_file()]
    row.parts = f"{len(jobs) - len(ahead)} of {len(jobs)}"
    row.checkpoints = len({str(path) for job in ahead for path in prober.inputs(job.pass_)})
    row.disk = ROW * methods.K * sum(len(job.task.queries) for job in jobs)
    lengths = [prober.reads(job.task, job.pass_) for job in ahead]
    took, read = trial.foreseen(prober, ahead, lengths, PATIENCE)
    row.exact = all(one is not None for one in lengths)
    for some in lengths if row.exact else ():
        read.add(some or [], budget)
    row.texts, row.tokens, row.passes = read.texts, read.tokens, read.passes
    start = starting(f"medprobe.stages.probe, medprobe.methods.{one['method']}, {RUNS}")
    row.seconds = start + KEPT * starting(LOGS) + loading + took
    row.memory = psutil.Process().memory_info().rss


def _rewiring(row: Left, params: Params) -> None:
    import psutil
    import torch

    from medprobe.engine.gradients import add_gradients, tokens_held
    from medprobe.engine.rewiring import info_nce, steps_read
    from medprobe.stages.rewire import drawn_from, ready, settings_of

    one = row.options
    swept = (one["sweep"], one["value"]) if "sweep" in one else None
    settings = settings_of(one["set"], params, swept)
    sentences = places.SENTENCES / f"{one['set']}.txt"
    folder = places.MODELS / one["model"]
    begin = time.perf_counter()
    drawn = drawn_from(params.seed, sentences)
    model, pairs = ready(folder, sentences, settings, params.engine, drawn)
    steps = steps_read(model, pairs, settings, drawn)
    loading = time.perf_counter() - begin
    row.texts = sum(map(len, steps))
    row.tokens = sum(len(text) for texts in steps for text in texts)
    row.passes = len(steps)
    row.checkpoints = -(-settings.steps // settings.checkpoint_every)
    row.disk = row.checkpoints * _size(folder)
    network = model.model.train()
    tried = [*steps[0][:PAIRS], *steps[0][len(steps[0]) // 2 :][:PAIRS]]
    held = tokens_held(model, max(tried, key=len))
    adam = torch.optim.AdamW(network.parameters(), lr=0.0, weight_decay=0.0, fused=True)
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        adam.zero_grad()
        add_gradients(model, tried, partial(info_nce, temperature=settings.temperature), held)
        adam.step()
        took.append(time.perf_counter() - begin)
    per_token = min(took) / sum(map(len, tried))
    row.seconds = starting(f"medprobe.stages.rewire, {RUNS}") + loading + per_token * row.tokens
    row.memory = psutil.Process().memory_info().rss


@cache
def starting(modules: str) -> float:
    """The seconds that a process with these modules takes to start."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
    return time.perf_counter() - begin


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def shown(row: Left) -> str:
    """A stage as one line: its name, its time, and all that is known of it.

    >>> shown(Left("rewire@a-b", "now", texts=384, seconds=42))
    'rewire@a-b                                     42 s  384 texts'
    """
    known = [row.when] if row.when != "now" else []
    known += [f"{row.parts} parts done"] if row.parts else []
    known += [row.work] if row.work else []
    for name in ("texts", "tokens", "passes", "checkpoints"):
        if (count := getattr(row, name)) is not None:
            foreseen = "" if row.exact or name == "checkpoints" else "about "
            known.append(f"{foreseen}{count:,} {name}")
    known += [f"{decimal(row.disk)} on disk"] if row.disk is not None else []
    known += [f"{decimal(row.memory)} of memory"] if row.memory is not None else []
    clock = "" if row.seconds is None else duration(row.seconds)
    return f"{row.stage:<40} {clock:>10}  {', '.join(known)}".rstrip()


def summed(rows: list[Left]) -> str:
    """One sentence on all of them."""
    known = [row.seconds for row in rows if row.seconds is not None]
    text = f"{len(rows)} stages are left"
    if known:
        text += (
            f"; {len(known)} of them take {duration(sum(known))}, one after another on this device"
        )
    return text
