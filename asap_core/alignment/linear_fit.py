"""Fits of the one-step labels: per joint a robust linear map, and a network on what it leaves."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, ResidualNet

Array = NDArray[np.floating]

_ROUNDS = 4
_CLIPPED_WEIGHT = 0.1


def fit_linear(model: DeltaActionModel, features: Array, labels: Array, ridge: float) -> DeltaActionModel:
    """Per joint, iteratively reweighted ridge regression; clipped labels count a tenth.

    Args:
        model: a new one, which is filled.
        features: (n, J, F) of its features.
        labels: (n, J) rad, clipped to its limit.
        ridge: strength on normalised features.
    """
    n, joints, _ = features.shape
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-3
    normal = np.concatenate([(features - mean) / scale, np.ones((n, joints, 1))], axis=-1)
    limit = float(model.limit)
    with torch.no_grad():
        for joint in range(joints):
            weights = _robust_ridge(normal[:, joint], labels[:, joint], limit, ridge)
            slope = weights[:-1] / scale[joint]
            model.linear[joint] = torch.as_tensor(slope)
            model.bias[joint] = float(weights[-1] - slope @ mean[joint])
    return model


def _robust_ridge(x: Array, y: Array, limit: float, ridge: float) -> Array:
    weight: Array = np.where(np.abs(y) < 0.98 * limit, 1.0, _CLIPPED_WEIGHT)
    penalty = ridge * np.eye(x.shape[1])
    solution: Array = np.zeros(x.shape[1])
    clipped = weight.copy()
    for _ in range(_ROUNDS):
        weighted = x * weight[:, None]
        solution = np.linalg.solve(weighted.T @ x + penalty, weighted.T @ y)
        residual = np.abs(y - x @ solution)
        scale = 1.5 * np.median(residual) + 1e-9
        weight = clipped / np.maximum(1.0, residual / scale)
    return solution


def fit_residual(model: DeltaActionModel, features: Array, labels: Array, epochs: int, seed: int) -> DeltaActionModel:
    """`model` with a network trained on the labels that its linear part leaves; noise on its inputs, fixed epochs."""
    torch.manual_seed(seed)
    model = copy.deepcopy(model)
    model.residual = ResidualNet(len(model.bias)).double()
    x = torch.as_tensor(features)
    with torch.no_grad():
        left = torch.as_tensor(labels) - ((x * model.linear).sum(-1) + model.bias)
        flat = model.residual.inputs(x)
        model.residual.mean.copy_(flat.mean(0))
        model.residual.scale.copy_(flat.std(0) + 1e-2)
    _train(model.residual, x, left, epochs)
    return model.eval()


def _train(net: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    scale = y.std(0) + 1e-3
    spread = x.std(0) + 1e-3
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(epochs, 1))
    for _ in range(epochs):
        for index in torch.split(torch.randperm(len(x)), 256):
            noisy = x[index] + 0.02 * spread * torch.randn_like(x[index])
            loss = torch.nn.functional.smooth_l1_loss(net(noisy) / scale, y[index] / scale, beta=0.5)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
        schedule.step()
