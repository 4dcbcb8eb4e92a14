"""Stage `rewire`: Contrastive-Probe's self-supervised step, one model on all its sentence sets.

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

from medprobe.core import dvc_records, places
from medprobe.core.code import code_key
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import EngineParams, Params
from medprobe.core.parts import fingerprint
from medprobe.core.progress import show_progress
from medprobe.engine.configuration import count_layers
from medprobe.engine.load import load
from medprobe.papers.medlama.rewired import (
    LOSSES,
    RECORD,
    REWIRED,
    STEP_LOSSES,
    Pass,
    checkpoints,
    read_settings,
)
from medprobe.papers.medlama.rewiring import STATE, VERSION, Rewiring
from medprobe.papers.medlama.sentences import read_pairs
from medprobe.papers.medlama.settings.rewire import RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SENTENCE_SETS, rewire_settings
from medprobe.papers.medlama.settings.sweeps import SWEEPS
from medprobe.pipeline.cluster import open_executor

CODE: Final = ("core", "engine", "papers/medlama")


def rewire(model: str, params: Params, executor: Executor = in_this_process) -> None:
    """Rewire a model on its sentence sets, and with each value of its sweeps.

    Each rewiring is a folder of checkpoints in `outputs/rewired/<model>`, whose key is a hash of
    all that it follows from. One with the same key stays as it is. In outputs/parts are the steps
    of unfinished ones, so that a stopped run continues, and those that params.yaml no longer asks
    for, until it does again. Their losses are copied to `outputs/losses/<model>`.
    """
    params.models.kind(model)  # raises BadInput for an unknown one
    folder, checkpoint = REWIRED / model, places.MODELS / model
    planned = [pass_ for pass_ in _list_planned(model, params) if _is_deep_enough(model, pass_)]
    inputs = [fingerprint([checkpoint]), code_key(*CODE, version=VERSION)]
    recipes = {folder / str(pass_): _recipe(checkpoint, pass_, params, inputs) for pass_ in planned}
    dvc_records.check_out(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
        elif path not in recipes or not _is_finished(path, recipes[path].key):
            _put_aside(path)
    for path, recipe in recipes.items():
        if not path.is_dir() and _is_finished(recipe.parts, recipe.key):
            _move(recipe.parts, path)
    missing = {path: recipe for path, recipe in recipes.items() if not path.is_dir()}
    if missing:
        _compute(model, missing, params.engine, executor)
    with replacing(LOSSES / model) as scratch:
        scratch.mkdir()
        for path in recipes:
            shutil.copyfile(path / STEP_LOSSES, scratch / f"{path.name}.csv")


@dataclass(frozen=True)
class Recipe:
    """What a rewiring follows from."""

    checkpoint: Path
    sentences: Path
    settings: RewireSettings
    seed: str
    key: str

    @property
    def parts(self) -> Path:
        """The folder of finished steps."""
        return _parts(self.key)


def _parts(key: str) -> Path:
    return places.PARTS / f"rewire-{key[:32]}"


def _list_planned(model: str, params: Params) -> list[Pass]:
    """List the rewirings of a model that params.yaml asks for."""
    sets = [name for name, found in SENTENCE_SETS.of(params).items() if found.is_for(model)]
    sweeps = SWEEPS.of(params)
    swept = [
        Pass(name, setting, value)
        for name in sets
        if model in sweeps.models and name in sweeps.sets
        for setting, values in sweeps.values().items()
        for value in values
    ]
    return [*map(Pass, sets), *swept]


def _is_deep_enough(model: str, pass_: Pass) -> bool:
    """Whether a model has as many layers as a sweep's value of `layers`; says so if not."""
    if pass_.setting != "layers":
        return True
    depth = count_layers(places.MODELS / model)
    if is_too_shallow := float(pass_.value) > depth:
        print(f"{model} has {depth} layers: left out of layers {pass_.value}")
    return not is_too_shallow


def _recipe(checkpoint: Path, pass_: Pass, params: Params, inputs: list[str]) -> Recipe:
    swept = {pass_.setting: pass_.value} if pass_.setting else {}
    settings = rewire_settings(pass_.set, params, swept)
    sentences = places.SENTENCES / f"{pass_.set}.txt"
    seed = f"{params.seed} {pass_.set}"  # so that draws differ between sets
    content = [settings.model_dump(), seed, fingerprint([sentences]), *inputs]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return Recipe(checkpoint, sentences, settings, seed, key)


def _is_finished(folder: Path, key: str) -> bool:
    """Whether a folder has the whole rewiring of this key."""
    record = read_settings(folder)
    return record.get("key") == key and record.get("files") == _hash_files(folder)


def _hash_files(folder: Path) -> str:
    return fingerprint([*checkpoints(folder).values(), folder / STEP_LOSSES])


def _put_aside(folder: Path) -> None:
    """Move a rewiring to outputs/parts; remove it if it is not whole."""
    key = read_settings(folder).get("key", "")
    if _is_finished(folder, key):
        _move(folder, _parts(key))
    else:
        shutil.rmtree(folder)


def _move(folder: Path, target: Path) -> None:
    with replacing(target) as path:
        shutil.move(folder, path)


def _compute(
    model: str, missing: dict[Path, Recipe], engine: EngineParams, executor: Executor
) -> None:
    """Rewire by each recipe, and put the checkpoints into its folder."""
    total = sum(recipe.settings.steps for recipe in missing.values())
    finished = 0
    with show_progress(f"rewire {model}", total, "steps") as bar:

        def report_step(step: int, loss: float) -> None:
            bar.advance_to(finished + step, f"loss {loss:.3f}")

        jobs = [
            Job(f"rewire {model} on {path.name}", recipe, (recipe.checkpoint, recipe.sentences))
            for path, recipe in missing.items()
        ]
        folders = [*missing]
        for number, losses in executor(_Work(engine.for_worker, report_step), jobs):
            recipe = missing[folders[number]]
            _finish(recipe, losses, folders[number])
            finished += recipe.settings.steps
            bar.advance_to(finished)


@dataclass
class _Work:
    """Rewires by a recipe, from the newest checkpoint that another process may have left.

    A copy that is sent to another process reports no progress.
    """

    engine: EngineParams
    report_step: Callable[[int, float], None] = lambda step, loss: None

    def __reduce__(self) -> Any:
        return type(self), (self.engine,)

    def __call__(self, recipe: Recipe) -> list[float]:
        """Rewire in float32; return the losses of all steps."""
        engine = self.engine.model_copy(update={"precision": "float32"})
        settings = recipe.settings
        model = load(recipe.checkpoint, "encoder", engine, layers=settings.layers)
        if model.tokenizer.mask_token is None:
            remedy = "rewire masked models only"
            raise BadInput(recipe.checkpoint, "the tokenizer has no mask token", remedy)
        pairs = read_pairs(recipe.sentences, model.tokenizer.mask_token, settings, recipe.seed)
        rewiring = Rewiring(model, pairs, settings, seed=recipe.seed, folder=recipe.parts)
        return rewiring.train_until(settings.steps, self.report_step)


def _finish(recipe: Recipe, losses: list[float], target: Path) -> None:
    """Move the finished checkpoints to `target`, all at once, with their losses and settings."""
    parts, settings = recipe.parts, recipe.settings
    for state in parts.glob(f"*/{STATE}"):
        state.unlink()
    steps = pd.Series(losses, range(1, len(losses) + 1), dtype=float, name="loss")
    steps.to_csv(parts / STEP_LOSSES, index_label="step", float_format="%.6f", lineterminator="\n")
    layers = settings.layers or count_layers(recipe.checkpoint)
    record = settings.model_dump() | {"layers": layers, "key": recipe.key}
    record["files"] = _hash_files(parts)
    (parts / RECORD).write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    _move(parts, target)


@click.command(epilog="\b\nExample:\n  medprobe rewire --model taught")
@click.option("--model", required=True, help="A model of params.yaml.")
def command(params: Params, model: str) -> None:
    """Rewire a model on its sentence sets (Contrastive-Probe's self-supervised step)."""
    with open_executor(params.engine) as executor:
        rewire(model, params, executor)


COMMAND: Final = command
