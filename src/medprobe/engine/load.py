"""What a checkpoint is, what it can serve, and how it is loaded.

transformers fills weights that a file lacks with random numbers and says so in a log line; here a
missing head is an error. No code that comes with a checkpoint is run, and weights are read as
safetensors or by torch's safe loader.
"""

import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers.models.auto import modeling_auto

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, ModelKind
from medprobe.engine.linear import accelerate

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

Head = Literal["encoder", "masked", "causal", "seq2seq", "classifier"]
AUTO_CLASSES: Final[dict[Head, Any]] = {
    "encoder": transformers.AutoModel,
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
    "classifier": transformers.AutoModelForSequenceClassification,
}
UNLIMITED: Final = 512  # tokens, for models with relative positions and no limit of their own
CPU_VALUES: Final = 512 * 768  # tokens times hidden size of a batch
GPU_TOKENS: Final = 65_536
SHOWN: Final = 3  # names of missing weights that an error lists


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a checkpoint without loading it."""

    folder: Path
    architecture: str  # transformers' model type, e.g. bert
    tokenizer: str  # e.g. WordPiece, BPE, Unigram
    kinds: tuple[ModelKind, ...]  # what it can serve with the weights it has
    missing: dict[str, tuple[str, ...]]  # heads of its architecture → the weights it lacks for them


class MissingHead(BadInput):
    """A checkpoint lacks the head that it was to be loaded with. `kinds` is what it can serve."""

    def __init__(self, checkpoint: Checkpoint, problem: str) -> None:
        self.kinds = checkpoint.kinds
        remedy = f"it can serve as: {', '.join(self.kinds) or 'nothing'}"
        super().__init__(checkpoint.folder, problem, remedy)


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

    @property
    def config(self) -> Any:
        """The configuration of what reads and writes text, which may be part of a larger one."""
        return self.model.config.get_text_config()


def inspect(folder: Path) -> Checkpoint:
    """Say what a checkpoint is and which kinds of model it can serve; no weights are loaded.

    Raises BadInput where the folder holds no checkpoint.
    """
    config = read_config(folder)
    present = weight_names(folder)
    missing: dict[str, tuple[str, ...]] = {
        head: _lacking(AUTO_CLASSES[head], config, present) for head in _heads(config)
    }
    kinds = tuple(head for head in _heads(config) if not missing[head])
    lacks = {head: names for head, names in missing.items() if names}
    return Checkpoint(folder, config.model_type, _tokenizer_kind(folder), kinds, lacks)


def load(folder: Path, head: Head, engine: EngineParams | None = None, labels: int = 2) -> Model:
    """Load a checkpoint with the head that a method needs.

    `labels` is the number of classes of a `classifier`, whose head is new by design and drawn from
    torch's generator: seed it first. Raises BadInput where the folder is no checkpoint, MissingHead
    where it lacks the weights of that head.
    """
    engine = engine or EngineParams()
    use_threads()
    config = read_config(folder)
    if head != "classifier" and head not in _heads(config):
        problem = f"a {config.model_type} checkpoint is no {head} model"
        raise MissingHead(inspect(folder), problem)
    dtype = getattr(torch, engine.precision)
    more = {"num_labels": labels} if head == "classifier" else {}
    if more:
        config.num_labels = labels
    try:
        model, info = AUTO_CLASSES[head].from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise _unreadable(folder, error) from error
    if missing := _missing(info["missing_keys"], head, model):
        shown = ", ".join(missing[:SHOWN]) + (" …" if len(missing) > SHOWN else "")
        problem = f"{len(missing)} weights of the {head} model are missing ({shown})"
        raise MissingHead(inspect(folder), problem)
    if head == "encoder" and getattr(model, "pooler", None) is not None:
        model.pooler = None  # no method reads it, and some checkpoints come without
    device = device_of(engine.device)
    tokenizer = load_tokenizer(folder, config)
    length = _window(model, tokenizer)
    model = model.to(device).eval()
    accelerate(model)
    budget = engine.token_budget or token_budget(device, config)
    return Model(folder.name, model, tokenizer, device, dtype, length, budget)


def token_budget(device: torch.device, config: Any) -> int:
    """Tokens in a batch that suit a device: on a CPU what its caches hold (512 for a BERT-base,
    more for smaller models: docs/performance.md), on a GPU enough to keep it busy."""
    width = config.get_text_config().hidden_size
    return max(64, CPU_VALUES // width) if device.type == "cpu" else GPU_TOKENS


def read_config(folder: Path) -> Any:
    """A checkpoint's configuration; old BERT files that do not say `model_type` are recognised."""
    if not folder.is_dir():
        raise BadInput(folder, "no such model folder", "run `dvc repro` to make it")
    path = folder / "config.json"
    if not path.is_file():
        raise BadInput(folder, "no config.json, so this is no checkpoint")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "model_type" not in content and "type_vocab_size" in content:
            content["model_type"] = "bert"  # BERT's first files, before there were other types
        return transformers.AutoConfig.for_model(**content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"not the configuration of a known model: {_first_line(error)}"
        raise BadInput(path, problem, "give model_type, e.g. bert") from error


def load_tokenizer(folder: Path, config: Any) -> Any:
    """A checkpoint's fast tokenizer, with a padding token.

    Where only a vocab.txt says what it is, it is cased if the vocabulary holds capital letters
    (transformers would lower-case in any case).
    """
    more = {}
    vocabulary = folder / "vocab.txt"
    told = any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json"))
    if vocabulary.is_file() and not told:
        words = [line for line in vocabulary.read_text(encoding="utf-8").split("\n")]
        more["do_lower_case"] = not any(
            word != word.lower() for word in words if not word.startswith("[")
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, config=config, local_files_only=True, trust_remote_code=False, **more
        )
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise BadInput(folder, f"no tokenizer that can be read: {_first_line(error)}") from error
    if not tokenizer.is_fast:
        raise BadInput(folder, "the tokenizer is not a fast one", "save it with tokenizer.json")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def use_threads() -> int:
    """Let torch use the cores this process may use, and return their number.

    That is OMP_NUM_THREADS where it is set; else the cores of the affinity mask, or of the
    control group's quota where that is less, as far as the system has these: threads beyond free
    cores make everything slower.
    """
    if told := os.environ.get("OMP_NUM_THREADS", ""):
        count = int(told.split(",")[0])
    else:
        count = min(_affinity(), _quota())
    torch.set_num_threads(count)
    return count


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _quota(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Whole cores that the control group grants, many where it sets no limit."""
    try:
        granted, period = file.read_text().split()
        return max(1, int(granted) // int(period))
    except (OSError, ValueError):
        return os.cpu_count() or 1


def device_of(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise BadInput("engine.device", "cuda is not there", "use auto or cpu")
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)


def _heads(config: Any) -> tuple[ModelKind, ...]:
    """The kinds of model that an architecture is made for."""
    if config.is_encoder_decoder:
        return ("seq2seq",)
    if config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return ("masked", "encoder")
    if config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return ("causal",)
    return ("encoder",)


def weight_names(folder: Path) -> set[str]:
    """Names of the weights in a checkpoint's files, read from their headers where they have one."""
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if (folder / index).is_file():
            return set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"])
    try:
        if (file := folder / "model.safetensors").is_file():
            with safe_open(file, framework="pt") as weights:
                return set(weights.keys())
        if (file := folder / "pytorch_model.bin").is_file():
            return set(torch.load(file, map_location="meta", weights_only=True))
    except (OSError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise _unreadable(folder, error) from error
    raise BadInput(folder, "no weights: neither model.safetensors nor pytorch_model.bin")


def _lacking(auto_class: Any, config: Any, present: set[str]) -> tuple[str, ...]:
    """Weights that a model of this class needs and a file does not have, as `load` would say."""
    with torch.device("meta"):
        model = auto_class.from_config(config)
    prefix = f"{model.base_model_prefix}."
    today = {name.replace(".gamma", ".weight").replace(".beta", ".bias") for name in present}
    there = {name.removeprefix(prefix) for name in today}
    expected = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    lacking = {name for name in expected if name.removeprefix(prefix) not in there}
    return tuple(_missing(lacking, "encoder", model))


def _missing(names: set[str], head: Head, model: Any) -> list[str]:
    """The missing weights that matter: the pooler is never read, a classifier's head is new."""
    tied = set(model.all_tied_weights_keys)
    missing = sorted(name for name in names if "pooler." not in name and name not in tied)
    if head == "classifier":
        return [name for name in missing if name.startswith(f"{model.base_model_prefix}.")]
    return missing


def _window(model: Any, tokenizer: Any) -> int:
    """Tokens that fit the model: the least that its tokenizer and its positions allow."""
    limits = [tokenizer.model_max_length]
    if positions := getattr(model.config.get_text_config(), "max_position_embeddings", None):
        limits.append(positions)
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            limits.append(part.num_embeddings - part.padding_idx - 1)  # RoBERTa starts after it
    least = min(limits)
    return int(least) if least < 1_000_000 else UNLIMITED


def _tokenizer_kind(folder: Path) -> str:
    """The tokenizer's algorithm as its files tell it."""
    if (file := folder / "tokenizer.json").is_file():
        return str(json.loads(file.read_text(encoding="utf-8"))["model"]["type"])
    kinds = {"vocab.txt": "WordPiece", "merges.txt": "BPE", "spiece.model": "Unigram"}
    return next((kind for name, kind in kinds.items() if (folder / name).is_file()), "unknown")


def _unreadable(folder: Path, error: Exception) -> BadInput:
    return BadInput(folder, f"the weights cannot be read safely: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
