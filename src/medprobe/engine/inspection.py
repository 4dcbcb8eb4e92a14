"""What a checkpoint is, which kinds of model it can serve, and how its weights are read.

transformers fills weights that a file lacks with random numbers. Here that is an error. Code that
comes with a checkpoint is never run: weights are read as safetensors or by torch's safe loader.
"""

import logging
import pickle
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from medprobe.core.errors import BadInput
from medprobe.core.params import ModelKind
from medprobe.engine.configuration import Head, first_line, heads, listed, read_config
from medprobe.engine.tokenizer import load_tokenizer

logging.getLogger("accelerate").setLevel(logging.ERROR)

AUTO_CLASSES: Final[dict[Head, Any]] = {
    "encoder": transformers.AutoModel,
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
    "classifier": transformers.AutoModelForSequenceClassification,
}
UNWRAP: Final = "save the weights of the network itself, without what wraps it"
# What no method reads (a pooler), and what networks compute by themselves, in old files.
UNREAD: Final = re.compile(
    r"\bpooler\b|\b(attn|attention)\.bias$|\.version$|\._\w+$|(position_ids|token_type_ids|inv_freq"
    r"|masked_bias|(cos|sin)_cached|embed_positions\.weights|num_batches_tracked)$"
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's description."""

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


def inspect(folder: Path) -> Checkpoint:
    """Describe a checkpoint and the kinds of model that it can serve.

    The weights stay on the disk where Accelerate is installed; otherwise safetensors are mapped.
    """
    config = read_config(folder)
    placement: dict[str, Any] = (
        {"device_map": "meta"} if find_spec("accelerate") else {"dtype": "auto"}
    )
    with torch.random.fork_rng(devices=[]):  # transformers draws the weights that are missing
        missing: dict[str, tuple[str, ...]] = {
            head: read_model(folder, head, config, **placement)[1] for head in heads(config)
        }
    tokenizer = load_tokenizer(folder, config)
    kinds: tuple[ModelKind, ...] = tuple(head for head in heads(config) if not missing[head])
    if "causal" in kinds and tokenizer.chat_template:
        kinds = ("chat", *kinds)
    algorithm = type(tokenizer.backend_tokenizer.model).__name__
    lacks = {head: names for head, names in missing.items() if names}
    return Checkpoint(folder, config.model_type, algorithm, kinds, lacks)


def count_parameters(folder: Path, head: Head) -> int:
    """Count the parameters of a checkpoint as it is probed: with its head, shared weights once.

    They follow from its configuration, which every loaded checkpoint is checked against. No weight
    is read. A pooler counts for no head, since no method reads it.
    """
    with torch.device("meta"):
        model = AUTO_CLASSES[head].from_config(read_config(folder))
    sizes = {id(weight): weight.numel() for weight in model.parameters()}
    pooler = getattr(model, "pooler", None) or getattr(model.base_model, "pooler", None)
    for weight in pooler.parameters() if isinstance(pooler, torch.nn.Module) else ():
        sizes.pop(id(weight), None)
    return sum(sizes.values())


def read_model(
    folder: Path, head: Head, config: Any, *, is_whole: bool = True, **placement: Any
) -> tuple[Any, tuple[str, ...]]:
    """Read a checkpoint's weights by transformers, which also gets `placement`."""
    try:
        model, info = AUTO_CLASSES[head].from_pretrained(
            folder,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            generation_config=transformers.GenerationConfig(),  # `load` reads the checkpoint's
            local_files_only=True,
            trust_remote_code=False,
            **placement,
        )
    except MemoryError:
        raise
    except Exception as error:  # of transformers' many models, and of the loaders of weights
        reason, remedy = first_line(error), "fetch the checkpoint again"
        if isinstance(error, ImportError):  # of a package for quantised weights
            remedy = "install it, or choose a checkpoint that does not need it"
        if isinstance(error, pickle.UnpicklingError):
            reason = "its files hold other things than weights, or code, which is never run"
        if isinstance(error, AttributeError) and "'dict' object" in str(error):
            reason, remedy = "its files hold weights below a name, such as state_dict", UNWRAP
        problem = f"the model cannot be loaded: {reason}"
        raise BadInput(folder, problem, remedy) from error
    # The head of a classifier is new by design, so that the files need to fit the body alone.
    required = f"{model.base_model_prefix}." if head == "classifier" else ""
    for name, shape, expected in sorted(info["mismatched_keys"]):
        if name.startswith(required):
            problem = f"{name} is of shape {tuple(shape)}, config.json says {tuple(expected)}"
            raise BadInput(folder, problem, "fetch the checkpoint again")
    if wrapped := _wrapped(info["unexpected_keys"], {*info["missing_keys"]}):
        problem = f"its weights have a name before those of config.json's model ({listed(wrapped)})"
        raise BadInput(folder, problem, UNWRAP)
    unread = [name for name in sorted(info["unexpected_keys"]) if _is_of_body(model, name)]
    if is_whole and unread:
        problem = f"{len(unread)} weights are not read by the model of config.json"
        remedy = "take the config.json that belongs to them, or choose another model"
        raise BadInput(folder, f"{problem} ({listed(unread)})", remedy)
    missing = sorted(info["missing_keys"])
    return model, tuple(n for n in missing if n.startswith(required) and "pooler." not in n)


def _wrapped(unexpected: Iterable[str], missing: set[str]) -> list[str]:
    """Return the names whose rest is that of a missing weight, if these are most of the missing.

    >>> _wrapped(["module.bert.a", "module.bert.b"], {"bert.a", "bert.b", "bert.c"})
    ['module.bert.a', 'module.bert.b']
    """
    found = [
        name
        for name in sorted(unexpected)
        if any(name[at + 1 :] in missing for at, letter in enumerate(name) if letter == ".")
    ]
    return found if len(found) > len(missing) / 2 else []


def _is_of_body(model: Any, name: str) -> bool:
    """Return whether a weight of this name would change what the body of a model computes."""
    part = name.removeprefix(f"{model.base_model_prefix}.").partition(".")[0]
    return part in dict(model.base_model.named_children()) and not UNREAD.search(name)
