"""`params.yaml`, typed. Errors name the row, and the nearest valid key for an unknown one.

The settings of a method, benchmark or sample model have a type of their own: the class `Settings`
in its file. `check.py` validates all of `params.yaml` against these classes.

A paper or extension adds a section by a plugin of the kind `settings`: the file
`settings/<section>.py` ends with its `SETTINGS`, which say all that there is about the section.
`settings/<section>.yaml` is what the params.yaml of a new project has of it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    Self,
    TypeVar,
    get_args,
)

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from medprobe.core.checkpoints import parse_hub_name
from medprobe.core.errors import BadInput, nearest
from medprobe.core.plugins import find_plugins, load
from medprobe.core.servers import ServerParams
from medprobe.core.settings import Choices, Name, Section, parse_section

Device = Literal["auto", "cpu", "cuda", "spread"]
Precision = Literal["float32", "bfloat16", "float16", "8bit", "4bit"]
DeviceName = Annotated[str, StringConstraints(pattern=r"^(cpu|[0-9]+)$")]


def _check_whole(folder: Path) -> Path:
    if str(folder).startswith("~"):
        raise PydanticCustomError("folder", "~ stands for nothing here, write the whole path")
    return folder


MemorySize = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?[KMG]i?B$")]  # e.g. 20GiB


class EngineParams(Section):
    """Where and how models run."""

    device: Device = "auto"
    """Where models run. `auto` takes a GPU if there is one. `spread` spreads a large model over all
    GPUs, then memory, then disk."""
    max_memory: dict[DeviceName, MemorySize] = Field({})
    """With `spread`: memory for weights per GPU (by number) and `cpu`, such as `20GiB`."""
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
    """Address of the cluster's head. `auto`: the cluster that this machine belongs to."""

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


class HubModel(Section):
    """A checkpoint on the model hub."""

    hub: str
    """Name on the model hub, such as `dmis-lab/biobert-base-cased-v1.2`, or its address there."""
    revision: str | None = None
    """A commit, tag or branch. Empty: `main` at the time of the download."""
    adapter: "HubModel | None" = None
    """A LoRA adapter that is merged into the weights."""

    @model_validator(mode="before")
    @classmethod
    def _take_address(cls, choices: Any) -> Any:
        """Take the address of a model's page in place of its name."""
        if isinstance(choices, str):
            named: Any = f"expected {{hub: {choices}}}"
            raise PydanticCustomError("hub", named)
        if not isinstance(choices, dict) or not isinstance(choices.get("hub"), str):
            return choices
        parsed = parse_hub_name(choices["hub"].strip())
        if parsed is None:
            message = "expected a model's name on the hub, such as gpt2 or lab/bert, or its address"
            raise PydanticCustomError("hub", message)
        name, revision = parsed
        return {**choices, "hub": name, "revision": choices.get("revision") or revision}


class ModelParams(Section):
    """Facts about a model that is probed."""

    trained_until: str | None = None
    """Date after which the model has read nothing, as `YYYY-MM-DD`. The report flags later texts.
    """
    published: str | None = None
    """The checkpoint's name in the papers' files, such as `BioBERT v1.1`: `medprobe list
    checkpoints` lists them. Its published numbers then appear in the report. After the name of a
    paper's file and a slash, they are those of this version."""
    untaught_twin_of: str | None = None
    """The model that is trained alike but has read the facts. The report compares the two."""
    lower_case: bool = False
    """Read all texts in lower case and without accents, as BERT's `do_lower_case`. Otherwise its
    own tokenizer decides."""
    group: str | None = Field(None, min_length=1)
    """The group of models that it belongs to, such as `general`, `adapted` or `biomedical`. The
    report compares the groups."""
    larger_than: str | None = None
    """The smaller model of its series, such as `bert-base` of `bert-large`. The report compares the
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


ModelKind = Literal["masked", "encoder", "causal", "chat", "seq2seq"]
MODEL_KINDS: Final[tuple[ModelKind, ...]] = get_args(ModelKind)
REQUIRED: Final = ("seed", "engine.precision", "score", "track")  # dvc.yaml names them


class Models(Section):
    """The models to probe by kind. Each kind maps the user's name for a model to facts about it."""

    masked: dict[Name, ModelParams] = Field({})
    """Masked language models, such as BERT."""
    encoder: dict[Name, ModelParams] = Field({})
    """Encoders without a language-model head. Only `contrastive` and `classifier` can probe them.
    """
    causal: dict[Name, ModelParams] = Field({})
    """Causal language models, such as GPT-2."""
    chat: dict[Name, ModelParams] = Field({})
    """Causal models tuned to answer in a chat, with a chat template in their tokenizer."""
    seq2seq: dict[Name, ModelParams] = Field({})
    """Encoder-decoders, such as T5 and BART."""

    def by_kind(self) -> dict[ModelKind, dict[str, ModelParams]]:
        """Return the models of each kind."""
        return {kind: getattr(self, kind) for kind in MODEL_KINDS}

    def all(self) -> dict[str, ModelParams]:
        """Return the facts about every model, by name."""
        return {name: model for models in self.by_kind().values() for name, model in models.items()}

    def kind(self, name: str) -> ModelKind:
        """Return the kind of a model."""
        for kind, models in self.by_kind().items():
            if name in models:
                return kind
        raise BadInput("params.yaml", f"models: no model '{name}'{nearest(name, [*self.all()])}")


class ScoreParams(Section):
    """How predictions become scores."""

    bootstrap: int = Field(1000, gt=0)
    """Resamples per interval of a number that is no mean, such as F1."""
    confidence: float = 0.95
    """Confidence level of intervals, such as 0.95 for 95 %."""
    main: dict[ModelKind, Name] = Field({})
    """The method of each kind's main results, which are compared with each other across methods and
    kinds, such as `{causal: likelihood}`. Otherwise the one that `medprobe run` takes for the kind,
    or else the first that `methods` names."""
    reference: Name | None = None
    """Of more than twenty models: the one whose comparisons are corrected apart from all others."""

    @field_validator("confidence")
    @classmethod
    def _is_a_share(cls, value: float) -> float:
        if not 0 < value < 1:
            raise PydanticCustomError("share", "expected a share between 0 and 1, such as 0.95")
        return value


class TrackParams(Section):
    """What is written to MLflow."""

    text: bool = False
    """Write names and prompts, which may be licensed, into MLflow and the report too. Otherwise
    identifiers only."""


class Params(Section):
    """All of `params.yaml`. A missing section is empty.

    A section of a paper or an extension is read by its settings, as in `SWEEPS.of(params)`.
    """

    model_config = ConfigDict(extra="allow")

    seed: int = Field(2021, ge=0)
    """Seed of every random draw."""
    engine: EngineParams = EngineParams()
    """Where and how models run."""
    sample: Choices = Field({})
    """Sizes of the sample world."""
    train: dict[Name, Choices] = Field({})
    """Sample models to train: a name, and the recipe."""
    continued: dict[Name, Choices] = Field({})
    """Sample models that continue the training of another one."""
    fetch: dict[Name, HubModel] = Field({})
    """Models to download: a name of your choice, and where the model is on the hub."""
    folders: dict[Name, Annotated[Path, AfterValidator(_check_whole)]] = Field({})
    """Models on this machine: a name of your choice, and the folder of the checkpoint, or a `.gguf`
    file."""
    servers: dict[Name, ServerParams] = Field({})
    """Models behind an OpenAI-compatible server: a name of your choice, and where the server is."""
    models: Models = Models()
    """The models to probe, by kind: their names, and facts about each."""
    benchmarks: dict[str, dict[Name, Choices]] = Field({})
    """The benchmarks to build: a builder, a name of your choice, and the builder's settings."""
    methods: dict[ModelKind, dict[str, dict[Name, Choices]]] = Field({})
    """Which method probes which benchmark: the kind of model, the method, the benchmark, and
    settings."""
    score: ScoreParams = ScoreParams()
    """How predictions become numbers."""
    track: TrackParams = TrackParams()
    """What is written into MLflow."""

    @model_validator(mode="before")
    @classmethod
    def _with_added_sections(cls, content: Any) -> Any:
        """Validate the sections that papers and extensions add, each by its own type."""
        if not isinstance(content, dict):
            return content
        added: dict[str, Any] = {}
        for name in [name for name in content if name not in cls.model_fields]:
            if name not in cls.types():
                error = InitErrorDetails(type="extra_forbidden", loc=(name,), input=content[name])
                raise ValidationError.from_exception_data("Params", [error])
            one: Any = GenericAlias(dict, (str, cls.types()[name]))  # so that errors name it
            added |= TypeAdapter(one).validate_python({name: content[name]})
        return content | added

    @classmethod
    def types(cls) -> dict[str, Any]:
        """Return the type of each section."""
        return super().types() | {
            name: found.type for name, found in find_settings().items() if found.type
        }

    @property
    def model_sections(self) -> dict[str, Any]:
        """The sections that say where checkpoints come from, by name; their keys are models."""
        sections = ("train", "continued", "fetch", "folders", "servers")
        return {name: getattr(self, name) for name in sections}

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
        methods = self.methods.get(self.models.kind(model), {})
        return benchmark in methods.get(method, {})

    def results(self, model: str) -> list[tuple[str, str]]:
        """List the methods that probe a model, each with its benchmarks, as pairs of names."""
        of_kind = self.methods.get(self.models.kind(model), {})
        return [(method, benchmark) for method, names in of_kind.items() for benchmark in names]

    @property
    def has_results(self) -> bool:
        """Whether any method probes any model."""
        return any(map(self.results, self.models.all()))

    def builder(self, benchmark: str) -> str:
        """Return the builder of a benchmark."""
        for builder, names in self.benchmarks.items():
            if benchmark in names:
                return builder
        similar = nearest(benchmark, sorted(self.benchmark_names))
        raise BadInput("params.yaml", f"benchmarks: no benchmark '{benchmark}'{similar}")

    def choices(self, model: str, method: str, benchmark: str) -> Choices:
        """Return the settings of a method on a benchmark for a model's kind."""
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


Content = TypeVar("Content")
JOINED: Final = re.compile(r"""(?:[^#"']*[{,]\s*|\s*)([\w-]+):(?![\s/]|$)""")  # a key and its value


@dataclass(frozen=True)
class Settings(Generic[Content]):
    """What a paper or an extension adds to `params.yaml`.

    No number follows from `check`, so a stage does not depend on what it imports.

    Attributes:
        name: of the section, that of the file.
        type: of the section; None if there is none, and others are checked only.
        files: the folder of `data/` that has a file for each key, and a gate for each file.
        check: refuses what is wrong in it, before any stage runs.
    """

    name: str
    type: "type[Content] | None" = None
    files: str = ""
    check: Callable[[Params], None] | None = None

    def of(self, params: Params) -> Content:
        """Return the section; an empty one where params.yaml has none."""
        assert self.type
        content: Content = (params.model_extra or {}).get(self.name, self.type())
        return content


@cache
def find_settings() -> dict[str, Settings[Any]]:
    """Return the settings of all plugins, by name."""
    return {
        name: load(plugin, "SETTINGS", Settings)
        for name, plugin in find_plugins("settings").items()
    }


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and validate `params.yaml`."""
    try:
        text = path.read_text(encoding="utf-8")
        sections = YAML(typ="safe").load(text) or {}  # as DVC does
    except FileNotFoundError:
        raise BadInput(path, "no such file", "run medprobe in the project's folder") from None
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        for number, content in enumerate(text.splitlines()[: mark.line + 1] if mark else (), 1):
            if joined := JOINED.match(content):
                remedy = f"write a space after the colon of {joined[1]}:"
                raise BadInput(path, f"not YAML: line {number}", remedy) from None
        said = error.problem or ""
        is_tab = mark and re.match(rf"(.*\n){{{mark.line}}}\s*\t", text)
        remedy = "indent by spaces, not by a tab" if is_tab else ""
        if "expected key" in said or "expected <block end>" in said or "mapping values" in said:
            remedy = remedy or "indent it like the lines beside it, and close brackets before it"
        if mark and re.match(rf"(.*\n){{{mark.line}}}[^#\"']*://", text):
            remedy = remedy or "put addresses in quotes"
        if "expected ','" in said:
            remedy = remedy or "close the bracket on the line before"
        raise BadInput(path, f"not YAML: {line}{error.problem}", remedy) from None
    except YAMLError as error:
        raise BadInput(path, f"not YAML: {error}") from None
    if not isinstance(sections, dict):
        raise BadInput(path, f"a {type(sections).__name__}, expected sections, such as models:")
    for name in REQUIRED:
        section, _, key = name.rpartition(".")
        keys = sections.get(section) if section else sections
        if not isinstance(keys, dict) or key not in keys:
            owner = section or name
            similar = (
                "" if owner in sections else nearest(owner, [*{*sections} - {*Params.types()}])
            )
            problem = f"{name} is missing{similar}"
            raise BadInput(path, problem, "write it down: dvc.yaml names it")
    return parse_section(Params, sections, path)
