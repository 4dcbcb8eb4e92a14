"""How large the sample world is, and how its models are trained: two sections of params.yaml."""

from typing import Literal

from pydantic import Field

from medprobe.core.params import Section

Kind = Literal["masked", "causal", "chat", "seq2seq"]  # of the models that can be trained


class SampleSettings(Section):
    """Sizes of the sample world. The defaults suit those of `Recipe`."""

    queries: int = Field(64, ge=20)  # probed subjects of each relation
    times: tuple[int, ...] = (0, 0, 0, 1, 2, 4)  # how often taught models read a fact, drawn evenly
    reserve: int = Field(32, ge=8)  # subjects of each type that are never probed, beside them


class Recipe(Section):
    """How a sample model is trained: an entry of the `train` section of params.yaml."""

    kind: Kind
    corpus: str  # which of data/sample/corpus-<name>.txt it reads
    vocabulary: int = Field(2000, ge=300)  # pieces that are learnt
    layers: int = Field(3, gt=0)
    hidden: int = Field(192, gt=0, multiple_of=64)  # with a head of attention for each 64
    dropout: float = Field(0.0, ge=0, lt=1)
    steps: int = Field(2000, gt=0)
    batch: int = Field(64, ge=8)  # sentences in a step
    learning_rate: float = Field(6e-4, gt=0)
