"""A network of linear layers and ELUs with its backward pass written out, into buffers that are made once.

Autograd allocates, records and dispatches for every operation of every minibatch. On a CPU and for networks this small
that costs as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rsl_rl.models import MLPModel
from torch import Tensor, nn


def linear_layers(model: MLPModel) -> list[nn.Linear]:
    """The linear layers of a model that has ELUs between them and nothing else.

    Raises:
        ValueError: it has other layers.
    """
    layers = list(model.mlp)
    linear, between = layers[::2], layers[1::2]
    if not all(isinstance(x, nn.Linear) for x in linear) or not all(type(x) is nn.ELU for x in between):
        raise ValueError(f"expected linear layers with ELUs between them, found {model.mlp}")
    return linear


class WrittenMlp:
    """Forward and backward pass of such a network, for one thread.

    Args:
        layers: the network's linear layers; their weights are read at each pass.
        gradient: for each layer, where the gradients of weight and bias are written.
        rows: the most rows of a pass.
    """

    def __init__(self, layers: Sequence[nn.Linear], gradient: Sequence[tuple[Tensor, Tensor]], rows: int) -> None:
        self._layers = layers
        self._gradient = gradient
        widths = [layer.out_features for layer in layers]
        self._out = [torch.empty(rows, width) for width in widths]
        self._slope = [torch.empty(rows, width) for width in widths[:-1]]
        self._grad = [torch.empty(rows, width) for width in widths[:-1]]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (R, out) of inputs (R, in), in a buffer that the next pass overwrites."""
        rows = len(x)
        for k, layer in enumerate(self._layers):
            out = self._out[k][:rows]
            torch.addmm(layer.bias, x, layer.weight.T, out=out)
            if k < len(self._slope):
                slope = self._slope[k][:rows]
                torch.clamp(out, max=0.0, out=slope).exp_()
                out.clamp_(min=0.0).add_(slope).sub_(1.0)
            x = out
        return x

    def backward(self, x: Tensor, grad: Tensor) -> None:
        """Write the gradients of all weights, given that of the outputs of `forward(x)`, (R, out)."""
        rows = len(x)
        for k in reversed(range(len(self._layers))):
            weight, bias = self._gradient[k]
            torch.mm(grad.T, self._out[k - 1][:rows] if k else x, out=weight)
            torch.sum(grad, 0, out=bias)
            if k:
                below = self._grad[k - 1][:rows]
                torch.mm(grad, self._layers[k].weight, out=below)
                grad = below.mul_(self._slope[k - 1][:rows])
