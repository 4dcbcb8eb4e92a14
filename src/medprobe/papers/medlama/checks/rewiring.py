"""Rewiring in `params.yaml`: its settings, sentence sets, sweeps, and what methods name of them."""

from collections.abc import Iterator
from typing import Any

from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params
from medprobe.core.progress import print_above
from medprobe.papers.medlama.methods.contrastive import Contrastive
from medprobe.papers.medlama.rewiring import RewireSettings, check_sentences, checkpoint_steps
from medprobe.papers.medlama.sentences import SENTENCES
from medprobe.pipeline.check import check_name, check_settings


def check(params: Params) -> None:
    """Refuse the first setting or name that is wrong."""
    _check_benchmarks(params)
    check_settings(RewireSettings, params.rewire, "rewire")
    for name, sentence_set in params.sentence_sets.items():
        settings = params.rewire | sentence_set.rewire
        check_settings(RewireSettings, settings, f"sentence_sets.{name}.rewire")
        for model in sentence_set.models or ():
            check_name(model, params.models.all(), f"sentence_sets.{name}.models")
    _warn_of_unknown_models(params)
    _check_sweeps(params)
    for name in params.sentence_sets:
        if (SENTENCES / f"{name}.txt").is_file():
            check_sentences(name, params)
    for where, choices in _choices(params):
        for name in Contrastive.complete(choices, params)["sets"]:
            check_name(name, params.sentence_sets, f"{where}.sets")
            if (step := choices.get("step")) is not None:
                _check_step(params, name, step, f"{where}.step")
        for setting, values in choices.get("sweeps", {}).items():
            for value in values:
                check_name(value, params.sweeps.values()[setting], f"{where}.sweeps.{setting}")


def _check_benchmarks(params: Params) -> None:
    """Refuse a benchmark whose folders would be those of the sentence sets."""
    for builder, named in params.benchmarks.items():
        if SENTENCES.name in named:
            problem = f"'{SENTENCES.name}' is the folder of sentence sets"
            raise BadInput(f"params.yaml: benchmarks.{builder}", problem, "choose another name")


def _warn_of_unknown_models(params: Params) -> None:
    """Print a line for each model that sentence sets leave out and that there is not."""
    models = [*params.models.all()]
    left_out = (model for item in params.sentence_sets.values() for model in item.without)
    for model in dict.fromkeys(left_out):
        if model not in models:
            problem = f"no model '{model}'{nearest(model, models)}"
            print_above(f"warning: params.yaml: sentence_sets.<set>.without: {problem}")


def _choices(params: Params) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings of Contrastive-Probe on each benchmark, with their path."""
    for kind, by_method in params.methods.items():
        for benchmark, choices in by_method.get("contrastive", {}).items():
            yield f"methods.{kind}.contrastive.{benchmark}", choices


def _check_sweeps(params: Params) -> None:
    """Values, models and sets of sweeps are right, each value on its own."""
    for model in params.sweeps.models:
        check_name(model, [*params.models.masked, *params.models.encoder], "sweeps.models")
    for name in params.sweeps.sets:
        check_name(name, params.sentence_sets, "sweeps.sets")
    for setting, values in params.sweeps.values().items():
        for value in values:
            check_settings(RewireSettings, {setting: value}, "sweeps")
        if len({*map(float, values)}) < len(values):
            raise BadInput(f"params.yaml: sweeps.{setting}", "a value is there twice")


def _check_step(params: Params, name: str, step: int, where: str) -> None:
    """Raise BadInput where rewiring on a sentence set keeps no checkpoint of this step."""
    rewire = RewireSettings.model_validate(params.rewire | params.sentence_sets[name].rewire)
    if step not in checkpoint_steps(rewire):
        problem = (
            f"rewiring on {name} keeps no checkpoint of step {step}: "
            f"it keeps every {rewire.checkpoint_every} steps, and step {rewire.steps}"
        )
        remedy = "choose one of these, or set rewire.steps and rewire.checkpoint_every"
        raise BadInput(f"params.yaml: {where}", problem, remedy)
