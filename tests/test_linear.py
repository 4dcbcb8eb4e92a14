from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM
from transformers.pytorch_utils import Conv1D

from medprobe.core.params import EngineParams
from medprobe.engine import linear
from medprobe.engine.linear import FASTER, accelerate
from medprobe.engine.load import load

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
SHAPES = [(5,), (4, 5), (1, 5), (0, 5), (2, 3, 5), (2, 0, 5)]
Make = Callable[[], nn.Module]
MAKERS: dict[str, Make] = {
    "linear": lambda: nn.Linear(5, 7),
    "without bias": lambda: nn.Linear(5, 7, bias=False),
    "conv1d": lambda: Conv1D(7, 5),
}


@pytest.fixture(autouse=True)
def _of_another_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "slowed", lambda: True)


def pair(make: Make) -> tuple[nn.Module, nn.Module]:
    """A layer and its accelerated copy."""
    torch.manual_seed(0)
    plain = make()
    if isinstance(plain, Conv1D):
        nn.init.normal_(plain.bias)
    fast = deepcopy(plain)
    accelerate(fast)
    assert type(fast) in FASTER.values()
    return plain, fast


def gradients(layer: nn.Module, x: Tensor, weights: Tensor) -> list[Tensor | None]:
    """Of the input, then of the layer's parameters."""
    x = x.clone().requires_grad_()
    (layer(x) * weights).sum().backward()
    return [x.grad, *(parameter.grad for parameter in layer.parameters())]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_and_gradients_are_those_of_the_plain_layer(
    make: Make, shape: tuple[int, ...]
) -> None:
    plain, fast = pair(make)
    x = torch.randn(shape)
    weights = torch.randn(*shape[:-1], 7)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), plain(x))
    torch.testing.assert_close(fast(x), plain(x))
    for found, expected in zip(
        gradients(fast, x, weights), gradients(plain, x, weights), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_gradients_are_right_where_input_and_gradient_lie_scattered_in_memory() -> None:
    plain, fast = pair(MAKERS["linear"])
    x = torch.randn(5, 3, 2).permute(2, 1, 0)
    weights = torch.randn(7, 2).t()[:, None].expand(2, 3, 7)
    for found, expected in zip(
        gradients(fast, x, weights), gradients(plain, x, weights), strict=True
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_frozen_weights_get_no_gradient_and_a_frozen_input_none(make: Make) -> None:
    _, fast = pair(make)
    fast.requires_grad_(False)
    of_x, *others = gradients(fast, torch.randn(2, 5), torch.ones(7))
    assert of_x is not None and others == [None] * len(others)
    fast.requires_grad_()
    fast(torch.randn(2, 5)).sum().backward()
    assert fast.weight.grad is not None


def test_an_optimisers_step_is_seen_at_once() -> None:
    plain, fast = pair(MAKERS["linear"])
    x = torch.randn(3, 5)
    for layer in (plain, fast):
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.5)
        layer(x).square().sum().backward()
        optimiser.step()
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), plain(x))


def test_layers_that_are_not_float32_and_those_of_other_classes_stay_as_they_are() -> None:
    class Own(nn.Linear):
        pass

    network = nn.ModuleList([nn.Linear(2, 2, dtype=torch.bfloat16), Own(2, 2), nn.LayerNorm(2)])
    accelerate(network)
    assert [type(layer) for layer in network] == [nn.Linear, Own, nn.LayerNorm]


@pytest.mark.parametrize(
    ("cpu_name", "abilities", "expected"),
    [
        ("AMD EPYC 9555", {"avx2", "avx512_f", "avx_vnni"}, True),  # Zen 5
        ("AMD EPYC 9554", {"avx2", "avx512_f"}, False),  # Zen 4: two halves of 256 bits
        ("AMD EPYC 7763", {"avx2"}, False),
        ("Intel Xeon Platinum", {"avx2", "avx512_f", "avx_vnni"}, False),
        ("Neoverse-V2", set(), False),
    ],
)
def test_mkl_gives_way_only_where_it_leaves_half_of_a_processor_unused(
    monkeypatch: pytest.MonkeyPatch, cpu_name: str, abilities: set[str], expected: bool
) -> None:
    monkeypatch.undo()
    has = {"cpu_name": cpu_name, **dict.fromkeys(abilities, True)}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    assert linear.slowed() is expected
    accelerate(layer := nn.Linear(2, 2))
    assert (type(layer) is not nn.Linear) is expected


def test_accelerating_twice_changes_nothing_more() -> None:
    _, fast = pair(MAKERS["linear"])
    accelerate(fast)
    assert type(fast) is FASTER[nn.Linear]


@pytest.mark.parametrize("arch", ["bert", "gpt2", "t5"])
def test_weights_ties_and_files_of_a_model_are_unchanged(
    tiny_model: Callable[[str], Path], tmp_path: Path, arch: str
) -> None:
    head = {"bert": "masked", "gpt2": "causal", "t5": "seq2seq"}[arch]
    folder = tiny_model(arch)
    network = load(folder, head).model  # type: ignore[arg-type]
    assert any(type(layer) in FASTER.values() for layer in network.modules())
    assert network.get_input_embeddings().weight is network.get_output_embeddings().weight
    network.save_pretrained(tmp_path)
    saved, first = (
        load_file(tmp_path / "model.safetensors"),
        load_file(folder / "model.safetensors"),
    )
    assert saved.keys() == first.keys()
    assert all(torch.equal(saved[name], first[name]) for name in first)
    assert (tmp_path / "config.json").read_text() == (folder / "config.json").read_text()


def test_a_loaded_model_gives_what_transformers_gives(tiny_model: Callable[[str], Path]) -> None:
    folder = tiny_model("bert")
    fast = load(folder, "masked", EngineParams(device="cpu")).model
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    assert not any(type(layer) in FASTER.values() for layer in plain.modules())
    ids = torch.randint(5, 50, (3, 9))
    with torch.inference_mode():
        torch.testing.assert_close(fast(ids).logits, plain(ids).logits, rtol=1e-4, atol=1e-4)
