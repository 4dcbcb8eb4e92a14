"""Stage `rewire`: Contrastive-Probe's self-supervised step, one model on one sentence set.

Its command ends the file (`cli.group.Commands`).
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import pandas as pd

from medprobe.core import places
from medprobe.core.code import code_key
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process, open_executor
from medprobe.core.files import replacing
from medprobe.core.params import EngineParams, Params
from medprobe.core.parts import fingerprint
from medprobe.core.progress import show_progress
from medprobe.core.settings import parse_section
from medprobe.engine.configuration import count_layers
from medprobe.engine.load import load
from medprobe.papers.medlama.rewired import LOSSES, RECORD, REWIRED, Pass
from medprobe.papers.medlama.rewiring import STATE, VERSION, Rewiring, newest_step
from medprobe.papers.medlama.sentences import SENTENCES, read_pairs
from medprobe.papers.medlama.settings.rewire import REWIRE, RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SENTENCE_SETS, SentenceSet

NONE: Final = ".none"  # an empty folder of a model's; no set has this name


def rewire(
    model: str,
    sentence_set: str,
    params: Params,
    swept: tuple[str, str] | None = None,
    executor: Executor = in_this_process,
) -> None:
    """Rewire a model on a sentence set.

    Writes `outputs/rewired/<model>/<set>/`, a checkpoint `step-<n>` every so many steps, and
    `outputs/losses/<model>/<set>.csv`. If params.yaml does not use the sentence set for this model,
    the folder stays empty and the losses have no rows. With `swept`, a setting has its value in a
    sweep, and the outputs are called `<set>+<setting>-<value>`. They are empty too where the model
    has fewer layers than a sweep's value of `layers`.
    """
    set_params = SENTENCE_SETS.of(params).get(sentence_set, SentenceSet())
    choices = REWIRE.of(params) | set_params.rewire | ({swept[0]: swept[1]} if swept else {})
    settings = parse_section(RewireSettings, choices, "params.yaml: rewire")
    params.models.kind(model)  # raises BadInput for an unknown one
    name = Pass(sentence_set, *(swept or ()))
    target, losses = REWIRED / model / str(name), LOSSES / model / f"{name}.csv"
    is_for_model = set_params.is_for(model)
    if not is_for_model:
        print(f"{model} is left out of sentence_sets.{sentence_set}")
    if not is_for_model or (swept and _is_too_shallow(model, settings, swept)):
        with replacing(target) as path:
            path.mkdir()
        _write_losses([], losses)
        return
    rewire_folder(
        places.MODELS / model,
        SENTENCES / f"{sentence_set}.txt",
        target,
        losses,
        settings,
        engine=params.engine,
        seed=params.seed,
        executor=executor,
    )


def _is_too_shallow(model: str, settings: RewireSettings, swept: tuple[str, str]) -> bool:
    """Whether a model has fewer layers than a sweep's value of `layers`; says so."""
    if swept[0] != "layers" or settings.layers is None:
        return False
    depth = count_layers(places.MODELS / model)
    if is_too_shallow := settings.layers > depth:
        print(f"{model} has {depth} layers: left out of layers {settings.layers}")
    return is_too_shallow


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
    """Rewire the checkpoint of a folder on a text file, one sentence per line.

    Writes the folder `target` of rewired checkpoints with their settings, and the CSV file
    `losses`, the loss of each step. Finished steps are kept in outputs/parts, so that a stopped run
    continues with the next step.
    """
    draw_seed = f"{seed} {sentences.stem}"  # so that draws differ between sets
    code = code_key("core", "engine", "papers/medlama", version=VERSION)
    inputs = [fingerprint([folder, sentences]), code]
    key = [settings.model_dump(), draw_seed, *inputs]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    parts = places.PARTS / f"rewire-{digest[:32]}"
    with show_progress(f"rewire {folder.name} on {sentences.stem}", settings.steps, "steps") as bar:
        bar.advance_to(newest_step(parts))

        def report_step(step: int, loss: float) -> None:
            bar.advance_to(step, f"loss {loss:.3f}")

        work = _Steps(folder, sentences, parts, settings, engine.for_worker, draw_seed, report_step)
        name = f"rewire {folder.name} on {sentences.stem}"
        ((_, step_losses),) = executor(work, [Job(name, settings.steps, (folder, sentences))])
    _write_losses(step_losses, losses)
    record = settings.model_dump() | {"layers": settings.layers or count_layers(folder)}
    (parts / RECORD).write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    _move_checkpoints(parts, target)


@dataclass
class _Steps:
    """Rewires up to a step, from the newest checkpoint that another process may have left.

    A copy that is sent to another process reports no progress.
    """

    folder: Path
    sentences: Path
    parts: Path
    settings: RewireSettings
    engine: EngineParams
    seed: str
    report_step: Callable[[int, float], None] = lambda step, loss: None

    def __reduce__(self) -> Any:
        recipe = (self.folder, self.sentences, self.parts, self.settings, self.engine, self.seed)
        return type(self), recipe

    def __call__(self, end: int) -> list[float]:
        """Rewire up to the step `end`, in float32; return the losses of all steps."""
        engine = self.engine.model_copy(update={"precision": "float32"})
        model = load(self.folder, "encoder", engine, layers=self.settings.layers)
        if model.tokenizer.mask_token is None:
            remedy = "rewire masked models only"
            raise BadInput(self.folder, "the tokenizer has no mask token", remedy)
        pairs = read_pairs(self.sentences, model.tokenizer.mask_token, self.settings, self.seed)
        rewiring = Rewiring(model, pairs, self.settings, seed=self.seed, folder=self.parts)
        return rewiring.train_until(end, self.report_step)


def _write_losses(losses: list[float], target: Path) -> None:
    steps = pd.Series(losses, range(1, len(losses) + 1), dtype=float, name="loss")
    with replacing(target) as path:
        steps.to_csv(path, index_label="step", float_format="%.6f", lineterminator="\n")


def _move_checkpoints(parts: Path, target: Path) -> None:
    """Move the finished checkpoints to `target`, all at once."""
    for state in parts.glob(f"*/{STATE}"):
        state.unlink()
    with replacing(target) as path:
        shutil.move(parts, path)


@click.command(epilog="\b\nExample:\n  medprobe rewire --model taught --set set-0")
@click.option("--model", required=True, help="A model of params.yaml.")
@click.option("--set", "sentence_set", help="A sentence set of params.yaml (default: none).")
@click.option("--sweep", metavar="SETTING", help="A setting to sweep; needs --value.")
@click.option("--value", help="The value of the swept setting.")
def command(
    params: Params, model: str, sentence_set: str | None, sweep: str | None, value: str | None
) -> None:
    """Rewire a model on one sentence set (Contrastive-Probe's self-supervised step).

    Without a set, make the folder of the model's rewired checkpoints.
    """
    if (sweep is None) != (value is None) or (sweep and not sentence_set):
        problem = "--sweep and --value go together, and with --set"
        raise BadInput("rewire", problem, "give all of them, or --set alone")
    if sentence_set is None:
        params.models.kind(model)  # raises BadInput for an unknown one
        with replacing(REWIRED / model / NONE) as path:
            path.mkdir()
        return
    swept = (sweep, value) if sweep and value else None
    with open_executor(params.engine) as executor:
        rewire(model, sentence_set, params, swept, executor)


COMMAND: Final = command
