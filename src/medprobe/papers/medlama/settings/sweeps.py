"""Section `sweeps` of `params.yaml`: settings of rewiring that are varied one at a time."""

from typing import Final, Literal, get_args

from medprobe.core.errors import BadInput
from medprobe.core.params import Params, Settings
from medprobe.core.settings import Names, Section, Values, check_name, check_settings
from medprobe.papers.medlama.sentences import SENTENCES, read_sentences
from medprobe.papers.medlama.settings.rewire import RewireSettings
from medprobe.papers.medlama.settings.sentence_sets import SENTENCE_SETS, rewire_settings

Swept = Literal["mask_ratio", "learning_rate", "temperature", "max_sentences", "layers"]
SWEPT: Final[tuple[Swept, ...]] = get_args(Swept)  # settings of rewiring, varied one at a time


class Sweeps(Section):
    """Settings of rewiring that are varied one at a time, and for which models and sets."""

    models: Names = ()
    """The models that are swept."""
    sets: Names = ()
    """The sentence sets that are used."""
    mask_ratio: Values = ()
    """Values of `rewire.mask_ratio`, in quotes."""
    learning_rate: Values = ()
    """Values of `rewire.learning_rate`, in quotes."""
    temperature: Values = ()
    """Values of `rewire.temperature`, in quotes."""
    max_sentences: Values = ()
    """Values of `rewire.max_sentences`, in quotes. One at most may take a whole set, with that of
    `rewire`."""
    layers: Values = ()
    """Values of `rewire.layers`, in quotes. A model with fewer layers is left out of a value."""

    def values(self) -> dict[Swept, tuple[str, ...]]:
        """Return the values of each setting."""
        return {setting: getattr(self, setting) for setting in SWEPT}


def check_sizes(name: str, params: Params) -> None:
    """Refuse two numbers of sentences that take a whole set: one number would have two names.

    They are those of a sweep, and the one outside it.
    """
    path, sweeps = SENTENCES / f"{name}.txt", SWEEPS.of(params)
    if name not in sweeps.sets or not sweeps.max_sentences:
        return
    size, own = len(read_sentences(path)), rewire_settings(name, params).max_sentences
    numbers = {int(float(value)) for value in sweeps.max_sentences} | {own}
    whole = sorted(most for most in numbers if most >= size)
    if len(whole) > 1:
        named = " and ".join(f"{most}{' (of rewire)' * (most == own)}" for most in whole)
        problem = f"{named} are all of {path.name}, which has {size:,} lines"
        raise BadInput("params.yaml: sweeps.max_sentences", problem, "keep one of them")


def _check(params: Params) -> None:
    """Refuse what is wrong in the values, models and sets, and what Contrastive-Probe asks for."""
    sweeps = SWEEPS.of(params)
    for model in sweeps.models:
        check_name(model, [*params.models.masked, *params.models.encoder], "sweeps.models")
    for name in sweeps.sets:
        check_name(name, SENTENCE_SETS.of(params), "sweeps.sets")
    for setting, values in sweeps.values().items():
        for value in values:
            check_settings(RewireSettings, {setting: value}, "sweeps")
        if len({*map(float, values)}) < len(values):
            raise BadInput(f"params.yaml: sweeps.{setting}", "a value is there twice")
    for name in sweeps.sets:
        if (SENTENCES / f"{name}.txt").is_file():
            check_sizes(name, params)
    for kind, methods in params.methods.items():
        for benchmark, choices in methods.get("contrastive", {}).items():
            where = f"methods.{kind}.contrastive.{benchmark}.sweeps"
            for asked, names in choices.get("sweeps", {}).items():
                for value in names:
                    check_name(value, sweeps.values()[asked], f"{where}.{asked}")


SWEEPS: Final = Settings("sweeps", Sweeps, check=_check)
SETTINGS: Final = SWEEPS
