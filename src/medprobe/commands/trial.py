"""What models read and how long it takes: counted, and measured on a few queries."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
import transformers
from torch.nn.modules import module

from medprobe.engine.batching import batches
from medprobe.methods import Method, Task
from medprobe.stages.probe import Probing

WARM: Final = 4  # queries that are not timed
SLICE: Final = 16  # queries that are timed at a time
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


def seconds_of(
    prober: Method, jobs: Sequence[Job], read: Sequence[list[int] | None], patience: float
) -> float:
    """The seconds that jobs will take, from what a few of their queries took, for some `patience`
    seconds: by tokens where it is known what is read, else by queries. A task with tables to train
    on is not cut: of each pass two are timed."""
    total, per_token = 0.0, None
    known = list(zip(jobs, read, strict=True))
    for _, group in groupby(known, key=lambda pair: pair[0].pass_):
        of_pass = list(group)
        tokens = sum(sum(lengths or ()) for _, lengths in of_pass)
        longest = max(of_pass, key=lambda pair: (sum(pair[1] or ()), len(pair[0].task.queries)))[0]
        if tokens and all(lengths is not None for _, lengths in of_pass):
            if per_token is None:
                took, seen, _ = timed(prober, few(longest.task), longest.pass_, patience)
                per_token = took / max(seen.tokens, 1)
            total += per_token * tokens
        elif longest.task.tables:
            first, *others = (job for job, _ in of_pass)
            total += _once(prober, first)
            total += len(others) * _once(prober, others[0]) if others else 0
        else:
            took, _, asked = timed(prober, longest.task, longest.pass_, patience)
            total += took / asked * sum(len(job.task.queries) for job, _ in of_pass)
    return total


def few(task: Task) -> Task:
    """A task with a few of its candidates, the answers of its first queries among them."""
    queries = task.queries.head(WARM + 20 * SLICE)
    right = {name for names in queries["answers"] for name in names}
    first = task.candidates["name"].isin(right).to_numpy(bool).argsort(kind="stable")[::-1]
    names = task.candidates.iloc[sorted(first[:NAMES])].reset_index(drop=True)
    return replace(task, candidates=names)


def timed(prober: Method, task: Task, pass_: str, patience: float) -> tuple[float, Read, int]:
    """Seconds, what was read and how many queries were asked, of some of a task's queries; the
    very first are not counted where there are others."""
    queries = task.queries.sample(frac=1, random_state=0)
    spent, asked = 0.0, 0
    start = WARM if len(queries) > WARM else 0
    if start:
        prober.predict(replace(task, queries=queries[:start].reset_index(drop=True)), pass_)
    with reading() as read:
        while asked + start < len(queries) and (not asked or spent < patience):
            part = queries[start + asked : start + asked + SLICE].reset_index(drop=True)
            begin = time.perf_counter()
            prober.predict(replace(task, queries=part), pass_)
            spent += time.perf_counter() - begin
            asked += len(part)
    return spent, read, asked


def _once(prober: Method, job: Job) -> float:
    begin = time.perf_counter()
    prober.predict(job.task, job.pass_)
    return time.perf_counter() - begin
