"""Vectors of texts from the states of their tokens: by name, or as a checkpoint's files say.

A checkpoint of sentence-transformers (Reimers and Gurevych 2019) lists in modules.json what follows
its network: a pooling, and often a dense layer or a normalisation to length 1.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch
from safetensors.torch import load_file

from medprobe.core.errors import BadInput
from medprobe.engine.configuration import first_line, read_object

Pooling = Literal["cls", "mean"]
Mode = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # states and mask of rows → vectors
Step = Callable[[torch.Tensor], torch.Tensor]
MODULES: Final = "modules.json"
REMEDY: Final = "choose how it is read: set pooling: cls or mean"


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = (mask / mask.sum(1, keepdim=True)).unsqueeze(-1)
    return (states.float() * weights).sum(1)


def _weighted(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device) * mask
    return _mean(states, places.float())


MODES: Final[dict[str, Mode]] = {
    "cls": lambda states, mask: states[:, 0],
    "max": lambda s, mask: s.float().masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda s, mask: _mean(s, mask) * mask.sum(1, keepdim=True).sqrt(),
    "weightedmean": _weighted,
    "lasttoken": lambda s, mask: s[torch.arange(len(s), device=s.device), mask.sum(1).long() - 1],
}
OLDER: Final = {  # settings of older files, in the order in which their vectors stand side by side
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
UNREAD: Final = {  # a file → its setting that changes texts before they are read
    "sentence_bert_config.json": "do_lower_case",
    "config_sentence_transformers.json": "default_prompt_name",
}
SAID: Final = {"cls": "its first token", "lasttoken": "its last token"}  # how they are described


@dataclass(frozen=True)
class Reading:
    """How a checkpoint's vectors of texts come about: poolings side by side, then further steps."""

    modes: tuple[str, ...]
    steps: tuple[tuple[str, Step], ...] = ()
    unread: tuple[str, ...] = ()  # settings of its files that are not followed

    def __call__(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the vectors [rows, size] of states [rows, tokens, hidden]."""
        vectors = torch.cat([MODES[mode](states, mask) for mode in self.modes], dim=-1)
        for _, step in self.steps:
            vectors = step(vectors.float())
        return vectors

    def __str__(self) -> str:
        words = [SAID.get(mode, f"the {mode} of its tokens") for mode in self.modes]
        said = ", then ".join([" and ".join(words), *(name for name, _ in self.steps)])
        return said + (f" (not read: {', '.join(self.unread)})" if self.unread else "")


FIRST_TOKEN: Final = Reading(("cls",))


def read_modules(folder: Path, device: torch.device) -> Reading | None:
    """Return the reading that a checkpoint's modules.json describes; None where there is none."""
    path = folder / MODULES
    if not path.is_file():
        return None
    try:
        modules = [
            (_kind(str(module["type"])), folder / str(module.get("path") or ""))
            for module in json.loads(path.read_text(encoding="utf-8"))
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(path, "not a list of modules", "fetch the checkpoint again") from error
    modes: tuple[str, ...] = ()
    steps: list[tuple[str, Step]] = []
    for kind, place in modules:
        if kind == "Pooling" and not modes and not steps:
            modes = _modes(place / "config.json")
        elif kind == "Normalize" and modes:
            steps.append((kind, torch.nn.functional.normalize))
        elif kind == "Dense" and modes:
            steps.append((kind, _dense(place, device)))
        elif kind not in ("Transformer", "Dropout"):
            raise BadInput(path, f"a module {kind} in a place or of a kind not known here", REMEDY)
    unread = [name for file, name in UNREAD.items() if _optional(folder / file).get(name)]
    return Reading(modes or ("mean",), tuple(steps), tuple(unread))


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _kind(name: str) -> str:
    """Return a module's class; with its package, if it comes with code of its own."""
    return name.rpartition(".")[2] if name.startswith("sentence_transformers.") else name


def _settings(path: Path) -> dict[str, Any]:
    """Read a module's settings; a copy without its subfolders lacks them."""
    if not path.is_file():
        raise BadInput(path, "no such file", f"fetch the whole checkpoint, or {REMEDY}")
    return read_object(path)


def _modes(path: Path) -> tuple[str, ...]:
    said = _settings(path)
    named = said.get("pooling_mode") or [mode for name, mode in OLDER.items() if said.get(name)]
    modes = named if isinstance(named, list) else [str(named)]
    if not modes and "pooling_mode_mean_tokens" in said:  # true where no setting says it
        raise BadInput(path, "no pooling: all of them are false", REMEDY)
    if unknown := [mode for mode in modes if mode not in MODES]:
        raise BadInput(path, f"a pooling {unknown[0]}, not known here", REMEDY)
    return tuple(modes) or ("mean",)


def _dense(folder: Path, device: torch.device) -> Step:
    path = folder / "config.json"
    said = _settings(path)
    name = str(said.get("activation_function") or "torch.nn.modules.activation.Tanh")
    kind = getattr(torch.nn, name.rpartition(".")[2], None)
    full = f"{kind.__module__}.{kind.__name__}" if isinstance(kind, type) else ""
    if kind is None or name != full or said.get("use_residual"):
        raise BadInput(path, f"a dense layer with {name}, not known here", REMEDY)
    try:
        weights = {name: weight.float().to(device) for name, weight in _weights(folder).items()}
        weight, bias = weights["linear.weight"], weights.get("linear.bias")
    except Exception as error:  # of torch and of safetensors
        raise BadInput(folder, f"its weights cannot be read: {first_line(error)}") from error
    activation = kind()

    def step(vectors: torch.Tensor) -> torch.Tensor:
        if vectors.shape[-1] != weight.shape[-1]:
            problem = f"it takes vectors of {weight.shape[-1]} numbers, they have"
            raise BadInput(folder, f"{problem} {vectors.shape[-1]}", REMEDY)
        return activation(torch.nn.functional.linear(vectors, weight, bias))

    return step


def _weights(folder: Path) -> dict[str, Any]:
    if (folder / "model.safetensors").is_file():
        return load_file(folder / "model.safetensors")
    found: dict[str, Any] = torch.load(folder / "pytorch_model.bin", "cpu", weights_only=True)
    return found
