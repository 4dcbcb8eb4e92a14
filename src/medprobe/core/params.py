"""`params.yaml`, typed. Errors name the row, and the nearest valid key for an unknown one.

The settings of a method, benchmark or sample model have a type of their own: the class `Settings`
in its file. `check.py` validates all of `params.yaml` against these classes.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args
from urllib.parse import urlsplit

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
    """A section of `params.yaml`: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SectionType = TypeVar("SectionType", bound=Section)


Device = Literal["auto", "cpu", "cuda", "spread"]
Precision = Literal["float32", "bfloat16", "float16", "8bit", "4bit"]
DeviceName = Annotated[str, StringConstraints(pattern=r"^(cpu|[0-9]+)$")]
MemorySize = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?[KMG]i?B$")]  # e.g. 20GiB


class EngineParams(Section):
    """Where and how models run."""

    device: Device = "auto"
    """Where models run. `auto` takes a GPU if there is one. `spread` spreads a large model over all
    GPUs, then memory, then disk."""
    max_memory: dict[DeviceName, MemorySize] = {}
    """With `spread`: how much memory of a GPU (by its number) or of the `cpu` may hold weights,
    such as `20GiB`."""
    precision: Precision = "float32"
    """Precision of the weights. Less than `float32` moves some ranks. `8bit` and `4bit` need
    bitsandbytes."""
    token_budget: int | None = Field(None, gt=0)
    """Tokens in a batch, padding included. Empty: chosen by model and device."""
    offline: bool = False
    """Use only folders and the local cache of the hub, never the network."""
    executor: Literal["local", "ray"] = "local"
    """Who computes parts: this process (`local`), or the workers of a Ray cluster (`ray`)."""
    address: str = "auto"
    """Address of the Ray cluster's head. `auto`: the cluster that this machine belongs to."""

    @model_validator(mode="after")
    def _limits_what_is_spread(self) -> Self:
        if self.max_memory and self.device != "spread":
            raise PydanticCustomError("limits", "max_memory is for device: spread")
        return self

    @property
    def for_driver(self) -> "EngineParams":
        """The parameters of this process. It leaves the devices to the workers if these compute."""
        update = {"device": "cpu", "max_memory": {}}
        return self if self.executor == "local" else self.model_copy(update=update)

    @property
    def for_worker(self) -> "EngineParams":
        """The parameters of a worker, which computes in its own process."""
        return self.model_copy(update={"executor": "local"})


class RankingSettings(Section):
    """Settings of every method that ranks answers to prompts which contain their subject."""

    neutral: bool = False
    """Ask the prompts without their subjects too, as a control. Adds the variant `neutral`."""


class SampledSettings(Section):
    """Settings of every builder whose sources the sample world has too."""

    invented: bool = False
    """The facts are the sample world's. Methods are calibrated by them: it is known how often each
    sample model has read them."""


class HubModel(Section):
    """A checkpoint on the model hub."""

    hub: str
    """Name on the model hub, such as `dmis-lab/biobert-base-cased-v1.2`."""
    revision: str | None = None
    """A commit, tag or branch. Empty: `main` at the time of the download."""
    adapter: "HubModel | None" = None
    """A LoRA adapter that is merged into the weights."""


KeyVariable = Annotated[str, StringConstraints(pattern=r"^\$[A-Za-z_][A-Za-z0-9_]*$")]


class ServerParams(Section):
    """A model behind an OpenAI-compatible server, of the kind under which `models` lists it."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$")]
    """Where it is, such as `http://127.0.0.1:8000/v1`. It contains no key."""
    model: str
    """The model's name on the server, one of those that `/v1/models` lists."""
    key: KeyVariable | None = None
    """The environment variable with its key, such as `$LLAMA_KEY`. Empty: no key."""
    requests: int = Field(8, gt=0)
    """Requests at once."""
    timeout: float = Field(300, gt=0)
    """Seconds until a request counts as failed. It is then sent again."""
    max_requests: int = Field(1_000_000, gt=0)
    """The most requests that one method may send for one benchmark. More are refused."""
    own: bool = False
    """The server is under your control. Otherwise, and unless it is on this machine, it gets no
    prompt of a benchmark whose terms forbid to share it."""
    zero_retention: bool = False
    """Your statement that the server keeps no prompt. It is recorded with every result."""
    tokenizer: Path | None = None
    """A folder with the model's `config.json` and tokenizer. Ranking names and scoring texts need
    it."""

    @property
    def host(self) -> str:
        """The host, without port and path."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine.

        >>> ServerParams(url="http://127.0.0.1:8000/v1", model="m").is_loopback
        True
        """
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class ModelParams(Section):
    """Facts about a model that is probed."""

    trained_until: str | None = None
    """Date after which the model has read nothing, as `YYYY-MM-DD`. The report flags later texts.
    """
    published: str | None = None
    """The checkpoint's name in the papers' files, such as `BioBERT v1.1`: `medprobe list
    checkpoints` lists them. Its published numbers then appear in the report."""
    untaught_twin_of: str | None = None
    """The model that is trained alike but has read the facts. The report compares the two."""
    lower_case: bool = False
    """Whether the fetched checkpoint reads all texts in lower case and without accents, as BERT's
    `do_lower_case` does. Otherwise its own tokenizer decides."""
    group: str | None = Field(None, min_length=1)
    """The group of models that it belongs to, such as `general`, `adapted` or `biomedical`. The
    report compares the groups."""
    larger_than: str | None = None
    """The smaller model of its family, such as `bert-base` of `bert-large`. The report compares the
    two."""
    averaged: bool | dict[str, bool] = True
    """Whether the model counts in means over models. `{t-rex-free: false}`: in all but those of
    this subset."""

    def counts_in(self, subset: str) -> bool:
        """Return whether the model counts in means over models on a subset.

        >>> ModelParams(averaged={"t-rex-free": False}).counts_in("squad")
        True
        """
        averaged = self.averaged
        return averaged.get(subset, True) if isinstance(averaged, dict) else averaged


ModelKind = Literal["masked", "encoder", "causal", "chat", "seq2seq", "imported"]
MODEL_KINDS: Final[tuple[ModelKind, ...]] = get_args(ModelKind)
IMPORTED: Final = "-imported"  # ends the name of each model of kind `imported`, and of no other
Name = Annotated[  # of models, benchmarks, sets: valid in folders, shells and DVC
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)
]
REQUIRED: Final = ("seed", "engine.precision", "rewire", "score", "track")  # dvc.yaml names them
Swept = Literal["mask_ratio", "learning_rate", "temperature", "max_sentences", "layers"]
SWEPT: Final[tuple[Swept, ...]] = get_args(Swept)  # settings of rewiring, varied one at a time
Choices = dict[str, Any]  # settings, typed in the file they belong to


def _names_of_map(value: Any) -> Any:
    """Return the keys of a map without settings, such as `{set-0, set-1}`.

    DVC reads a missing map as an empty one, but not a missing list, and it ignores keys that are
    numbers. So params.yaml holds names as keys, and these must be texts.
    """
    if isinstance(value, tuple):  # validated already
        return value
    if not isinstance(value, dict) or any(settings for settings in value.values()):
        raise PydanticCustomError("names", "expected names in braces, such as {set-0, set-1}")
    for key in value:
        if not isinstance(key, str):
            raise PydanticCustomError("quotes", f'{key} needs quotes here: {{"{key}"}}')
    return tuple(value)


Names = Annotated[tuple[Name, ...], BeforeValidator(_names_of_map)]
Number = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$")]
Values = Annotated[tuple[Number, ...], BeforeValidator(_names_of_map)]


class Models(Section):
    """The models to probe by kind. Each kind maps the user's name for a model to facts about it."""

    masked: dict[Name, ModelParams] = {}
    """Masked language models, such as BERT."""
    encoder: dict[Name, ModelParams] = {}
    """Encoders without a language-model head. Only `contrastive` and `classifier` can probe them.
    """
    causal: dict[Name, ModelParams] = {}
    """Causal language models, such as GPT-2."""
    chat: dict[Name, ModelParams] = {}
    """Causal models tuned to answer in a chat, with a chat template in their tokenizer."""
    seq2seq: dict[Name, ModelParams] = {}
    """Encoder-decoders, such as T5 and BART."""
    imported: dict[Name, ModelParams] = {}
    """Models that other programs asked. They have results in data/imported and no checkpoint, and
    their names end in `-imported`."""

    def by_kind(self) -> dict[ModelKind, dict[str, ModelParams]]:
        """Return the models of each kind."""
        return {kind: getattr(self, kind) for kind in MODEL_KINDS}

    def all(self) -> dict[str, ModelParams]:
        """Return the facts about every model, by name."""
        return {name: model for models in self.by_kind().values() for name, model in models.items()}

    def kind(self, name: str) -> ModelKind:
        """Return the kind of a model.

        Raises:
            BadInput: No model has this name.
        """
        for kind, models in self.by_kind().items():
            if name in models:
                return kind
        raise BadInput("params.yaml", f"models: no model '{name}'{nearest(name, [*self.all()])}")


class SentenceSet(Section):
    """A file of data/sentences, one replicate of Contrastive-Probe."""

    models: tuple[Name, ...] | None = None
    """The models that are rewired on this set. Empty: all masked models and encoders."""
    rewire: Choices = {}
    """Settings that differ from the section `rewire`."""


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
    """Values of `rewire.max_sentences`, in quotes. Each set must have so many sentences."""
    layers: Values = ()
    """Values of `rewire.layers`, in quotes. A model with fewer layers is left out of a value."""

    def values(self) -> dict[Swept, tuple[str, ...]]:
        """Return the values of each setting."""
        return {setting: getattr(self, setting) for setting in SWEPT}


class ScoreParams(Section):
    """How predictions become scores."""

    bootstrap: int = Field(1000, gt=0)
    """Bootstrap resamples per interval."""
    confidence: float = Field(0.95, gt=0, lt=1)
    """Confidence level of intervals."""


class TrackParams(Section):
    """What is written to MLflow."""

    text: bool = False
    """Write names and prompts, which may be licensed, into MLflow and the report too. Otherwise
    identifiers only."""


class Params(Section):
    """All of `params.yaml`. A missing section is empty."""

    seed: int = Field(2021, ge=0)
    """Seed of every random draw."""
    engine: EngineParams = EngineParams()
    """Where and how models run."""
    sample: Choices = {}
    """Sizes of the sample world."""
    train: dict[Name, Choices] = {}
    """Sample models to train: a name, and the recipe."""
    continued: dict[Name, Choices] = {}
    """Sample models that continue the training of another one."""
    fetch: dict[Name, HubModel] = {}
    """Models to download: a name of your choice, and where the model is on the hub."""
    folders: dict[Name, Path] = {}
    """Models on this machine: a name of your choice, and the folder of the checkpoint."""
    servers: dict[Name, ServerParams] = {}
    """Models behind a server: a name of your choice, and where the server is."""
    models: Models = Models()
    """The models to probe, by kind: their names, and facts about each."""
    sentence_sets: dict[Name, SentenceSet] = {}
    """Sentence sets for rewiring: files of `data/sentences` without `.txt`. Each is a replicate."""
    rewire: Choices = {}
    """How models are rewired (Contrastive-Probe)."""
    sweeps: Sweeps = Sweeps()
    """Settings of rewiring that are varied one at a time."""
    benchmarks: dict[str, dict[Name, Choices]] = {}
    """The benchmarks to build: a builder, a name of your choice, and the builder's settings."""
    methods: dict[ModelKind, dict[str, dict[Name, Choices]]] = {}
    """Which method probes which benchmark: the kind of model, the method, the benchmark, and
    settings."""
    score: ScoreParams = ScoreParams()
    """How predictions become numbers."""
    track: TrackParams = TrackParams()
    """What is written into MLflow."""

    @property
    def names(self) -> dict[str, Any]:
        """The benchmarks, models and methods, by name alone: what results there are to be."""
        return {
            "benchmarks": {builder: sorted(names) for builder, names in self.benchmarks.items()},
            "models": {kind: sorted(names) for kind, names in self.models.by_kind().items()},
            "methods": {
                kind: {method: sorted(benchmarks) for method, benchmarks in methods.items()}
                for kind, methods in self.methods.items()
            },
        }

    @property
    def lower_case(self) -> list[str]:
        """The models that read all texts in lower case because `models` says so."""
        return sorted(name for name, model in self.models.all().items() if model.lower_case)

    @property
    def benchmark_names(self) -> frozenset[str]:
        """The names of all benchmarks."""
        return frozenset(name for names in self.benchmarks.values() for name in names)

    def names_result(self, model: str, method: str, benchmark: str) -> bool:
        """Return whether a model is to be probed by a method on a benchmark, of any names."""
        if model not in self.models.all() or benchmark not in self.benchmark_names:
            return False
        if model in self.models.imported:  # whatever the other program called its method
            return True
        methods = self.methods.get(self.models.kind(model), {})
        return benchmark in methods.get(method, {})

    def builder(self, benchmark: str) -> str:
        """Return the builder of a benchmark.

        Raises:
            BadInput: No benchmark has this name.
        """
        for builder, names in self.benchmarks.items():
            if benchmark in names:
                return builder
        similar = nearest(benchmark, sorted(self.benchmark_names))
        raise BadInput("params.yaml", f"benchmarks: no benchmark '{benchmark}'{similar}")

    def choices(self, model: str, method: str, benchmark: str) -> Choices:
        """Return the settings of a method on a benchmark for a model's kind.

        Raises:
            BadInput: `methods` does not list this combination.
        """
        kind = self.models.kind(model)
        methods = self.methods.get(kind, {})
        if method not in methods:
            problem = f"methods.{kind}: no method '{method}'{nearest(method, [*methods])}"
            raise BadInput("params.yaml", problem, f"there are: {', '.join(methods) or 'none'}")
        if benchmark not in methods[method]:
            problem = f"methods.{kind}.{method}: no benchmark '{benchmark}'"
            remedy = f"there are: {', '.join(methods[method]) or 'none'}"
            raise BadInput("params.yaml", problem + nearest(benchmark, [*methods[method]]), remedy)
        return methods[method][benchmark]


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and validate `params.yaml`.

    Raises:
        BadInput: With the key that is wrong, and what was expected there.
    """
    try:
        sections = YAML(typ="safe").load(path.read_text(encoding="utf-8")) or {}  # as DVC does
    except FileNotFoundError:
        raise BadInput(path, "no such file", "run medprobe in the project's folder") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadInput(path, f"not YAML: {line}{error.problem}") from None
    except YAMLError as error:
        raise BadInput(path, f"not YAML: {error}") from None
    if not isinstance(sections, dict):
        raise BadInput(path, f"a {type(sections).__name__}, expected sections, such as models:")
    for name in REQUIRED:
        section, _, key = name.rpartition(".")
        keys = sections.get(section) if section else sections
        if not isinstance(keys, dict) or key not in keys:
            raise BadInput(path, f"{name} is missing", "write it down: dvc.yaml names it")
    return parse_section(Params, sections, path)


def parse_section(section_type: type[SectionType], content: Any, where: object) -> SectionType:
    """Validate one section against its class.

    Args:
        section_type: The class.
        content: The section as YAML holds it.
        where: Named in errors.

    Raises:
        BadInput: For the first thing that is wrong.

    >>> parse_section(ScoreParams, {"bootstrp": 5}, "params")
    Traceback (most recent call last):
    ...
    medprobe.core.errors.BadInput: params: unknown key bootstrp (did you mean 'bootstrap'?)
    """
    try:
        return section_type.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["loc"][-1:] == ("[key]",):
            raise _invalid_name(where, [str(part) for part in problem["loc"][:-1]]) from None
        if problem["type"] != "extra_forbidden":
            is_secret = problem["loc"][:1] == ("servers",)  # which may hold a key
            value = "" if is_secret else f", found {problem['input']!r}"
            if not key:  # of the section as a whole
                raise BadInput(where, problem["msg"]) from None
            raise BadInput(where, f"{key}: {problem['msg']}{value}") from None
        siblings = _keys_beside(section_type, problem["loc"])
        raise BadInput(
            where, f"unknown key {key}{nearest(str(problem['loc'][-1]), siblings)}"
        ) from None


def _invalid_name(where: object, loc: list[str]) -> BadInput:
    """Return the error for an invalid name. For a name of the hub it proposes a valid one."""
    *parents, name = loc
    problem = f"{'.'.join(parents)}: {name!r} is not a valid name"
    suggestion = re.sub("[^A-Za-z0-9_-]+", "-", name.rpartition("/")[2]).strip("-_")[:60]
    remedy = "a name is of letters, digits, _ and -, begins with a letter or digit, at most 60 long"
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) and suggestion:
        remedy = f"choose one of your own, and say in fetch: {{{suggestion}: {{hub: {name}}}}}"
    return BadInput(where, problem, remedy)


def _keys_beside(section_type: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys that are allowed where `loc` points to a wrong one."""
    fields: Any = section_type
    for part in loc[:-1]:
        if isinstance(fields, type) and issubclass(fields, BaseModel):
            fields = fields.model_fields[str(part)].annotation if part in fields.model_fields else 0
        elif getattr(fields, "__args__", None):
            fields = fields.__args__[-1]
    is_section = isinstance(fields, type) and issubclass(fields, BaseModel)
    return list(fields.model_fields) if is_section else []
