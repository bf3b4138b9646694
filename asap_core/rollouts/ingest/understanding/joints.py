"""Which joint each column is: by names, else by limits, torques, gains and feet that stand flat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asap_core.evidence import Decision, decide
from asap_core.motions.doctor.joint_orders import JointOrder
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array, rotate

MARGIN = 0.05
CONTRADICTS = 0.15
"""How far another order must lead before a format's word is doubted."""
_TOLERANCE = 0.05
"""rad beyond a limit."""
_SAMPLES = 200
_LEAST_GAINS = 10
"""Joints with a gain above 0 from which gains are compared."""
_FLAT_RAD = 0.3
"""Scale of the tilt of the flatter foot."""


@dataclass(frozen=True)
class JointEvidence:
    """What a log knows of its joints, columns in the log's order, rad and Nm."""

    joint_pos: Array
    """(N, J)."""
    joint_torque: Array | None = None
    """(N, J)."""
    kp: Array | None = None
    """(J,) median of the commands, whose columns are the states'."""
    target: Array | None = None
    """(N, J) rad of commands whose columns are not the states', row by row with joint_pos."""
    target_joints: tuple[str, ...] = ()
    """The joint of each column of `target`."""
    root_quat: Array | None = None
    """(N, 4) wxyz of the pelvis' IMU, row by row with joint_pos."""


def order_scores(evidence: JointEvidence, orders: tuple[JointOrder, ...]) -> dict[str, dict[str, float]]:
    """For each order its scores from 0 to 1 by test: limits, torques, gains, commands, feet, stance."""
    rows = np.unique(np.linspace(0, len(evidence.joint_pos) - 1, _SAMPLES).round().astype(int))
    return {order.name: _scores(evidence, order, rows) for order in orders}


def decide_order(question: str, option: str, scores: dict[str, dict[str, float]]) -> Decision:
    """The order with the best mean score; no answer where another is within 5 %."""
    means = {name: float(np.mean(list(tests.values()))) for name, tests in scores.items()}
    best = max(means, key=lambda name: means[name])
    how = "mean of " + ", ".join(f"{test} {value:.2f}" for test, value in scores[best].items())
    return decide(question, means, how, option, MARGIN)


def _scores(evidence: JointEvidence, order: JointOrder, rows: Any) -> dict[str, float]:
    profile = get_profile(order.robot)
    place = [profile.joint_index(name) for name in order.joints]
    pos = evidence.joint_pos[rows]
    inside = (pos > profile.joint_lower[place] - _TOLERANCE) & (pos < profile.joint_upper[place] + _TOLERANCE)
    out = {"limits": float(inside.mean(axis=0).mean())}
    if evidence.joint_torque is not None and evidence.joint_torque.any():
        share = np.abs(evidence.joint_torque[rows]) <= 1.05 * profile.joint_torque_limit[place]
        out["torques"] = float(share.mean(axis=0).mean())
    if evidence.kp is not None and (driven := evidence.kp > 0).sum() > _LEAST_GAINS and np.ptp(evidence.kp[driven]) > 0:
        logs = np.log(evidence.kp[driven]), np.log(profile.kp[place][driven])
        out["gains"] = max(float(np.corrcoef(*logs)[0, 1]), 0.0)
    if evidence.target is not None and set(evidence.target_joints) == set(order.joints):
        columns = [evidence.target_joints.index(name) for name in order.joints]
        out["commands"] = max(following(evidence.target[:, columns], evidence.joint_pos), 0.0)
    full = np.tile(profile.default_joint_pos, (len(rows), 1))
    full[:, place] = pos
    if evidence.root_quat is not None:
        out["feet"] = float(np.exp(-_flatter_foot(profile, full, evidence.root_quat[rows]) / _FLAT_RAD))
    out["stance"] = _stance(pos.mean(axis=0), profile.default_joint_pos[place])
    return out


def _flatter_foot(profile: RobotProfile, joint_pos: Array, root_quat: Array) -> float:
    """Median tilt in rad of the lower foot's sole."""
    kinematics = Kinematics(profile)
    poses = kinematics.forward(np.zeros((len(joint_pos), 3)), root_quat, joint_pos)
    feet = profile.foot_index
    up = rotate(poses.quat[:, feet], np.array([0.0, 0.0, 1.0]))[..., 2]
    lower = poses.pos[:, feet, 2].argmin(axis=1)
    tilt = np.arccos(np.clip(up[np.arange(len(up)), lower], -1, 1))
    return float(np.median(tilt))


def _stance(mean: Array, default: Array) -> float:
    """Likeness from 0 to 1 of the mean pose and the default one, both against zero."""
    size = float(np.linalg.norm(mean) * np.linalg.norm(default))
    return max(float(mean @ default) / size, 0.0) if size > 0 else 0.0


def following(target: Array, pos: Array) -> float:
    """Mean correlation of targets and positions (both (N, J)) over the joints that move; 0 where none does."""
    a, b = target - target.mean(axis=0), pos - pos.mean(axis=0)
    sizes = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    moving = sizes > 1e-3 * max(float(sizes.max(initial=0.0)), 1e-12)
    if not moving.any():
        return 0.0
    return float(((a * b).sum(axis=0)[moving] / sizes[moving]).mean())
