"""Vectors of sentence encoders are those that their modules.json describes, computed by hand."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from helpers import FolderOf, tiny
from medprobe.core.errors import BadInput
from medprobe.engine.encode import encode
from medprobe.engine.load import load
from medprobe.engine.pooling import OLDER, UNREAD, read_modules

TEXTS = ["aspirin", "acute renal failure in patients with type 2 diabetes mellitus", "SNCA gene"]
HAND: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {  # of the states of one text
    "cls": lambda s: s[0],
    "max": lambda s: s.amax(0),
    "mean": lambda s: s.sum(0) / len(s),
    "mean_sqrt_len_tokens": lambda s: s.sum(0) / len(s) ** 0.5,
    "weightedmean": lambda s: (
        (s * torch.arange(1, len(s) + 1).unsqueeze(1)).sum(0) / (len(s) * (len(s) + 1) / 2)
    ),
    "lasttoken": lambda s: s[-1],
}


def encoder(tiny_model: FolderOf, folder: Path, *kinds: str, **pooling: object) -> Path:
    """A tiny encoder with modules: a pooling with these settings, and what follows it."""
    shutil.copytree(tiny_model("encoder"), folder)
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
    for place, kind in enumerate(("Pooling", *kinds), start=1):
        path = f"{place}_{kind}"
        modules.append({"path": path, "type": f"sentence_transformers.models.{kind}"})
        (folder / path).mkdir()
        (folder / path / "config.json").write_text("{}")
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def states(folder: Path) -> list[torch.Tensor]:
    model = load(folder, "encoder")
    with torch.no_grad():
        rows = [model.tokenizer(text, return_tensors="pt") for text in TEXTS]
        return [model.model(**row).last_hidden_state[0] for row in rows]


def check(folder: Path, by_hand: Callable[[torch.Tensor], torch.Tensor]) -> None:
    model = load(folder, "encoder")
    reading = read_modules(folder, model.device)
    assert reading is not None
    expected = np.stack([by_hand(state).numpy() for state in states(folder)])
    assert encode(model, TEXTS, 128, reading) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "modes"),
    [
        *[({name: True}, [mode]) for name, mode in OLDER.items()],
        *[({"pooling_mode": mode}, [mode]) for mode in HAND],
        ({name: True for name in reversed(OLDER)}, [*OLDER.values()]),
        ({"pooling_mode": ["mean", "cls"]}, ["mean", "cls"]),
        ({"pooling_mode_cls_token": False}, ["mean"]),
    ],
)
def test_each_pooling_is_that_of_the_file(
    tiny_model: FolderOf, tmp_path: Path, settings: dict[str, object], modes: list[str]
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", **settings)
    check(folder, lambda state: torch.cat([HAND[mode](state) for mode in modes]))


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("activation", ["activation.Tanh", "linear.Identity"])
def test_a_dense_layer_and_a_normalisation_follow(
    tiny_model: FolderOf, tmp_path: Path, activation: str, *, safe: bool
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", "Dense", "Normalize", pooling_mode="mean")
    content = {"activation_function": f"torch.nn.modules.{activation}"}
    (folder / "2_Dense/config.json").write_text(json.dumps(content))
    torch.manual_seed(1)
    layer = torch.nn.Linear(tiny.SIZE, 24)
    weights = {f"linear.{name}": weight.data for name, weight in layer.named_parameters()}
    if safe:
        save_file(weights, folder / "2_Dense/model.safetensors")
    else:
        torch.save(weights, folder / "2_Dense/pytorch_model.bin")

    def by_hand(state: torch.Tensor) -> torch.Tensor:
        vector = layer(state.mean(0)).detach()
        vector = vector.tanh() if "Tanh" in activation else vector
        return vector / vector.norm()

    check(folder, by_hand)
    reading = read_modules(folder, torch.device("cpu"))
    assert str(reading) == "the mean of its tokens, then Dense, then Normalize"


@pytest.mark.parametrize(("file", "setting"), UNREAD.items())
def test_a_setting_that_is_not_followed_is_told(
    tiny_model: FolderOf, tmp_path: Path, file: str, setting: str
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", pooling_mode="cls")
    (folder / file).write_text(json.dumps({setting: "query"}))
    told = str(read_modules(folder, torch.device("cpu")))
    assert told == f"its first token (not read: {setting})"


@pytest.mark.parametrize("pooling", [{"pooling_mode": 3}, dict.fromkeys(OLDER, False)])
def test_no_known_pooling_is_one_line(
    tiny_model: FolderOf, tmp_path: Path, pooling: dict[str, object]
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", **pooling)
    with pytest.raises(BadInput, match=r"pooling.*set pooling: cls or mean"):
        read_modules(folder, torch.device("cpu"))


def test_a_module_with_code_of_its_own_is_none_of_ours(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", pooling_mode="cls")
    path = folder / "modules.json"
    path.write_text(path.read_text().replace("sentence_transformers.models.T", "my_code.T"))
    with pytest.raises(BadInput, match=r"a module my_code\.Transformer"):
        read_modules(folder, torch.device("cpu"))


def test_a_dense_layer_of_another_size_is_one_line(tiny_model: FolderOf, tmp_path: Path) -> None:
    folder = encoder(tiny_model, tmp_path / "m", "Dense", pooling_mode="mean")
    weights = {"linear.weight": torch.zeros(8, tiny.SIZE + 1)}
    save_file(weights, folder / "2_Dense/model.safetensors")
    reading = read_modules(folder, torch.device("cpu"))
    assert reading
    with pytest.raises(BadInput, match="2_Dense: it takes vectors of 33 numbers, they have 32"):
        reading(torch.zeros(1, 2, tiny.SIZE), torch.ones(1, 2))


@pytest.mark.parametrize("kind", ["LSTM", "Dense", "Router"])
def test_what_cannot_be_read_is_one_line(tiny_model: FolderOf, tmp_path: Path, kind: str) -> None:
    folder = encoder(tiny_model, tmp_path / "m", kind, pooling_mode="mean")
    content = {"activation_function": "os.system"}
    (folder / f"2_{kind}/config.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match="not known here; choose how it is read: set pooling: cls"):
        read_modules(folder, torch.device("cpu"))


@pytest.mark.parametrize("module", ["1_Pooling", "2_Dense"])
def test_a_copy_that_lost_a_module_is_not_read_by_default(
    tiny_model: FolderOf, tmp_path: Path, module: str
) -> None:
    folder = encoder(tiny_model, tmp_path / "m", "Dense", pooling_mode="cls")
    save_file({"linear.weight": torch.zeros(8, tiny.SIZE)}, folder / "2_Dense/model.safetensors")
    (folder / module / "config.json").unlink()
    with pytest.raises(BadInput, match=f"{module}/config.json: no such file; fetch the whole"):
        read_modules(folder, torch.device("cpu"))
