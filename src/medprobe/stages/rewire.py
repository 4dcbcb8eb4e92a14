"""Stage `rewire`: Contrastive-Probe's self-supervised step, one model on one sentence set."""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import EngineParams, Params, SentenceSet, parse_section
from medprobe.core.parts import code_fingerprint, fingerprint
from medprobe.core.progress import show_progress
from medprobe.engine.load import Model, load
from medprobe.engine.rewiring import (
    STATE,
    RewireSettings,
    Rewiring,
    kept_steps,
    make_pairs,
    newest_step,
)
from medprobe.sources.sentences import read_sentences


def rewire(
    model: str,
    sentence_set: str,
    params: Params,
    swept: tuple[str, str] | None = None,
    executor: Executor = in_this_process,
) -> None:
    """Rewire a model and write `outputs/rewired/<model>/<set>/`, a checkpoint `step-<n>` every so
    many steps, and `outputs/losses/<model>/<set>.csv`. With `swept`, a setting and its value in a
    sweep, these are called `<set>+<setting>-<value>`.

    A sentence set that is not meant for the model leaves the folder empty, and no losses.
    """
    own = params.sentence_sets.get(sentence_set, SentenceSet())
    settings = settings_of(sentence_set, params, swept)
    params.models.kind(model)
    name = f"{sentence_set}+{'-'.join(swept)}" if swept else sentence_set
    target, losses = places.REWIRED / model / name, places.LOSSES / model / f"{name}.csv"
    if own.models is not None and model not in own.models:
        with replacing(target) as path:
            path.mkdir()
        _write_losses([], losses)
        return
    rewire_folder(
        places.MODELS / model,
        places.SENTENCES / f"{sentence_set}.txt",
        target,
        losses,
        settings,
        engine=params.engine,
        seed=params.seed,
        executor=executor,
    )


def settings_of(
    sentence_set: str, params: Params, swept: tuple[str, str] | None = None
) -> RewireSettings:
    """The settings on a sentence set, with a value of a sweep where one is meant."""
    own = params.sentence_sets.get(sentence_set, SentenceSet())
    choices = params.rewire | own.rewire | ({swept[0]: swept[1]} if swept else {})
    return parse_section(RewireSettings, choices, "params.yaml: rewire")


def rewire_folder(
    folder: Path,
    sentences: Path,
    target: Path,
    losses: Path,
    settings: RewireSettings,
    *,
    engine: EngineParams,
    seed: int,
    executor: Executor = in_this_process,
) -> None:
    """Rewire the checkpoint in `folder` on a file of sentences, one a line, into `target`; the
    loss of each step goes to the file `losses`.

    Steps done before a stop are kept under outputs/parts and not done again. Raises BadInput as
    `ready` does.
    """
    drawn = drawn_from(seed, sentences)
    inputs = [fingerprint([folder, sentences]), code_fingerprint(__name__)]
    key = [settings.model_dump(), drawn, *inputs]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    parts = places.PARTS / f"rewire-{digest[:32]}"
    with show_progress(f"rewire {folder.name} on {sentences.stem}", settings.steps, "steps") as now:
        now.advance_to(newest_step(parts))

        def done(step: int, loss: float) -> None:
            now.advance_to(step, f"loss {loss:.3f}")

        work = _Steps(folder, sentences, parts, settings, engine.for_worker, drawn, done)
        of_steps: list[float] = []
        for job in _jobs(folder, sentences, parts, settings):
            ((_, of_steps),) = executor(work, [job])
            done(len(of_steps), of_steps[-1])
    _write_losses(of_steps, losses)
    finish(parts, target)


def drawn_from(seed: int, sentences: Path) -> str:
    """The seed of all draws."""
    return f"{seed} {sentences.stem}"


def ready(
    folder: Path, sentences: Path, settings: RewireSettings, engine: EngineParams, drawn: str
) -> tuple[Model, list[tuple[str, str]]]:
    """A model, ready to be rewired on a file of sentences, and the pairs, drawn by a seed.

    Raises BadInput for a sentence set that is not there or too small, or a model without a mask
    token or an encoder.
    """
    lines = list(read_sentences(sentences).values())
    model = load(folder, "encoder", engine.model_copy(update={"precision": "float32"}))
    if model.tokenizer.mask_token is None:
        raise BadInput(folder, "the tokenizer has no mask token", "rewire masked models only")
    pairs = make_pairs(lines, model.tokenizer.mask_token, settings, drawn)
    if len(pairs) < 2:
        raise BadInput(sentences, f"{len(pairs)} sentences long enough to cut, expected 2 or more")
    return model, pairs


def _jobs(folder: Path, sentences: Path, parts: Path, settings: RewireSettings) -> Iterator[Job]:
    """A job from each checkpoint to the next, made when it is asked for: it reads what the one
    before has written."""
    for last in kept_steps(settings):
        start = newest_step(parts)
        if start < last or last == settings.steps:
            name = f"rewire {folder.name} on {sentences.stem}, steps {start + 1} to {last}"
            before = [parts / f"step-{start}"] if start else []
            yield Job(name, last, (folder, sentences, *before), (parts / f"step-{last}",))


@dataclass
class _Steps:
    """Rewires up to a step; the model is loaded where the first is done. A copy sent elsewhere is
    without the model, and tells no `done`."""

    folder: Path
    sentences: Path
    parts: Path
    settings: RewireSettings
    engine: EngineParams
    drawn: str
    done: Callable[[int, float], None] = lambda step, loss: None

    def __reduce__(self) -> Any:
        recipe = (self.folder, self.sentences, self.parts, self.settings, self.engine, self.drawn)
        return type(self), recipe

    @cached_property
    def rewiring(self) -> Rewiring:
        """The model at the newest step that is kept."""
        model, pairs = ready(self.folder, self.sentences, self.settings, self.engine, self.drawn)
        return Rewiring(model, pairs, self.settings, seed=self.drawn, folder=self.parts)

    def __call__(self, last: int) -> list[float]:
        """The losses of all steps up to `last`."""
        return list(self.rewiring.until(last, self.done))


def _write_losses(losses: list[float], target: Path) -> None:
    with replacing(target) as path, path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["step", "loss"])
        writer.writerows((step, f"{loss:.6f}") for step, loss in enumerate(losses, start=1))


def finish(parts: Path, target: Path) -> None:
    """Move the finished checkpoints to `target`, all at once."""
    for state in parts.glob(f"*/{STATE}"):
        state.unlink()
    with replacing(target) as path:
        shutil.move(parts, path)
