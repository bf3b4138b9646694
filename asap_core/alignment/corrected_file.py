"""A finished alignment on disk: fitted physics and delta, so that it is not fitted again."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from asap_core.alignment.corrected import Corrected
from asap_core.alignment.delta_model import DeltaActionModel
from asap_core.errors import InputFileError
from asap_core.files import write_tensors
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile


def save_corrected(corrected: Corrected, path: Path) -> None:
    """Write it, atomically.

    Raises:
        ValueError: it moves states; such networks are not kept.
    """
    if corrected.residual is not None:
        raise ValueError(f"{corrected.name} has a state residual, which is not written")
    content = {
        "name": corrected.name,
        "physics": corrected.physics.model_dump_json(),
        "report": json.dumps(dict(corrected.report)),
        "delta": None if corrected.delta is None else corrected.delta.state_dict(),
    }
    write_tensors(path, content)


def load_corrected(path: Path, profile: RobotProfile) -> Corrected:
    """Read what `save_corrected` wrote for the same robot.

    Raises:
        InputFileError: missing, damaged, or of another robot.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        return Corrected(
            name=content["name"],
            physics=PhysicsSettings.model_validate_json(content["physics"]),
            delta=None if content["delta"] is None else _delta(content["delta"], profile),
            report=json.loads(content["report"]),
        )
    except Exception as error:  # torch raises half a dozen types for damaged files
        raise InputFileError(path, f"not a finished alignment: {str(error).splitlines()[0]}") from None


def _delta(state: dict[str, torch.Tensor], profile: RobotProfile) -> DeltaActionModel:
    has_network = any(name.startswith("residual.") for name in state)
    model = DeltaActionModel(profile, float(state["limit"]), has_network)
    model.load_state_dict(state)
    return model
