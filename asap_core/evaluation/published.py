"""The ten tracking policies that ASAP published, run through our own environment code, beside measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import InputFileError
from asap_core.evaluation.one_policy import track_once
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.policy import OnnxPolicy
from asap_core.training.published import published_contract

FIGURES = ("E_g_mpjpe", "E_mpjpe", "E_vel", "E_acc")
_CONTROL_DT = 0.02
# Policy: part of its motion's file name, and the errors in MuJoCo that an independent deployment measured under the
# same protocol: E_g_mpjpe and E_mpjpe (mm), E_vel (mm/frame), E_acc (mm/frame²).
# fmt: off
_POLICIES: dict[str, tuple[str, tuple[float, float, float, float]]] = {
    "APT_level1":          ("APT_level1",          (111.0, 65.4, 5.48, 1.77)),
    "CR7_level1":          ("CR7_level1_filter",   (129.2, 59.2, 8.35, 3.57)),
    "jump_forward_level1": ("jump_forward_level1", (91.9,  43.0, 4.25, 1.54)),
    "jump_forward_level2": ("jump_forward_level2", (111.0, 47.3, 7.16, 2.59)),
    "jump_forward_level3": ("jump_forward_level3", (155.3, 55.1, 7.61, 2.69)),
    "kick_level1":         ("kick_level1",         (96.7,  48.9, 3.79, 1.74)),
    "kick_level2":         ("kick_level2",         (74.0,  42.7, 3.86, 1.47)),
    "lebron_level1":       ("lebron1",             (103.4, 50.4, 5.66, 2.03)),
    "side_jump_level1":    ("side_jump_level1",    (106.5, 50.7, 4.32, 1.40)),
    "side_jump_level2":    ("side_jump_level2",    (89.3,  43.5, 4.40, 1.85)),
}
# fmt: on
POLICY_NAMES = tuple(_POLICIES)
EXPECTED: Mapping[str, Mapping[str, float]] = {
    name: dict(zip(FIGURES, figures, strict=True)) for name, (_, figures) in _POLICIES.items()
}
"""Policy → figure → the value that the implicit drive is compared with."""


def bench(shared: Path, settings: SimulationSettings) -> dict[str, float]:
    """`policy/figure` of every published policy, the expected figure (`…_spec`) beside it, and the means.

    The plain figures are those of the implicit drive; `explicit_…` are those of the paper's.

    Args:
        shared: folder that holds data/asap/policies and data/asap/g1.
        settings: the backend; its physics is replaced by the protocol's.

    Raises:
        InputFileError: a policy or its motion is missing or damaged.
    """
    table = {name: _row(shared, name, settings) for name in POLICY_NAMES}
    columns = next(iter(table.values()))
    table["mean"] = {column: float(np.mean([row[column] for row in table.values()])) for column in columns}
    return {f"{name}/{column}": value for name, row in table.items() for column, value in row.items()}


def run_published(shared: Path, name: str, settings: SimulationSettings, physics: PhysicsSettings) -> dict[str, float]:
    """The figures of one published policy, `success` among them."""
    profile = get_profile("g1_23dof")
    policy, reference = load_published(shared, name, profile)
    errors = track_once(policy, reference, profile, make_simulator(profile, settings, 1, physics))
    return errors.as_dict()


def load_published(shared: Path, name: str, profile: RobotProfile) -> tuple[OnnxPolicy, ReferenceMotion]:
    """A published policy with the motion that it tracks."""
    motion = read_asap_pkl(_motion_file(shared, name), profile.name, profile.joint_names)
    reference = ReferenceMotion.from_motion(motion, profile, _CONTROL_DT, "difference")
    path = shared / "data" / "asap" / "policies" / f"{name}.onnx"
    return OnnxPolicy(path, published_contract(profile, reference)), reference


def _row(shared: Path, name: str, settings: SimulationSettings) -> dict[str, float]:
    implicit = run_published(shared, name, settings, PhysicsSettings())
    explicit = run_published(shared, name, settings, PhysicsSettings(drive="explicit"))
    row = {"success": implicit["success"]}
    for figure in FIGURES:
        row[figure], row[f"{figure.removesuffix('_mpjpe')}_spec"] = implicit[figure], EXPECTED[name][figure]
    row["explicit_success"], row["explicit_E_g"] = explicit["success"], explicit["E_g_mpjpe"]
    return row


def _motion_file(shared: Path, name: str) -> Path:
    part = _POLICIES[name][0]
    folder = shared / "data" / "asap" / "g1"
    found = sorted(folder.glob(f"*_{part}_*.pkl"))
    if len(found) != 1:
        raise InputFileError(folder, f"found {len(found)} files *_{part}_*.pkl, expected one")
    return found[0]
