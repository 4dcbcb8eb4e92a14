"""Checkpoints in other formats become plain ones: GGUF files of llama.cpp, and LoRA adapters.

Adapters (Hu et al. 2021) are merged into the weights that they were trained on.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open

from medprobe.core.checkpoints import ADAPTER
from medprobe.core.errors import BadInput
from medprobe.engine.configuration import first_line, heads, read_config
from medprobe.engine.inspection import AUTO_CLASSES

ENDING: Final = ".gguf"
MAGIC: Final = b"GGUF"


def is_gguf(path: Path) -> bool:
    """Return whether a path is that of a GGUF file."""
    return path.suffix == ENDING and not path.is_dir()


def convert(path: Path, folder: Path) -> None:
    """Write a GGUF file's model as a checkpoint: configuration, tokenizer, weights in float32.

    Quantised weights have the values that llama.cpp computes with. transformers refuses to save a
    model of dequantised weights, so that they go into a model without that past.

    Args:
        path: The file.
        folder: An empty folder.

    Raises:
        BadInput: There is no such file, it is damaged, transformers does not read its
            architecture, or a package is missing.
    """
    if not path.is_file():
        raise BadInput(path, "no such file", "give the path of a .gguf file")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BadInput(path, "not a GGUF file", "download it again")
    for package in ("accelerate", "gguf"):
        if importlib.util.find_spec(package) is None:
            remedy = "pip install 'medprobe[gguf]'"
            raise BadInput(path, f"the package {package} is not there", remedy)
    from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_gguf_pytorch_utils

    bar = "tqdm"  # which `disable_progress_bar` leaves
    setattr(modeling_gguf_pytorch_utils, bar, lambda tensors, **_: tensors)
    place: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **place)
        read = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **place)
    except Exception as error:  # of transformers and of gguf, of any kind
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        problem = f"transformers cannot read it ({reason[:200]})"
        raise BadInput(path, problem, "use a checkpoint of the model in place of it") from error
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(read)(config)
    plain.load_state_dict(read.state_dict())
    plain.generation_config = read.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def merge(folder: Path, adapter: Path) -> None:
    """Merge a LoRA adapter into the weights of a checkpoint; the weights keep their type.

    Args:
        folder: The checkpoint, which is changed.
        adapter: The folder of the adapter.

    Raises:
        BadInput: PEFT is not installed, or the adapter belongs to another checkpoint.
    """
    _check_adapter(adapter)
    from peft import PeftModel, get_peft_model_state_dict

    head = heads(read_config(folder))[0]
    base = AUTO_CLASSES[head].from_pretrained(
        folder, dtype="auto", local_files_only=True, trust_remote_code=False
    )
    try:
        adapted = PeftModel.from_pretrained(base, adapter)
        adapter_names = {*get_peft_model_state_dict(adapted, save_embedding_layers=False)}
        with safe_open(adapter / ADAPTER[1], framework="pt") as weights:
            if difference := adapter_names ^ {*weights.keys()}:
                raise ValueError(
                    f"weights of one that the other has not, {min(difference)} for one"
                )
        merged = adapted.merge_and_unload(safe_merge=True)
    except Exception as error:  # of PEFT's many adapters
        problem = f"it does not fit this {base.config.model_type} checkpoint: {first_line(error)}"
        raise BadInput(adapter, problem, "use the checkpoint that it was trained on") from error
    for file in [*folder.glob("*.safetensors*"), *folder.glob("pytorch_model*")]:
        file.unlink()
    merged.save_pretrained(folder)


def _check_adapter(adapter: Path) -> None:
    """Raise BadInput unless this is a LoRA adapter and PEFT is installed."""
    if importlib.util.find_spec("peft") is None:
        problem = "this adapter needs the package peft, which is not installed"
        raise BadInput(adapter, problem, "pip install 'medprobe[large]'")
    try:
        kind = json.loads((adapter / ADAPTER[0]).read_text(encoding="utf-8"))["peft_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{ADAPTER[0]} is missing or does not name a kind of adapter"
        raise BadInput(adapter, problem, "give the folder of a LoRA adapter") from error
    if kind != "LORA":
        raise BadInput(adapter, f"an adapter of kind {kind}", "only LORA can be merged")
    if not (adapter / ADAPTER[1]).is_file():
        raise BadInput(adapter, f"it has no {ADAPTER[1]}", "save the adapter as safetensors")
