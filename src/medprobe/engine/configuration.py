"""What a checkpoint's config.json says: its architecture, and the heads that it is made for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import transformers

from medprobe.core.checkpoints import ADAPTER, CONFIG, describe_other, files_of
from medprobe.core.errors import BadInput

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

Trained = Literal["encoder", "masked", "causal", "seq2seq"]  # heads that come with checkpoints
Head = Trained | Literal["classifier"]

NOT_OBEYED: Final = {  # of a configuration: what is about speed and memory alone, for one machine
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("chunk_size_feed_forward", "dtype", "torch_dtype"),
}
LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
LONGEST_LINE: Final = 200  # characters of a library's error: some list all models there are
MAX_LISTED: Final = 3  # names of weights that an error lists


def read_config(folder: Path) -> Any:
    """Read a checkpoint's configuration; old BERT files without `model_type` are recognised."""
    if not folder.is_dir():
        raise BadInput(folder, "no such model folder", "run `dvc repro` to make it")
    path = folder / CONFIG
    if (folder / ADAPTER[0]).is_file():
        remedy = "see adapter in docs/how-to/own-data.md: it is merged when the model is fetched"
        raise BadInput(folder, "it holds an adapter, which is not merged", remedy)
    if not path.is_file():
        problem, remedy = describe_other(files_of(folder)) or ("no checkpoint", "")
        raise BadInput(folder, f"it holds {problem}", remedy)
    for file in sorted(folder.iterdir()):
        if file.is_file() and _is_pointer(file):
            raise BadInput(file, "a pointer of Git LFS, not the file itself", "run `git lfs pull`")
    content = read_object(path)
    try:
        if "model_type" not in content and "type_vocab_size" in content:
            content["model_type"] = "bert"  # BERT's first files, before there were other types
        config = transformers.AutoConfig.for_model(
            **{name: value for name, value in content.items() if name not in NOT_OBEYED}
        )
    except Exception as error:  # of transformers' many configurations
        if "auto_map" in content:
            problem = f"a {content.get('model_type')} model comes with code of its own"
            raise BadInput(path, problem, "such code is never run: choose another model") from error
        problem = f"not the configuration of a known model: {first_line(error)}"
        raise BadInput(path, problem, "give model_type, e.g. bert") from error
    if not isinstance(config.get_text_config(), transformers.PretrainedConfig):
        problem = f"a {config.model_type} model has no text_config"
        raise BadInput(path, problem, "take text_config out, or correct model_type")
    if "masked" in heads(config):
        if getattr(config, "is_decoder", False):
            problem = "is_decoder hides from a masked model what is behind its mask"
            raise BadInput(path, problem, "set is_decoder: false, or choose another model")
        config.add_cross_attention = False  # to another text, and there is none
    config.return_dict = True  # some say no, and outputs are read by name
    return config


def _is_pointer(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) == LFS_POINTER


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object of a configuration, with numbers as transformers writes them."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text, object_hook=_special_float)
        if not isinstance(content, dict):
            raise TypeError(f"{type(content).__name__} in place of an object")
        return content
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"not a configuration: {first_line(error)}"
        raise BadInput(path, problem, "fetch the checkpoint again") from error


def _special_float(value: dict[str, Any]) -> Any:
    """Return the number that transformers writes as an object, since JSON has none, or `value`."""
    return float(value["__float__"]) if value.keys() == {"__float__"} else value


def count_layers(folder: Path) -> int:
    """Return how many layers the part of a checkpoint for text has."""
    count: int = read_config(folder).get_text_config().num_hidden_layers
    return count


def heads(config: Any) -> tuple[Trained, ...]:
    """The heads that an architecture is made for."""
    if config.is_encoder_decoder:
        return ("seq2seq",)
    if type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING:
        return ("masked", "encoder")
    if type(config) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return ("causal",)
    return ("encoder",)


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list."""
    return ", ".join(names[:MAX_LISTED]) + (" …" if len(names) > MAX_LISTED else "")


def first_line(error: Exception) -> str:
    """The first line of an error's text, as far as people read, or its type where it has none."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"
