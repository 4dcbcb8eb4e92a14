"""How large the sample world is: the `sample` section of params.yaml."""

from pydantic import Field

from medprobe.params import Section


class SampleSettings(Section):
    """Sizes of the sample world. The defaults suit the recipes of `pretrain`."""

    queries: int = Field(64, ge=20)  # probed subjects of each relation
    times: tuple[int, ...] = (0, 0, 0, 1, 2, 4)  # how often taught models read a fact, drawn evenly
    reserve: int = Field(32, ge=8)  # subjects of each type that are never probed, beside them
    sentence_sets: int = Field(10, gt=0)
    sentences: int = Field(480, gt=0)  # rewiring sentences in a set
