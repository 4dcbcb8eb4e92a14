"""GGUF files, as llama.cpp reads them: their weights become a plain checkpoint."""

import importlib.util
from pathlib import Path
from typing import Any, Final

import torch

from medprobe.core.errors import BadInput

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
            architecture, or the package gguf is missing.
    """
    if not path.is_file():
        raise BadInput(path, "no such file", "give the path of a .gguf file")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BadInput(path, "not a GGUF file", "download it again")
    if importlib.util.find_spec("gguf") is None:
        raise BadInput(path, "the package gguf is not there", "pip install 'medprobe[gguf]'")
    from transformers import AutoModelForCausalLM, AutoTokenizer

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
