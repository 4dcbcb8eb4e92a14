"""Checkpoints in other formats become plain ones: GGUF files of llama.cpp, and LoRA adapters.

Adapters (Hu et al. 2021) are merged into the weights that they were trained on.
"""

import importlib.util
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from medprobe.core.checkpoints import (
    ADAPTER,
    CONFIG,
    TEMPLATES,
    TOKENIZER,
    VOCABULARIES,
    files_of,
    matching,
)
from medprobe.core.errors import BadInput
from medprobe.engine.configuration import first_line, heads, listed, read_config, read_object
from medprobe.engine.inspection import AUTO_CLASSES

ENDING: Final = ".gguf"
MAGIC: Final = b"GGUF"
EMBEDDINGS: Final = re.compile(  # what PEFT puts around the name of a layer of embeddings
    r"^base_model\.model\.|(\.modules_to_save|\.original_module|\.base_layer|\.token_adapter)*\.weight$"
)


def is_gguf(path: Path) -> bool:
    """Return whether a path is that of a GGUF file."""
    return path.suffix == ENDING and not path.is_dir()


def convert(path: Path, folder: Path) -> None:
    """Write a GGUF file's model as a checkpoint: configuration, tokenizer, weights in float32.

    Quantised weights have the values that llama.cpp computes with. transformers refuses to save a
    model of dequantised weights, so that they go into a model without that past.
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

    Where the adapter comes with a tokenizer or a template for chats, the checkpoint gets it.
    """
    _check_adapter(adapter)
    if not (folder / CONFIG).is_file():
        named = _read_adapter(adapter).get("base_model_name_or_path") or "its model"
        remedy = f"name {named} as hub and this as its adapter, or put both into one folder"
        raise BadInput(adapter, "an adapter without the checkpoint below it", remedy)
    from peft import PeftModel, get_peft_model_state_dict

    base = _load_base(folder)
    try:
        embeddings = _fit_embeddings(base, adapter / ADAPTER[1])
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # PEFT's calls
            adapted = PeftModel.from_pretrained(base, adapter)
            expected = {*get_peft_model_state_dict(adapted, save_embedding_layers=False)}
        with safe_open(adapter / ADAPTER[1], framework="pt") as weights:
            if difference := (expected ^ {*weights.keys()}) - embeddings:
                raise ValueError(
                    f"weights of one that the other has not, {min(difference)} for one"
                )
        merged = adapted.merge_and_unload(safe_merge=True)
    except Exception as error:  # of PEFT's many adapters
        if isinstance(error, SafetensorError):
            problem = f"{ADAPTER[1]} cannot be read: {first_line(error)}"
            raise BadInput(adapter, problem, "fetch the adapter again") from error
        problem = f"it does not fit this {base.config.model_type} checkpoint: {first_line(error)}"
        raise BadInput(adapter, problem, "use the checkpoint that it was trained on") from error
    for file in [*folder.glob("*.safetensors*"), *folder.glob("pytorch_model*")]:
        file.unlink()
    merged.save_pretrained(folder)
    _take_tokenizer(adapter, folder)


def find_other_base(adapter: Path, hub: str) -> str | None:
    """Return the base that an adapter names, where that is not this model of the hub.

    Many name a folder of the machine where they were trained: then only its last part counts.
    """
    named = str(_read_adapter(adapter).get("base_model_name_or_path") or hub).rstrip("/")
    is_path = named.startswith((".", "/", "~")) or named.count("/") > 1
    same = named.split("/")[-1] == hub.rsplit("/", maxsplit=1)[-1] if is_path else named == hub
    return None if same else named


def _load_base(folder: Path) -> Any:
    """Load a checkpoint whole, in the type of its weights."""
    head = heads(read_config(folder))[0]
    try:
        base, info = AUTO_CLASSES[head].from_pretrained(
            folder,
            dtype="auto",
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except Exception as error:  # of transformers' many models
        problem = f"the model cannot be loaded: {first_line(error)}"
        raise BadInput(folder, problem, "fetch the checkpoint again") from error
    if missing := sorted(info["missing_keys"]):
        raise BadInput(folder, f"{len(missing)} weights are missing ({listed(missing)})")
    return base


def _fit_embeddings(base: Any, weights: Path) -> set[str]:
    """Give a model as many embeddings as its adapter holds; return the adapter's names of these.

    It holds them where tokens were added before it was trained.
    """
    parts = (base.get_input_embeddings(), base.get_output_embeddings())
    modules = {name for name, part in base.named_modules() if any(part is own for own in parts)}
    with safe_open(weights, framework="pt") as stored:
        sizes = {name: stored.get_slice(name).get_shape()[0] for name in stored.keys()}  # noqa: SIM118
    found = {name: size for name, size in sizes.items() if EMBEDDINGS.sub("", name) in modules}
    for size in {*found.values()}:
        base.resize_token_embeddings(size, mean_resizing=False)
    return {*found}


def _take_tokenizer(adapter: Path, folder: Path) -> None:
    """Put an adapter's tokenizer and its template for chats in place of the checkpoint's."""
    names = files_of(adapter)
    settings = adapter / "tokenizer_config.json"
    patterns = TOKENIZER if matching(names, VOCABULARIES) else ()
    has_template = patterns and settings.is_file() and read_object(settings).get("chat_template")
    if has_template or matching(names, TEMPLATES):
        patterns = (*patterns, *TEMPLATES)
    for name in matching(files_of(folder), patterns):
        (folder / name).unlink()
    for name in matching(names, patterns):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(adapter / name, folder / name)


def _check_adapter(adapter: Path) -> None:
    """Raise BadInput unless this is a LoRA adapter and PEFT is installed."""
    if importlib.util.find_spec("peft") is None:
        problem = "this adapter needs the package peft, which is not installed"
        raise BadInput(adapter, problem, "pip install 'medprobe[large]'")
    kind = _read_adapter(adapter)["peft_type"]
    if kind != "LORA":
        raise BadInput(adapter, f"an adapter of kind {kind}", "only LORA can be merged")
    if not (adapter / ADAPTER[1]).is_file():
        raise BadInput(adapter, f"it has no {ADAPTER[1]}", "save the adapter as safetensors")


def _read_adapter(adapter: Path) -> dict[str, Any]:
    """Read an adapter's settings, or raise BadInput."""
    try:
        content = dict(json.loads((adapter / ADAPTER[0]).read_text(encoding="utf-8")))
        content["peft_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{ADAPTER[0]} is missing or does not name a kind of adapter"
        raise BadInput(adapter, problem, "give the folder of a LoRA adapter") from error
    return content
