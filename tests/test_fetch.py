"""Checkpoints that the fetch stage copies or downloads, or refuses."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.engine.load import load
from medprobe.stages.fetch import fetch

TinyModel = Callable[[str], Path]


def params(kind: str = "masked", folder: Path | None = None, **more: Any) -> Params:
    content = {"models": {kind: {"mine": {}}}, **more}
    if folder:
        content["folders"] = {"mine": folder}
    return Params.model_validate(content)


def same(one: Path, other: Path) -> bool:
    """Have two checkpoints the same weights?"""
    weights = [load_file(folder / "model.safetensors") for folder in (one, other)]
    return weights[0].keys() == weights[1].keys() and all(
        torch.equal(weights[0][name], weights[1][name]) for name in weights[0]
    )


def test_a_folder_is_copied_without_its_other_files(tiny_model: TinyModel, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_model("bert"), source)
    (source / "modeling_evil.py").write_text("raise SystemExit")
    (source / "tf_model.h5").write_bytes(b"weights of another framework")
    fetch("mine", params(folder=source), tmp_path / "out")
    assert same(source, tmp_path / "out")
    load(tmp_path / "out", "masked")
    assert not {"modeling_evil.py", "tf_model.h5"} & {p.name for p in (tmp_path / "out").iterdir()}


def test_what_cannot_be_had_is_one_clear_line_and_leaves_nothing(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    def refused(wanted: Params, says: str, name: str = "mine") -> None:
        with pytest.raises(BadInput, match=says) as caught:
            fetch(name, wanted, tmp_path / "out")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()

    empty = tmp_path / "empty"
    empty.mkdir()
    refused(params(folder=tmp_path / "nowhere"), "nowhere: no such model folder")
    refused(params(folder=empty), r"empty: no config\.json")
    causal = params("causal", tiny_model("bert"))
    refused(causal, "serves as masked or encoder, not as causal")
    refused(params(folder=tiny_model("encoder")), "not as masked")
    refused(params(), "neither fetch nor folders has a model 'mine'")
    near = params(folders={"mine-2": empty})
    refused(near, r"'mine' \(did you mean 'mine-2'\?\)")
    refused(params(folder=empty), "no model 'yours'", "yours")


def test_a_hub_name_offline_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    wanted = params(fetch={"mine": {"hub": "nobody/nothing"}}, engine={"offline": True})
    start = time.monotonic()
    with pytest.raises(BadInput, match="nobody/nothing: not in the hub's local cache"):
        fetch("mine", wanted, tmp_path / "out")
    assert time.monotonic() - start < 20, "no retries"
    assert not (tmp_path / "out").exists()


def test_a_cached_hub_name_needs_no_network(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    home = tmp_path / "hub/models--somebody--tiny"
    shutil.copytree(tiny_model("bert"), home / "snapshots/abc")
    (home / "refs").mkdir()
    (home / "refs/main").write_text("abc")
    wanted = params(fetch={"mine": {"hub": "somebody/tiny"}}, engine={"offline": True})
    fetch("mine", wanted, tmp_path / "out")
    assert same(tiny_model("bert"), tmp_path / "out")
