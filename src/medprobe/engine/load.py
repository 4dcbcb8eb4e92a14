"""Loading checkpoints onto a device, with the head that is needed and only finite weights."""

import importlib.util
import os
import platform
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

from medprobe.core.errors import BadInput
from medprobe.core.files import ScratchFolder
from medprobe.core.params import EngineParams
from medprobe.engine.configuration import Head, first_line, heads, listed, read_config, read_object
from medprobe.engine.inspection import MissingHead, inspect, read_model
from medprobe.engine.tokenizer import load_tokenizer

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

UNLIMITED: Final = 512  # tokens, for models with relative positions and no limit of their own
CPU_VALUES: Final = 512 * 768  # tokens times hidden size of a batch
GPU_TOKENS: Final = 65_536
PER_LAYER: Final = ("layer_types", "attention_window")  # lists of a configuration
LARGE: Final = ("causal", "seq2seq")  # heads of models that are spread or quantised
CACHE: Final = (  # keys and values, as an argument and an output; transformers 5.24 renamed them
    "cache" if "cache" in CausalLMOutputWithPast.__dataclass_fields__ else "past_key_values"
)
PLAIN_LAYERS: Final = {DynamicLayer, DynamicSlidingWindowLayer}  # keys and values, and no more
LATER_TOKENS: Final = 0.01  # of the largest output: more than rounding changes
OUTPUTS: Final = ("logits", "last_hidden_state")  # what a model gives, by its head


token_counter: Final[Counter[str]] = (
    Counter()
)  # what models have read in this process: tokens, with padding


# The last model that was loaded, by what it was loaded from, where models are shared.
_shared: ContextVar[dict[tuple[Any, ...], "Model"] | None] = ContextVar("_shared", default=None)


class NotANumber(BadInput):
    """A model's weight or output is NaN or infinite, so that it cannot rank anything."""


@dataclass(frozen=True)
class Model:
    """A loaded model, ready to run: in evaluation mode, on its device."""

    name: str
    model: Any
    tokenizer: Any
    device: torch.device
    dtype: torch.dtype
    max_length: int  # tokens in its window, special ones counted
    token_budget: int  # tokens in a batch, padding counted
    own_settings: dict[str, Any] = field(default_factory=dict)  # the checkpoint's, for writing
    keeps_states: bool = True  # it can read on from the keys and values of each token and layer

    @property
    def config(self) -> Any:
        """The configuration of the part for text, which may be part of a larger one."""
        return self.model.config.get_text_config()

    def generation_config(self, *, own_settings: bool, **settings: Any) -> GenerationConfig:
        """Return the configuration of `generate` for these settings.

        The checkpoint's settings, such as n-grams that may not come twice, hold next to them only
        if `own_settings`. A model that does not keep states reads whole texts.
        """
        with self.explained_settings(own_settings=own_settings):
            return GenerationConfig(
                **(self.own_settings if own_settings else {"top_k": 0})
                | {"pad_token_id": self.tokenizer.pad_token_id, "return_dict_in_generate": True}
                | {"output_scores": True, **settings}
                | ({} if self.keeps_states else {"use_cache": False})
            )

    @contextmanager
    def explained_settings(self, *, own_settings: bool) -> Iterator[None]:
        """Within the block, refuse settings of the checkpoint that `generate` cannot use."""
        try:
            yield
        except (ValueError, TypeError, ImportError) as error:
            if not own_settings:
                raise
            problem = f"its generation settings cannot be used: {first_line(error)}"
            raise BadInput(self.name, problem, "set own_settings: false") from error


@contextmanager
def share_model() -> Iterator[None]:
    """Within the block, load the same checkpoint with the same head once.

    One model is kept at a time. A classifier is always loaded, since fine-tuning changes it.
    """
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def load(
    folder: Path,
    head: Head,
    engine: EngineParams | None = None,
    labels: int = 2,
    layers: int | None = None,
) -> Model:
    """Load a checkpoint with the head that a method needs."""
    engine = engine or EngineParams()
    shared = _shared.get()
    if shared is None or head == "classifier":
        return _load(folder, head, engine, labels, layers)
    key = (folder, head, engine.model_dump_json(), layers)
    if key not in shared:
        shared.clear()  # before another model takes its memory
        shared[key] = _load(folder, head, engine, labels, layers)
    return shared[key]


def _load(folder: Path, head: Head, engine: EngineParams, labels: int, layers: int | None) -> Model:
    """Load a checkpoint, as `load` does where nothing is shared."""
    use_threads()
    config = read_config(folder)
    if head != "classifier" and head not in heads(config):
        problem = f"a {config.model_type} checkpoint is no {head} model"
        raise MissingHead(inspect(folder), problem)
    spread = engine.device == "spread" and head in LARGE
    scratch = ScratchFolder() if spread else None
    placement = _placement_options(folder, head, engine, scratch)
    if head == "classifier":
        config.num_labels = labels
    if layers is not None:
        _cut_layers(folder, config, layers)
    model, missing = read_model(folder, head, config, is_whole=layers is None, **placement)
    if missing:
        problem = f"{len(missing)} weights of the {head} model are missing ({listed(missing)})"
        raise MissingHead(inspect(folder), problem)
    if head == "encoder" and getattr(model, "pooler", None) is not None:
        model.pooler = None  # no method reads it, and some checkpoints come without
    if scratch:
        weakref.finalize(model, scratch.remove)
    _check_weights(folder, model)
    device = choose_device(engine.device)
    tokenizer = load_tokenizer(folder, config)
    if head == "masked" and tokenizer.mask_token is None:
        remedy = "name its mask_token in tokenizer_config.json"
        raise BadInput(folder, "its tokenizer has no mask token", remedy)
    if head == "seq2seq":
        start = getattr(model.config, "decoder_start_token_id", None)
        if start not in range(config.get_text_config().vocab_size):
            remedy = (
                "name the token that its answers begin with: T5's padding, BART's end of a text"
            )
            problem = f"decoder_start_token_id is {start}, which is no token of its vocabulary"
            raise BadInput(folder / "config.json", problem, remedy)
    length = window_of(model.config, tokenizer, model)
    if "device_map" not in placement:
        model = model.to(device)
    model.eval()
    keeps_states = head != "causal" or _keeps_states(folder, model, device)
    model.get_input_embeddings().register_forward_hook(_count_tokens)
    for part in {model, model.base_model} if head == "classifier" else {model}:
        part.register_forward_hook(partial(_check_outputs, folder.name))
    budget = engine.token_budget or token_budget(device, config)
    return Model(
        *(folder.name, model, tokenizer, device, placement["dtype"], length, budget),
        own_settings=_own_settings(folder),
        keeps_states=keeps_states,
    )


def _own_settings(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's generation settings, which config.json has where it is alone."""
    path = folder / "generation_config.json"
    if not path.is_file():
        path = folder / "config.json"
    content = read_object(path)
    content = (content.get("text_config") or {}) | content
    known = GenerationConfig().__dict__
    return {name: content[name] for name in known if content.get(name) is not None}


def _cut_layers(folder: Path, config: Any, layers: int) -> None:
    """Let a configuration describe the first layers alone; the others' weights stay unread."""
    text = config.get_text_config()
    if not 0 < layers <= text.num_hidden_layers:
        raise BadInput(folder, f"no first {layers} layers: it has {text.num_hidden_layers}")
    text.num_hidden_layers = layers
    for name in PER_LAYER:
        if isinstance(values := getattr(text, name, None), list):
            setattr(text, name, values[:layers])


def _placement_options(
    folder: Path, head: Head, engine: EngineParams, scratch: ScratchFolder | None
) -> dict[str, Any]:
    """Return transformers' options for the type of the weights, and for their devices if spread.

    Layers of a spread model that fit into no memory stay in its files. Weights that transformers
    makes from several weights of the files are written to the folder `scratch`.
    """
    quantised = engine.precision in ("8bit", "4bit")
    if quantised and head not in LARGE:
        problem = f"{engine.precision} is for {' and '.join(LARGE)} models"
        raise BadInput(folder, problem, "set engine.precision: float32")
    placement: dict[str, Any] = {}
    if scratch:
        _require_package("accelerate", "engine.device: spread")
        if not any(folder.glob("*.safetensors")):
            problem = "its weights are no safetensors, so that it cannot be spread"
            raise BadInput(folder, problem, "save it again by transformers, or set engine.device")
        limits = {_device_key(name): size for name, size in engine.max_memory.items()}
        placement = {"device_map": "auto", "max_memory": limits or None}
        placement["offload_folder"] = str(scratch.work)
    if not quantised:
        return {"dtype": getattr(torch, engine.precision), **placement}
    for package in ("accelerate", "bitsandbytes"):
        _require_package(package, f"engine.precision: {engine.precision}")
    bits = transformers.BitsAndBytesConfig(
        load_in_8bit=engine.precision == "8bit",
        load_in_4bit=engine.precision == "4bit",
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    placed = {"device_map": {"": str(choose_device(engine.device))}, **placement}
    return {"dtype": torch.bfloat16, "quantization_config": bits, **placed}


def _device_key(name: str) -> str | int:
    """Return a key of max_memory in Accelerate's form."""
    if name == "cpu":
        return name
    if int(name) >= torch.cuda.device_count():
        raise BadInput("engine.max_memory", f"there is no GPU {name}", "name those that are there")
    return int(name)


def _require_package(package: str, setting: str) -> None:
    if importlib.util.find_spec(package) is None:
        remedy = "pip install 'medprobe[large]'"
        raise BadInput(setting, f"the package {package} is not there", remedy)


def _check_weights(folder: Path, model: Any) -> None:
    """Raise NotANumber for a weight with NaN or infinity, also for weights left on the disk."""
    for prefix, module in model.named_modules():
        with _in_memory(module):
            for name, weight in module.named_parameters(prefix, recurse=False):
                low, high = weight.aminmax()  # NaN where any is; unlike isfinite it copies nothing
                if not (low.isfinite() and high.isfinite()):
                    problem = f"the weight {name} holds NaN or infinity"
                    raise NotANumber(folder, problem, "fetch or train the checkpoint again")


def _in_memory(module: torch.nn.Module) -> AbstractContextManager[None]:
    """Bring a module's own weights into memory, wherever Accelerate has put them."""
    if not any(weight.is_meta for weight in module.parameters(recurse=False)):
        return nullcontext()
    from accelerate.utils import align_module_device

    return align_module_device(module)


def _keeps_states(folder: Path, model: Any, device: torch.device) -> bool:
    """Return whether all that a causal model keeps of a text is keys and values of each token.

    Others, such as recurrent networks, read whole texts.
    """
    try:
        with torch.inference_mode():
            out = model(torch.tensor([[0, 0], [0, 1]], device=device), use_cache=True)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # of transformers' many models
        raise BadInput(folder, f"the model cannot be run: {first_line(error)}") from error
    one, other = out.logits[:, 0].float()
    if (one - other).abs().max() > LATER_TOKENS * one.abs().max():
        problem = "a causal model, and yet a token's output depends on later ones"
        raise BadInput(folder, problem, "set is_decoder: true in config.json if it has it")
    cache = out.get(CACHE)
    is_plain = type(cache) is DynamicCache and PLAIN_LAYERS.issuperset(map(type, cache.layers))
    return is_plain and not getattr(model.config.get_text_config(), "attention_chunk_size", None)


def _count_tokens(embeddings: torch.nn.Module, inputs: object, output: Any) -> None:
    states = output[0] if isinstance(output, tuple) else output  # I-BERT's come with a scale
    token_counter["tokens"] += states[..., 0].numel()


def _check_outputs(name: str, model: torch.nn.Module, inputs: object, outputs: Any) -> None:
    """Raise NotANumber where an output is NaN or infinite; minus infinity is probability zero.

    In training the loss is checked instead.
    """
    if model.training:
        return
    for output in (outputs[key] for key in OUTPUTS if key in outputs):
        if not output.sum(dtype=torch.float32) < torch.inf:
            raise NotANumber(name, "the model's output is NaN or infinite")


def token_budget(device: torch.device, config: Any) -> int:
    """Return the tokens in a batch that suit a device.

    On a CPU it is what its caches hold (512 for a BERT-base, more for smaller models:
    docs/reference/performance.md), on a GPU enough to keep it busy.
    """
    width = config.get_text_config().hidden_size
    return max(64, CPU_VALUES // width) if device.type == "cpu" else GPU_TOKENS


def use_threads() -> int:
    """Let torch use the cores that this process may use, and return their number.

    It is OMP_NUM_THREADS where that is set; otherwise the cores of the affinity mask, or of the
    control group's quota where that is less. Threads beyond free cores make everything slower.
    """
    threads = os.environ.get("OMP_NUM_THREADS", "")
    try:
        count = int(threads.split(",")[0]) if threads else min(_affinity(), _quota())
        torch.set_num_threads(count)
    except (ValueError, RuntimeError) as error:
        problem = f"{threads!r} is no number of threads"
        raise BadInput("OMP_NUM_THREADS", problem, "set it to 1 or more, or unset it") from error
    return count


def _affinity() -> int:
    """Return the number of cores that this process may run on; on macOS all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return the whole cores that the control group grants, all where it sets no limit."""
    try:
        granted, period = file.read_text().split()
        return max(1, int(granted) // int(period))
    except (OSError, ValueError):
        return os.cpu_count() or 1


def choose_device(setting: str) -> torch.device:
    """Return the device of a setting of `engine.device`."""
    if setting == "cuda" and not torch.cuda.is_available():
        raise BadInput("engine.device", "cuda is not there", "use auto or cpu")
    if setting in ("auto", "spread"):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(setting)


def device_name(device: torch.device) -> str:
    """Return a readable name of a device: a GPU's name, a processor's kind."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"


def window_of(config: Any, tokenizer: Any, model: Any = None) -> int:
    """Return how many tokens a model reads: the least its tokenizer and positions allow.

    Without the model itself, it is not known that RoBERTa's positions start after its padding.
    """
    limits = [tokenizer.model_max_length]
    if positions := getattr(config.get_text_config(), "max_position_embeddings", None):
        limits.append(positions)
    for name, part in model.named_modules() if model else ():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            limits.append(len(part.weight) - part.padding_idx - 1)
    length = min(limits)
    return int(length) if length < 1_000_000 else UNLIMITED
