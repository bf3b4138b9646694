"""Starting from a published policy: its weights in an actor that learns on, and a critic learnt from nothing.

The published ONNX files hold the actor alone. While the critic is still wrong its advantages are noise, which would
wreck the actor; so the first iterations teach the critic only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rsl_rl.models import MLPModel

from asap_core.errors import ContractError, InputFileError
from asap_core.progress import track
from asap_core.training.ppo import PpoTrainer
from asap_core.training.written_mlp import linear_layers

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


def read_layers(path: Path | str) -> list[Layer]:
    """Weights (out, in) and biases (out,) of the layers of an ONNX policy that is a chain of linear layers and ELUs.

    Raises:
        InputFileError: missing, not ONNX, or of other nodes.
    """
    import onnx

    if not Path(path).is_file():
        raise InputFileError(path, "missing; expected an ONNX policy")
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf raises types of its own
        raise InputFileError(path, f"not a readable ONNX model: {str(error).splitlines()[0]}") from None
    values = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    kinds = [node.op_type for node in graph.node]
    if kinds[::2] != ["Gemm"] * len(kinds[::2]) or kinds[1::2] != ["Elu"] * (len(kinds) // 2) or len(kinds) % 2 == 0:
        raise InputFileError(path, f"nodes: found {', '.join(kinds)}, expected Gemm with Elu between them")
    layers = []
    for node in graph.node[::2]:
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if given.get("transB") != 1 or any(given.get(name, 1.0) != 1.0 for name in ("alpha", "beta")):
            raise InputFileError(path, f"{node.name}: found attributes {given}, expected transB 1, alpha and beta 1")
        weight, bias = (values[name] for name in node.input[1:])
        layers.append((weight, bias))
    return layers


def load_actor(actor: MLPModel, path: Path | str) -> None:
    """Put the weights of an ONNX policy into `actor`, which then acts as the file does.

    Raises:
        InputFileError: see `read_layers`.
        ContractError: the actor has other widths, or normalises its observations.
    """
    layers, own = read_layers(path), linear_layers(actor)
    found = [weight.shape for weight, _ in layers]
    wanted = [tuple(layer.weight.shape) for layer in own]
    if found != wanted:
        raise ContractError(f"{path}: layers are {found}, the actor's {wanted}; set ppo.hidden to the file's widths")
    if not isinstance(actor.obs_normalizer, torch.nn.Identity):
        raise ContractError(f"{path}: takes raw observations; set ppo.normalise_observations: false")
    with torch.no_grad():
        for layer, (weight, bias) in zip(own, layers, strict=True):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.copy_(torch.tensor(bias))


def train_last_layer_only(trainer: PpoTrainer) -> None:
    """Let the optimiser move the actor's last layer and its exploration, and leave the layers below as published.

    A big network whose inputs have no common scale is disturbed more than taught by a few hundred thousand samples.
    Call before any update.
    """
    last = linear_layers(trainer.actor)[-1]
    group = trainer.algorithm.optimizer.param_groups[0]
    group["params"] = [*last.parameters(), trainer.actor.distribution.log_std_param]


def learn_critic(trainer: PpoTrainer, iterations: int, init_std: float, description: str) -> None:
    """Let the critic learn for some iterations from what the actor, which stays as it is, does with noise `init_std`.

    The optimiser and the adapted rate of `trainer` are then those of these iterations: go on with another trainer, to
    which `PpoTrainer.load_networks` brings the networks.
    """
    with torch.no_grad():
        trainer.actor.distribution.log_std_param.fill_(float(np.log(init_std)))
    kept = {name: value.clone() for name, value in trainer.actor.state_dict().items()}
    with track(description, iterations) as bar:
        for _ in range(iterations):
            stats = trainer.iterate()
            trainer.actor.load_state_dict(kept)
            bar.advance(1, f"value loss {stats.value_loss:.3f}")
