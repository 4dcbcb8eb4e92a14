"""`params.yaml`, typed. A wrong key is refused with the nearest right one, a wrong type by its row.

The settings of one method, benchmark or sample model are typed by the file they belong to, its
class `Settings`; `check.py` holds all of `params.yaml` against these classes, to the leaves.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from medprobe.core.errors import BadInput, nearest


class Section(BaseModel):
    """Part of `params.yaml`: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SectionType = TypeVar("SectionType", bound=Section)


Device = Literal["auto", "cpu", "cuda", "spread"]
Precision = Literal["float32", "bfloat16", "float16", "8bit", "4bit"]
Place = Annotated[str, StringConstraints(pattern=r"^(cpu|[0-9]+)$")]
Size = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?[KMG]i?B$")]  # e.g. 20GiB


class EngineParams(Section):
    """Where and how models run."""

    device: Device = "auto"  # spread: a large model over all GPUs, then memory, then the disk
    max_memory: dict[Place, Size] = {}  # for spread: what of a GPU, by number, and cpu is used
    precision: Precision = "float32"  # 8bit, 4bit: weights of large models, by bitsandbytes
    token_budget: int | None = Field(None, gt=0)  # tokens in a batch, padding counted; none: auto
    offline: bool = False  # use only folders and the hub's local cache
    executor: Literal["local", "ray"] = "local"  # this process, or the workers of a Ray cluster
    address: str = "auto"  # of the cluster's head; auto: the one that this machine belongs to

    @model_validator(mode="after")
    def _limits_what_is_spread(self) -> Self:
        if self.max_memory and self.device != "spread":
            raise PydanticCustomError("limits", "max_memory is for device: spread")
        return self

    @property
    def here(self) -> "EngineParams":
        """Of this process: where workers compute, it leaves the devices to them."""
        update = {"device": "cpu", "max_memory": {}}
        return self if self.executor == "local" else self.model_copy(update=update)

    @property
    def there(self) -> "EngineParams":
        """Of a worker, which computes itself."""
        return self.model_copy(update={"executor": "local"})


class RankingSettings(Section):
    """What every method may be told that ranks answers to prompts which hold their subject."""

    neutral: bool = False  # ask the prompts without their subjects too: variant `neutral`


class HubModel(Section):
    """A checkpoint of the model hub."""

    hub: str  # e.g. dmis-lab/biobert-v1.1
    revision: str | None = None  # a commit; none: what `main` is when it is fetched
    adapter: "HubModel | None" = None  # a LoRA adapter of it, merged into its weights


class ModelParams(Section):
    """What is known of a model that is probed."""

    trained_until: str | None = None  # date after which it has read nothing, YYYY-MM-DD
    published: str | None = None  # its name in the papers' tables, e.g. BioBERT
    untaught_twin_of: str | None = None  # the model that is like it, but has read the facts
    averaged: bool = True  # false: it is left out of means over models


ModelKind = Literal["masked", "encoder", "causal", "chat", "seq2seq"]
MODEL_KINDS: Final[tuple[ModelKind, ...]] = get_args(ModelKind)
Name = Annotated[  # of models, benchmarks, sets: a folder's, a shell's and DVC's
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)
]
NAMED: Final = ("seed", "engine.precision", "rewire", "score", "track")  # by dvc.yaml
Swept = Literal["mask_ratio", "learning_rate", "temperature", "max_sentences"]
SWEPT: Final[tuple[Swept, ...]] = get_args(Swept)  # settings of rewiring, varied one at a time
Choices = dict[str, Any]  # settings that the file they belong to types


def _listed(value: Any) -> Any:
    """The keys of a map without settings, `{set-0, set-1}`: DVC takes a map that is left out for an
    empty one, a list it does not, and a key that is a number it passes over."""
    if isinstance(value, tuple):  # read before
        return value
    if not isinstance(value, dict) or any(settings for settings in value.values()):
        raise PydanticCustomError("names", "expected names in braces, such as {set-0, set-1}")
    for key in value:
        if not isinstance(key, str):
            raise PydanticCustomError("quotes", f'{key} needs quotes here: {{"{key}"}}')
    return tuple(value)


Listed = Annotated[tuple[Name, ...], BeforeValidator(_listed)]
Number = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$")]
Values = Annotated[tuple[Number, ...], BeforeValidator(_listed)]


class Models(Section):
    """The models to probe by kind, each a map from a name of one's own to what is known of it."""

    masked: dict[Name, ModelParams] = {}
    encoder: dict[Name, ModelParams] = {}
    causal: dict[Name, ModelParams] = {}
    chat: dict[Name, ModelParams] = {}
    seq2seq: dict[Name, ModelParams] = {}

    def by_kind(self) -> dict[ModelKind, dict[str, ModelParams]]:
        """All of them."""
        return {
            "masked": self.masked,
            "encoder": self.encoder,
            "causal": self.causal,
            "chat": self.chat,
            "seq2seq": self.seq2seq,
        }

    def all(self) -> dict[str, ModelParams]:
        """What is known of every model, by name."""
        return {name: one for models in self.by_kind().values() for name, one in models.items()}

    def kind(self, name: str) -> ModelKind:
        """A model's kind. Raises BadInput where there is none of that name."""
        for kind, models in self.by_kind().items():
            if name in models:
                return kind
        raise BadInput("params.yaml", f"models: no model '{name}'{nearest(name, [*self.all()])}")


class SentenceSet(Section):
    """A file of data/sentences, a replicate of Contrastive-Probe."""

    models: tuple[Name, ...] | None = None  # those that are rewired on it; none: all
    rewire: Choices = {}  # settings that differ from those of the section `rewire`


class Sweeps(Section):
    """Settings of rewiring that are varied one at a time, and of which models on which sets."""

    models: Listed = ()
    sets: Listed = ()
    mask_ratio: Values = ()
    learning_rate: Values = ()
    temperature: Values = ()
    max_sentences: Values = ()

    def values(self) -> dict[Swept, tuple[str, ...]]:
        """The values of each setting."""
        return {
            "mask_ratio": self.mask_ratio,
            "learning_rate": self.learning_rate,
            "temperature": self.temperature,
            "max_sentences": self.max_sentences,
        }


class ScoreParams(Section):
    """How predictions become numbers."""

    bootstrap: int = Field(1000, gt=0)  # resamples for each interval
    confidence: float = Field(0.95, gt=0, lt=1)


class TrackParams(Section):
    """What goes into MLflow."""

    text: bool = False  # names and prompts too, which may be licensed; else identifiers only


class Params(Section):
    """All of `params.yaml`. A section that is left out is empty."""

    seed: int = Field(2021, ge=0)
    engine: EngineParams = EngineParams()
    sample: Choices = {}
    train: dict[Name, Choices] = {}  # a sample model: its recipe
    continued: dict[Name, Choices] = {}  # a sample model: which other one it goes on from
    fetch: dict[Name, HubModel] = {}  # a model: where on the hub it is
    folders: dict[Name, Path] = {}  # a model: the folder of its checkpoint
    models: Models = Models()
    sentence_sets: dict[Name, SentenceSet] = {}  # files of data/sentences, each a replicate
    rewire: Choices = {}
    sweeps: Sweeps = Sweeps()
    benchmarks: dict[str, dict[Name, Choices]] = {}  # builder: a name of one's own: its settings
    methods: dict[ModelKind, dict[str, dict[Name, Choices]]] = {}  # kind: method: benchmark: …
    score: ScoreParams = ScoreParams()
    track: TrackParams = TrackParams()

    def builder(self, benchmark: str) -> str:
        """The builder of a benchmark. Raises BadInput where there is none of that name."""
        for builder, named in self.benchmarks.items():
            if benchmark in named:
                return builder
        known = [name for named in self.benchmarks.values() for name in named]
        problem = f"benchmarks: no benchmark '{benchmark}'{nearest(benchmark, known)}"
        raise BadInput("params.yaml", problem)

    def choices(self, model: str, method: str, benchmark: str) -> Choices:
        """The settings of a method on a benchmark for a model's kind. Raises BadInput where
        `methods` has none."""
        kind = self.models.kind(model)
        of_kind = self.methods.get(kind, {})
        if method not in of_kind:
            problem = f"methods.{kind}: no method '{method}'{nearest(method, [*of_kind])}"
            raise BadInput("params.yaml", problem, f"there are: {', '.join(of_kind) or 'none'}")
        if benchmark not in of_kind[method]:
            problem = f"methods.{kind}.{method}: no benchmark '{benchmark}'"
            remedy = f"there are: {', '.join(of_kind[method]) or 'none'}"
            raise BadInput("params.yaml", problem + nearest(benchmark, [*of_kind[method]]), remedy)
        return of_kind[method][benchmark]


def load(path: Path = Path("params.yaml")) -> Params:
    """Read and check `params.yaml`. Raises BadInput with the key and what was expected there."""
    try:
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8")) or {}  # as DVC does
    except FileNotFoundError:
        raise BadInput(path, "no such file", "run medprobe in the project's folder") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadInput(path, f"not YAML: {line}{error.problem}") from None
    except YAMLError as error:
        raise BadInput(path, f"not YAML: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(path, f"a {type(content).__name__}, expected sections, such as models:")
    for name in NAMED:
        if _missing(content, name.split(".")):
            raise BadInput(path, f"{name} is missing", "write it down: dvc.yaml names it")
    return section(Params, content, path)


def _missing(content: Any, keys: list[str]) -> bool:
    for key in keys:
        if not isinstance(content, dict) or key not in content:
            return True
        content = content[key]
    return False


def section(kind: type[SectionType], content: Any, where: object) -> SectionType:
    """Check one section against its class. Raises BadInput for the first thing that is wrong.

    >>> section(ScoreParams, {"bootstrp": 5}, "params")
    Traceback (most recent call last):
    ...
    medprobe.core.errors.BadInput: params: unknown key bootstrp (did you mean 'bootstrap'?)
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["loc"][-1:] == ("[key]",):
            raise _no_name(where, [str(part) for part in first["loc"][:-1]]) from None
        if first["type"] != "extra_forbidden":
            raise BadInput(where, f"{key}: {first['msg']}, found {first['input']!r}") from None
        known = _keys_beside(kind, first["loc"])
        raise BadInput(where, f"unknown key {key}{nearest(str(first['loc'][-1]), known)}") from None


def _no_name(where: object, loc: list[str]) -> BadInput:
    """Of a name that is none, with one that would do: for a name of the hub's, where it goes."""
    *parents, name = loc
    problem = f"{'.'.join(parents)}: {name!r} is no name"
    own = re.sub("[^A-Za-z0-9_-]+", "-", name.rpartition("/")[2]).strip("-_")[:60]
    remedy = "a name is of letters, digits, _ and -, begins with a letter or digit, at most 60 long"
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) and own:
        remedy = f"choose one of your own, and say in fetch: {{{own}: {{hub: {name}}}}}"
    return BadInput(where, problem, remedy)


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
