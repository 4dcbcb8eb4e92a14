"""Linear layers by oneDNN on CPUs, for which PyTorch has MKL multiply float32 matrices.

MKL keeps its code for 512 bits to Intel's own processors. Where another maker's processor has
units of that width, as AMD's have from Zen 5, oneDNN multiplies at twice MKL's rate; where 256 bits
are all there is, as in Zen 4, the two are equal on large products, and oneDNN loses where shapes
change from batch to batch (docs/performance.md). Both compute in float32; the results differ in
their last bits, as they do between two machines.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


def accelerate(network: nn.Module) -> None:
    """Let oneDNN run a network's linear layers, where they are float32, on a CPU that MKL slows
    down.

    In place: weights, their names and their gradients stay as they are, and the layers too where
    this torch's operator for it, a private one, does not work.

    >>> layer = nn.Linear(3, 2)
    >>> before = layer(torch.ones(1, 3))
    >>> accelerate(layer)
    >>> torch.allclose(layer(torch.ones(1, 3)), before)
    True
    """
    if not slowed() or not _works():
        return
    for layer in network.modules():
        if type(layer) in FASTER and layer.weight.is_cpu and layer.weight.dtype == torch.float32:
            layer.__class__ = FASTER[type(layer)]


def slowed() -> bool:
    """Does MKL leave half of this processor's width unused? It does so on AMD's from Zen 5, which
    are those that have AVX-VNNI and AVX-512 both."""
    has = torch.cpu.get_capabilities()
    wide = has.get("avx512_f") and has.get("avx_vnni")
    return bool(wide) and "Intel" not in has["cpu_name"]


def _works() -> bool:
    """Does oneDNN's operator give the product of two tiny matrices?"""
    x, weight, bias = torch.ones(1, 2), torch.ones(3, 2), torch.ones(3)
    try:
        with torch.no_grad():
            return torch.equal(_multiply(x, weight, bias), nn.functional.linear(x, weight, bias))
    except (AttributeError, RuntimeError, TypeError):  # no such operator, or another signature
        return False


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [..., in], weight [out, in] and bias [out] → [..., out]."""
    if torch.is_grad_enabled():
        return _Product.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return _multiply(x, weight, bias)


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not x.numel():  # which oneDNN refuses
        return nn.functional.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore


class _Product(torch.autograd.Function):
    """`product` with its gradients."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        context.save_for_backward(x, weight)
        return _multiply(x, weight, bias)

    @staticmethod
    def backward(context: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = context.saved_tensors
        of_x, of_weight, of_bias = context.needs_input_grad
        rows = given[0].reshape(-1, len(weight))
        seen = x.reshape(-1, weight.shape[1]).contiguous()  # a pooler's are not: 100 times slower
        return (
            _multiply(given[0], weight.t()) if of_x else None,
            _multiply(rows.t(), seen.t()) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


class _Linear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return product(input, self.weight, self.bias)


class _Conv1D(Conv1D):
    """GPT-2's linear layer, whose weights are stored as [in, out]."""

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight.t(), self.bias)


FASTER: dict[type, type] = {nn.Linear: _Linear, Conv1D: _Conv1D}
