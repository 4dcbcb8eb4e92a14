"""`params.yaml`, typed. A wrong key is refused with the nearest right one, a wrong type by its row.

A section of `params.yaml` is a class here, or the `Settings` class of the one file it belongs to:
`benchmarks.<name>` to `benchmarks/<name>.py`, `methods.<name>` to `methods/<name>.py`.
"""

from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medprobe.errors import BadInput, nearest


class Section(BaseModel):
    """Part of `params.yaml`: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SectionType = TypeVar("SectionType", bound=Section)


class EngineParams(Section):
    """Where and how models run."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    token_budget: int | None = Field(None, gt=0)  # tokens in a batch, padding counted; none: auto
    offline: bool = False  # use only folders and the hub's local cache


class ModelParams(Section):
    """One model: a hub name or a folder, or the name of a recipe of `pretrain`."""

    hub: str | None = None
    revision: str | None = None
    folder: Path | None = None
    pretrain: str | None = None
    trained_until: str | None = None  # date after which it has read nothing, YYYY-MM-DD
    published: str | None = None  # its name in the papers' tables, e.g. BioBERT


ModelKind = Literal["masked", "encoder", "causal", "seq2seq"]
MODEL_KINDS: tuple[ModelKind, ...] = ("masked", "encoder", "causal", "seq2seq")


class Models(Section):
    """The models to probe by kind, each a map from a name of one's own to where it is."""

    masked: dict[str, ModelParams] = {}
    encoder: dict[str, ModelParams] = {}
    causal: dict[str, ModelParams] = {}
    seq2seq: dict[str, ModelParams] = {}

    def find(self, name: str) -> tuple[ModelKind, ModelParams]:
        """The kind and place of a model. Raises BadInput where there is none of that name."""
        for kind in MODEL_KINDS:
            if name in (models := getattr(self, kind)):
                return kind, models[name]
        raise BadInput("params.yaml", f"models: no model '{name}'{nearest(name, self.names())}")

    def names(self) -> list[str]:
        """The names of all models."""
        return [name for kind in MODEL_KINDS for name in getattr(self, kind)]


class ProbeParams(Section):
    """Which methods probe the models of each kind, contrastive aside, and which benchmarks masked
    models and encoders are fine-tuned for."""

    masked: list[str] = []
    causal: list[str] = []
    seq2seq: list[str] = []
    finetune: list[str] = []


class ScoreParams(Section):
    """How predictions become numbers."""

    bootstrap: int = Field(1000, gt=0)  # resamples for each interval
    confidence: float = Field(0.95, gt=0, lt=1)


class TrackParams(Section):
    """What goes into MLflow."""

    text: bool = False  # names and prompts too, which may be licensed; else identifiers only


class Params(Section):
    """All of `params.yaml`."""

    seed: int = 2021
    engine: EngineParams = EngineParams()
    sample: dict[str, Any] = {}
    pretrain: dict[str, Any] = {}
    models: Models = Models()
    rewire: dict[str, Any] = {}
    probe: ProbeParams = ProbeParams()
    benchmarks: dict[str, dict[str, Any]] = {}
    methods: dict[str, dict[str, Any]] = {}
    score: ScoreParams = ScoreParams()
    track: TrackParams = TrackParams()


def load(path: Path = Path("params.yaml")) -> Params:
    """Read and check `params.yaml`. Raises BadInput with the key and what was expected there."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise BadInput(path, "no such file", "run medprobe in the project's folder") from None
    except yaml.YAMLError as error:
        raise BadInput(path, f"not YAML: {error}") from None
    return section(Params, content, path)


def section(kind: type[SectionType], content: Any, where: object) -> SectionType:
    """Check one section against its class. Raises BadInput for the first thing that is wrong.

    >>> section(ScoreParams, {"bootstrp": 5}, "params.yaml: score")
    Traceback (most recent call last):
    ...
    medprobe.errors.BadInput: params.yaml: score: unknown key bootstrp (did you mean 'bootstrap'?)
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] != "extra_forbidden":
            raise BadInput(where, f"{key}: {first['msg']}, found {first['input']!r}") from None
        known = _keys_beside(kind, first["loc"])
        raise BadInput(where, f"unknown key {key}{nearest(str(first['loc'][-1]), known)}") from None


def _keys_beside(kind: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys allowed where `loc` points to a wrong one."""
    fields: Any = kind
    for part in loc[:-1]:
        if isinstance(fields, type) and issubclass(fields, BaseModel):
            fields = fields.model_fields[str(part)].annotation if part in fields.model_fields else 0
        elif getattr(fields, "__args__", None):
            fields = fields.__args__[-1]
    named = isinstance(fields, type) and issubclass(fields, BaseModel)
    return list(fields.model_fields) if named else []
