"""Section `sweeps` of `params.yaml`: settings of rewiring that are varied one at a time."""

from typing import Final, Literal, get_args

from medprobe.core.settings import Names, Section, Settings, Values

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


SETTINGS: Final = Settings(Sweeps)
