"""The ten tracking policies that ASAP published, run through our own environment code, beside measured figures.

Every engine that is installed runs them. Beside the means by difficulty stand those that the paper measured in its own
simulators, for policies as trained in Isaac Gym, without alignment ("vanilla", Table IV; Isaac Gym itself is "oracle").
The paper does not list the motions behind them: they say what errors are usual, not what ours should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np

from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import InputFileError
from asap_core.evaluation.one_policy import track_once
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.robots import get_profile
from asap_core.robots.physics import Drive, PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.factory import installed_backends, make_simulator
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


Figures = dict[str, float]
# Difficulty: policies, as levels were grouped by those who read the files' names; the paper's groups are not published.
_LEVELS = {
    "easy": ("APT_level1", "jump_forward_level1", "kick_level1", "lebron_level1", "side_jump_level1"),
    "medium": ("jump_forward_level2", "jump_forward_level3", "kick_level2", "side_jump_level2"),
    "hard": ("CR7_level1",),
}
# Table IV by difficulty and simulator: success (%), E_g_mpjpe and E_mpjpe (mm), E_vel (mm/frame), E_acc (mm/frame²).
_PAPER: dict[str, dict[str, tuple[float, float, float, float, float]]] = {
    "easy": {
        "Isaac Gym": (100, 97.5, 43.2, 4.48, 2.56),
        "Isaac Sim": (100, 107, 45.4, 4.59, 2.83),
        "Genesis": (100, 140, 70.1, 4.65, 2.68),
    },
    "medium": {
        "Isaac Gym": (100, 111, 48.8, 4.82, 2.63),
        "Isaac Sim": (100, 114, 49.2, 5.07, 2.92),
        "Genesis": (94.3, 169, 72.0, 5.86, 3.26),
    },
    "hard": {
        "Isaac Gym": (100, 116, 52.5, 6.16, 3.40),
        "Isaac Sim": (100, 148, 51.6, 6.88, 4.41),
        "Genesis": (82.9, 175, 80.7, 7.19, 3.87),
    },
}


def bench(shared: Path, settings: SimulationSettings) -> Figures:
    """`policy where/figure` of every published policy: in every engine that is installed, and as expected.

    Where: an engine, with the implicit drive or, as `explicit`, that of the paper; `expected` for MuJoCo with the
    implicit drive. Then the same by difficulty, with the paper's simulators beside them, and of all.

    Args:
        shared: folder that holds data/asap/policies and data/asap/g1.
        settings: the threads; engine and physics are the protocol's.

    Raises:
        InputFileError: a policy or its motion is missing or damaged.
    """
    drives: tuple[Drive, ...] = ("implicit", "explicit")
    found: dict[str, dict[str, Figures]] = {}
    for backend, drive in product(installed_backends(), drives):
        engine, physics = settings.model_copy(update={"backend": backend}), PhysicsSettings(drive=drive)
        found[backend if drive == "implicit" else f"{backend} {drive}"] = {
            name: run_published(shared, name, engine, physics) for name in POLICY_NAMES
        }
    found["expected"] = {name: {"success": 1.0, **EXPECTED[name]} for name in POLICY_NAMES}
    table = {f"{name} {where}": rows[name] for name in POLICY_NAMES for where, rows in found.items()}
    for level, names in _LEVELS.items():
        table |= {f"{level} {where}": _mean([rows[name] for name in names]) for where, rows in found.items()}
        table |= {f"{level} {simulator} (paper)": row for simulator, row in _paper(level).items()}
    table |= {f"mean {where}": _mean([*rows.values()]) for where, rows in found.items()}
    return {f"{row}/{figure}": table[row][figure] for row in table for figure in ("success", *FIGURES)}


def _mean(rows: list[Figures]) -> Figures:
    return {figure: float(np.mean([row[figure] for row in rows])) for figure in ("success", *FIGURES)}


def _paper(level: str) -> dict[str, Figures]:
    return {
        simulator: dict(zip(("success", *FIGURES), (success / 100, *errors), strict=True))
        for simulator, (success, *errors) in _PAPER[level].items()
    }


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
    return OnnxPolicy(policy_file(shared, name), published_contract(profile, reference)), reference


def policy_file(shared: Path, name: str) -> Path:
    """Where the published policy `name` lies."""
    return shared / "data" / "asap" / "policies" / f"{name}.onnx"


def _motion_file(shared: Path, name: str) -> Path:
    part = _POLICIES[name][0]
    folder = shared / "data" / "asap" / "g1"
    found = sorted(folder.glob(f"*_{part}_*.pkl"))
    if len(found) != 1:
        raise InputFileError(folder, f"found {len(found)} files *_{part}_*.pkl, expected one")
    return found[0]
