"""Policies to ONNX, with the contract in the metadata."""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx
import torch
from rsl_rl.models import MLPModel

from asap_core.files import atomic_file
from asap_core.training.contract import METADATA_KEY, PolicyContract

_OPSET = 17


def export_policy(actor: MLPModel, contract: PolicyContract, path: Path | str) -> None:
    """Write the deterministic actor, observation normaliser included: input `obs` (N, W), output `actions` (N, J)."""
    model = actor.as_onnx(verbose=False).cpu().eval()
    with atomic_file(path) as partial:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(
                model,
                model.get_dummy_inputs(),
                str(partial),
                input_names=model.input_names,
                output_names=model.output_names,
                dynamic_axes={"obs": {0: "n"}, "actions": {0: "n"}},
                opset_version=_OPSET,
                dynamo=False,
            )
        graph = onnx.load(str(partial))
        onnx.helper.set_model_props(graph, {METADATA_KEY: contract.to_json()})
        onnx.save(graph, str(partial))
