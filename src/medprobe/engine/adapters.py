"""LoRA adapters (Hu et al. 2021), merged into the weights that they were trained on."""

import importlib.util
import json
from pathlib import Path

from safetensors import safe_open

from medprobe.core.errors import BadInput
from medprobe.engine.inspection import ADAPTER, AUTO_CLASSES, first_line, heads, read_config

WEIGHTS = "adapter_model.safetensors"


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
        with safe_open(adapter / WEIGHTS, framework="pt") as weights:
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
        kind = json.loads((adapter / ADAPTER).read_text(encoding="utf-8"))["peft_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{ADAPTER} is missing or does not name a kind of adapter"
        raise BadInput(adapter, problem, "give the folder of a LoRA adapter") from error
    if kind != "LORA":
        raise BadInput(adapter, f"an adapter of kind {kind}", "only LORA can be merged")
    if not (adapter / WEIGHTS).is_file():
        raise BadInput(adapter, f"it has no {WEIGHTS}", "save the adapter as safetensors")
