"""How large the sample world is, and how its models are trained: two sections of params.yaml."""

from typing import Literal

from pydantic import Field

from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params
from medprobe.core.settings import Name, Section, parse_section

SampleKind = Literal["masked", "causal", "chat", "seq2seq"]  # of the models that can be trained


class SampleSettings(Section):
    """Sizes of the sample world. The defaults suit those of `TrainingRecipe`."""

    queries: int = Field(64, ge=20)
    """Probed subjects per relation."""
    times: tuple[int, ...] = (0, 0, 0, 1, 2, 4)
    """How often a taught model reads a fact. Each fact draws one of these numbers."""
    reserve: int = Field(32, ge=8)
    """Further subjects of each type that are never probed."""


class TrainingRecipe(Section):
    """How a sample model is trained: an entry of the `train` section of params.yaml."""

    kind: SampleKind
    """Kind of model."""
    corpus: str
    """The corpus to read: a file `data/sample/corpus-<name>.txt`."""
    vocabulary: int = Field(2000, ge=300)
    """Word pieces to learn."""
    layers: int = Field(3, gt=0)
    """Layers."""
    hidden: int = Field(192, gt=0, multiple_of=64)
    """Hidden size. Each 64 have one attention head."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout."""
    steps: int = Field(2000, gt=0)
    """Training steps."""
    batch: int = Field(64, ge=8)
    """Sentences per step."""
    learning_rate: float = Field(6e-4, gt=0)
    """Learning rate."""


class Continuation(Section):
    """How the training of a sample model goes on, as another model.

    An entry of the `continued` section of params.yaml. All else is as in the recipe of its base.
    """

    base: Name
    """The model to continue, an entry of `train`."""
    corpus: str
    """The corpus to read."""
    steps: int = Field(gt=0)
    """Training steps."""


def find_recipe(name: str, params: Params) -> tuple[TrainingRecipe, str | None]:
    """Return the recipe of a sample model, and the model that it continues, or None."""
    base, changes = None, {}
    if name in params.continued:
        further = parse_section(
            Continuation, params.continued[name], f"params.yaml: continued.{name}"
        )
        base, changes = further.base, {"corpus": further.corpus, "steps": further.steps}
    first = base or name
    if first not in params.train:
        where = f"params.yaml: continued.{name}" if base else "params.yaml"
        raise BadInput(where, f"train: no recipe '{first}'{nearest(first, [*params.train])}")
    parsed = parse_section(TrainingRecipe, params.train[first], f"params.yaml: train.{first}")
    return parsed.model_copy(update=changes), base
