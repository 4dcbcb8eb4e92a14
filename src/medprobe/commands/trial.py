"""What models read and how long work takes: counted, and measured on a little of it."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pandas as pd
import torch
import transformers
from torch.nn.modules import module

from medprobe.core.errors import BadInput
from medprobe.core.parts import Pace, watching
from medprobe.engine.batching import batches
from medprobe.methods import Method, Task
from medprobe.stages.probe import Probing

WARM: Final = 4  # queries that are not timed
SLICE: Final = 16  # queries that are timed first; twice as many next
FIRST: Final = 1 / 64  # share of what is trained on that is tried first
GROWTH: Final = 4  # times as much is tried next
NAMES: Final = 256  # candidates that a few queries are given where tokens are what is counted


class Job(NamedTuple):
    """A pass of a task, and where its table is kept."""

    pass_: str
    task: Task
    path: Path


def jobs(probing: Probing) -> list[Job]:
    """All that a stage has to do."""
    return [
        Job(asked.pass_, probing.tasks[number], path)
        for asked, paths in probing.parts()
        for number, path in zip(asked.tasks, paths, strict=True)
    ]


@dataclass
class Read:
    """What models have read; padding is left out where they are told of it."""

    texts: int = 0
    tokens: int = 0
    passes: int = 0  # of the network, each over a batch

    def add(self, lengths: Sequence[int], budget: int) -> None:
        """Texts of these lengths, in batches of `budget` tokens."""
        self.texts += len(lengths)
        self.tokens += sum(lengths)
        self.passes += len(batches(lengths, budget))

    def grow(self, other: "Read", times: float) -> None:
        """As much as another has read, so many times."""
        self.texts += round(times * other.texts)
        self.tokens += round(times * other.tokens)
        self.passes += round(times * other.passes)


@contextmanager
def reading() -> Iterator[Read]:
    """Counts what any model of transformers reads within the block."""
    found, open_models = Read(), []

    def before(part: torch.nn.Module, given: Any) -> None:
        if isinstance(part, transformers.PreTrainedModel):
            open_models.append(part)

    def after(part: torch.nn.Module, given: Any, named: Any, out: Any) -> None:
        if not isinstance(part, transformers.PreTrainedModel):
            return
        open_models.pop()
        if not open_models:  # parts of a model are models too
            _count(found, {**dict(zip(("input_ids",), given, strict=False)), **named})

    hooks = [
        module.register_module_forward_pre_hook(before),
        module.register_module_forward_hook(after, with_kwargs=True),
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _count(found: Read, given: dict[str, Any]) -> None:
    names = ("decoder_input_ids", "input_ids", "inputs_embeds")
    texts = next(given[name] for name in names if given.get(name) is not None)
    mask = given.get("attention_mask")
    found.passes += 1
    found.texts += len(texts)
    if mask is not None and mask.shape == texts.shape:
        found.tokens += int(mask.sum())
    else:
        found.tokens += texts.shape[0] * texts.shape[1]


def foreseen(
    prober: Method, jobs: Sequence[Job], lengths: Sequence[list[int] | None], patience: float
) -> tuple[float, Read]:
    """The seconds that jobs will take and what models will read in them, from what a little of
    them took, for some `patience` seconds a pass: by tokens where the `lengths` of texts are known,
    by queries else, and where something is trained, by the rows of its tables."""
    seconds, per_token, reads = 0.0, None, Read()
    known = list(zip(jobs, lengths, strict=True))
    for _, group in groupby(known, key=lambda pair: pair[0].pass_):
        of_pass = list(group)
        tokens = sum(sum(texts or ()) for _, texts in of_pass)
        longest = max(of_pass, key=lambda pair: (sum(pair[1] or ()), _size(pair[0].task)))[0]
        if tokens and all(texts is not None for _, texts in of_pass):
            if per_token is None:
                took, seen, _ = timed(prober, few(longest.task), longest.pass_, patience)
                per_token = took / max(seen.tokens, 1)
            seconds += per_token * tokens
            continue
        if prober.smaller(longest.task, 1.0) is not None:
            took, seen = trained(prober, longest, patience)
            times = sum(_size(job.task) for job, _ in of_pass) / _size(longest.task)
        else:
            took, seen, asked = timed(prober, longest.task, longest.pass_, patience)
            times = sum(len(job.task.queries) for job, _ in of_pass) / asked
        seconds += times * took
        reads.grow(seen, times)
    return seconds, reads


def _size(task: Task) -> int:
    """The rows of all that a task has beside its candidates."""
    return len(task.queries) + sum(map(len, task.tables.values()))


def trained(prober: Method, job: Job, patience: float) -> tuple[float, Read]:
    """The seconds of a job that trains, and what it reads: those of a share that takes some of the
    `patience` seconds, and what the rest takes if each row takes as long as those by which this
    share is larger than the one before."""
    share, before, took = FIRST, 0.0, 0.0
    grown, seen = Read(), Read()
    while True:
        task = prober.smaller(job.task, share)
        assert task is not None
        last, earlier = took, seen
        took, seen = _once(prober, task, task.queries, job.pass_)
        if share == 1.0:
            return took, seen
        if before and took + GROWTH * (took - last) > patience:
            break
        before, share = share, min(1.0, GROWTH * share)
    times = (1.0 - share) / (share - before)
    grown.grow(seen, 1.0 + times)
    grown.grow(earlier, -times)
    return took + times * max(took - last, 0.0), grown


def few(task: Task) -> Task:
    """A task with a few of its candidates, the answers of its first queries among them."""
    queries = task.queries.head(WARM + 20 * SLICE)
    right = {name for names in queries["answers"] for name in names}
    first = task.candidates["name"].isin(right).to_numpy(bool).argsort(kind="stable")[::-1]
    names = task.candidates.iloc[sorted(first[:NAMES])].reset_index(drop=True)
    return replace(task, candidates=names)


def timed(prober: Method, task: Task, pass_: str, patience: float) -> tuple[float, Read, int]:
    """Seconds, what was read and how many queries were asked, of some of a task's queries: of twice
    as many each time, for some `patience` seconds in all, and only the last time counts, whose
    batches are most like those of all. Where one query takes longer than that, the next is all that
    is. Where a few cannot be asked alone, all are."""
    queries = task.queries.sample(frac=1, random_state=0).reset_index(drop=True)
    few_at_a_time = [1, WARM - 1] if len(queries) > WARM else []
    start = 0
    try:
        for size in few_at_a_time:
            took, _ = _once(prober, task, queries[start : start + size], pass_)
            start += size
            if took > patience:
                break
        size = 1 if start == 1 else SLICE
        while True:
            part = queries[start : start + size]
            took, read = _once(prober, task, part, pass_)
            start, size = start + size, 2 * size
            if 2 * took > patience or start + size > len(queries):
                return took, read, len(part)
    except BadInput:
        return *_once(prober, task, task.queries, pass_), len(task.queries)


def _once(prober: Method, task: Task, queries: pd.DataFrame, pass_: str) -> tuple[float, Read]:
    """The seconds that these queries of a task take, and what is read for them."""
    with reading() as read:
        begin = time.perf_counter()
        prober.predict(replace(task, queries=queries.reset_index(drop=True)), pass_)
        return time.perf_counter() - begin, read


class _Enough(Exception):
    """A stage was seen for long enough."""


def watched(run: Callable[[], object], patience: float) -> tuple[float, Pace | None]:
    """The seconds that a stage will take, by its own progress, of which it is stopped after some
    `patience` seconds, and before it writes anything; and that progress, None where there was
    none."""
    heard: list[Pace] = []
    begin = time.perf_counter()

    def watch(now: Pace) -> None:
        heard[:] = [now]
        long = now.clock() - now.begin > patience and now.left is not None
        if long or now.done == now.total:
            raise _Enough

    token = watching.set(watch)
    try:
        run()
    except _Enough:
        pass
    finally:
        watching.reset(token)
    spent = time.perf_counter() - begin
    return (spent + (heard[0].left or 0.0), heard[0]) if heard else (spent, None)


@contextmanager
def heads(data: Path, sources: Sequence[Path], most: int) -> Iterator[tuple[Path, float]]:
    """A data folder with the first lines of large files and the first files of folders, `most`
    bytes or so in all, and which share of the `sources` that is; the folder itself where they are
    no larger."""
    files = [file for source in sources for file in below(source)]
    total = sum(file.stat().st_size for file in files)
    if total <= most:
        yield data, 1.0
        return
    share, kept = most / total, 0
    with TemporaryDirectory() as scratch:
        for source in sources:
            own = below(source)
            for file in own[: math.ceil(share * len(own))]:
                copy = Path(scratch) / file.relative_to(data)
                copy.parent.mkdir(parents=True, exist_ok=True)
                kept += _head(file, copy, share if len(own) == 1 else 1.0)
        yield Path(scratch), kept / total


def below(source: Path) -> list[Path]:
    """A file, or all files of a folder."""
    if source.is_file():
        return [source]
    return [file for file in sorted(source.rglob("*")) if file.is_file()]


def _head(file: Path, copy: Path, share: float) -> int:
    """Copy a share of a file's lines; returns the bytes."""
    with file.open("rb") as lines, copy.open("wb") as head:
        left = math.ceil(share * file.stat().st_size)
        while left > 0 and (line := lines.readline()):
            left -= head.write(line)
    return copy.stat().st_size
