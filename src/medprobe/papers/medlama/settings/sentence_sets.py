"""Section `sentence_sets` of `params.yaml`: files of `data/sentences`, without `.txt`.

Each is a replicate of Contrastive-Probe.
"""

from typing import Final

from pydantic import Field

from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params, Settings
from medprobe.core.progress import print_above
from medprobe.core.settings import (
    Choices,
    Name,
    Section,
    check_name,
    check_settings,
    parse_section,
)
from medprobe.papers.medlama.sentences import SENTENCES, read_pairs
from medprobe.papers.medlama.settings.rewire import REWIRE, RewireSettings, checkpoint_steps

FOLDER: Final = SENTENCES.name  # of data/


class SentenceSet(Section):
    """A file of data/sentences, one replicate of Contrastive-Probe."""

    models: tuple[Name, ...] | None = None
    """The models that are rewired on this set. Empty: all masked models and encoders."""
    without: tuple[Name, ...] = ()
    """Models that are not rewired on this set."""
    rewire: Choices = Field({})
    """Settings that differ from the section `rewire`."""

    def is_for(self, model: str) -> bool:
        """Return whether a model is rewired on this set.

        >>> SentenceSet(without=("bert",)).is_for("biobert")
        True
        """
        return model not in self.without and (self.models is None or model in self.models)


def rewire_settings(name: str, params: Params, swept: Choices | None = None) -> RewireSettings:
    """Return the settings of rewiring on a set, with those that a sweep varies."""
    own = SENTENCE_SETS.of(params).get(name, SentenceSet()).rewire
    choices = REWIRE.of(params) | own | (swept or {})
    return parse_section(RewireSettings, choices, "params.yaml: rewire")


def check_sentences(name: str, params: Params) -> None:
    """Refuse a sentence set with too few sentences that can be cut."""
    settings = rewire_settings(name, params)
    read_pairs(SENTENCES / f"{name}.txt", "[MASK]", settings, f"{params.seed} {name}")


def _check(params: Params) -> None:
    """Refuse what is wrong in the sets, and what Contrastive-Probe says of them."""
    _check_sections(params)
    sets, models = SENTENCE_SETS.of(params), [*params.models.all()]
    for name, found in sets.items():
        settings = REWIRE.of(params) | found.rewire
        check_settings(RewireSettings, settings, f"sentence_sets.{name}.rewire")
        for model in found.models or ():
            check_name(model, models, f"sentence_sets.{name}.models")
    for model in dict.fromkeys(model for found in sets.values() for model in found.without):
        if model not in models:
            problem = f"no model '{model}'{nearest(model, models)}"
            print_above(f"warning: params.yaml: sentence_sets.<set>.without: {problem}")
    for name in sets:
        if (SENTENCES / f"{name}.txt").is_file():
            check_sentences(name, params)
    for kind, methods in params.methods.items():
        for benchmark, choices in methods.get("contrastive", {}).items():
            where = f"methods.{kind}.contrastive.{benchmark}"
            chosen, step = choices.get("sets"), choices.get("step")
            names = sets if chosen is None else chosen
            if step is not None and not names:
                problem = (
                    "there is no sentence set to rewire on, and models are probed as they came"
                )
                print_above(f"warning: params.yaml: {where}.step: {problem}")
            for name in names:
                check_name(name, sets, f"{where}.sets")
                if step is not None:
                    _check_step(params, name, step, f"{where}.step")


def _check_sections(params: Params) -> None:
    for builder, named in params.benchmarks.items():
        if FOLDER in named:
            problem = f"'{FOLDER}' is the folder of sentence sets"
            raise BadInput(f"params.yaml: benchmarks.{builder}", problem, "choose another name")
    is_rewired = params.models.masked or params.models.encoder
    for name in (REWIRE.name, SENTENCE_SETS.name):
        if is_rewired and name not in (params.model_extra or {}):
            remedy = "write it down, as {} if it is empty: dvc.yaml names it for such models"
            raise BadInput("params.yaml", f"{name} is missing", remedy)


def _check_step(params: Params, name: str, step: int, where: str) -> None:
    rewire = rewire_settings(name, params)
    if step not in checkpoint_steps(rewire):
        problem = (
            f"rewiring on {name} keeps no checkpoint of step {step}: "
            f"it keeps every {rewire.checkpoint_every} steps, and step {rewire.steps}"
        )
        remedy = "choose one of these, or set rewire.steps and rewire.checkpoint_every"
        raise BadInput(f"params.yaml: {where}", problem, remedy)


SENTENCE_SETS: Final = Settings(
    "sentence_sets", dict[Name, SentenceSet], files=FOLDER, check=_check
)
SETTINGS: Final = SENTENCE_SETS
