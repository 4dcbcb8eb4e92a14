"""Vectors against those of one text at a time, without batches, padding or shared work."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from helpers import FolderOf, tiny
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.engine.encode import encode
from medprobe.engine.load import Model, load
from medprobe.engine.pooling import Pooling, Reading

TEXTS = [
    "aspirin",
    "Karsten syndrome",
    "acute renal failure in patients with type 2 diabetes mellitus and chronic pain",
    "aspirin",
    "SNCA gene",
    "gene BRX7",
    "",
]
ENCODERS = [*tiny.MASKED, "bert-cased", "encoder"]


@torch.no_grad()
def slow(model: Model, text: str, length: int, pooling: str, layer: int) -> Any:
    """One text's vector by a call of the model that keeps every layer."""
    tokens = model.tokenizer(text, truncation=True, max_length=length, return_tensors="pt")
    state = model.model(**tokens, output_hidden_states=True).hidden_states[layer][0]
    return (state[0] if pooling == "cls" else state.mean(0)).numpy()


@pytest.mark.parametrize("arch", ENCODERS)
def test_vectors_equal_those_of_single_texts_at_any_batch_size(
    tiny_model: FolderOf, arch: str
) -> None:
    model = load(tiny_model(arch), "encoder")
    ways: list[tuple[Pooling, int]] = [(p, n) for p in ("cls", "mean") for n in (-1, 0, 1, 2)]
    for pooling, layer in ways:
        expected = [slow(model, text, 12, pooling, layer) for text in TEXTS]
        for budget in (1, 20, 100_000):
            vectors = encode(
                replace(model, token_budget=budget), TEXTS, 12, Reading((pooling,)), layer
            )
            assert vectors.dtype == np.float32
            for vector, of_text in zip(vectors, expected, strict=True):
                assert vector == pytest.approx(of_text, abs=1e-5)


def test_several_layers_come_from_one_pass(tiny_model: FolderOf) -> None:
    model = load(tiny_model("bert"), "encoder")
    vectors = encode(model, TEXTS, 25, layer=[1, 2])
    assert vectors.shape == (2, len(TEXTS), 32)
    assert (vectors[0] == encode(model, TEXTS, 25, layer=1)).all()
    assert vectors[1] == pytest.approx(encode(model, TEXTS, 25, layer=-1), abs=1e-5)


def test_texts_of_the_same_tokens_have_the_same_vector_to_the_last_bit(
    tiny_model: FolderOf,
) -> None:
    model = load(tiny_model("bert"), "encoder", EngineParams(token_budget=1))
    rows: list[int] = []
    run = model.model.forward

    def count_rows(*args: Any, **more: Any) -> Any:
        rows.append(len(more["input_ids"]))
        return run(*args, **more)

    model.model.forward = count_rows
    upper, lower, other = encode(model, ["Aspirin", "aspirin", "gene"], 25)
    assert (upper == lower).all()
    assert (upper != other).any()
    assert sum(rows) == 2


def test_memory_that_runs_out_makes_batches_smaller(tiny_model: FolderOf) -> None:
    model = load(tiny_model("bert"), "encoder")
    usual = encode(model, TEXTS, 25)
    run = model.model.forward

    def small(*args: Any, **more: Any) -> Any:
        if len(more["input_ids"]) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(*args, **more)

    model.model.forward = small
    assert encode(model, TEXTS, 25) == pytest.approx(usual, abs=1e-5)


def test_texts_are_cut_to_the_window(tiny_model: FolderOf) -> None:
    model = replace(load(tiny_model("bert"), "encoder"), max_length=4)
    vectors = encode(model, ["gene gene gene gene", "gene gene"], 25)
    assert (vectors[0] == vectors[1]).all()


def test_no_texts_give_no_vectors(tiny_model: FolderOf) -> None:
    model = load(tiny_model("bert"), "encoder")
    assert encode(model, [], 25).shape == (0, 32)
    assert encode(model, [], 25, layer=[1, 2]).shape == (2, 0, 32)


def test_a_layer_that_is_not_there_is_refused(tiny_model: FolderOf) -> None:
    with pytest.raises(BadInput, match="no layer 12; choose from 0 to 2"):
        encode(load(tiny_model("bert"), "encoder"), TEXTS, 25, layer=12)
