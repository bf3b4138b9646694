"""The gradient against finite differences of the cost, and J^T J against explicit Jacobians."""

from __future__ import annotations

import numpy as np
import pytest

from asap_core.banded import BandedSystem
from asap_core.retargeting.normal import LinkResiduals
from asap_core.retargeting.residuals import Phase, Point, linearise
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.targets import Targets
from asap_core.retargeting.trajectory import Trajectory
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotvec_to_quat

PROFILE = get_profile("g1_23dof")
KINEMATICS = Kinematics(PROFILE)
T, V = 4, 6 + PROFILE.num_joints
SETTINGS = RetargetSettings(
    smoothness=0.0, foot_orientation=0.3, pelvis_orientation=0.2, torso_orientation=0.4, posture=0.1
)
PHASE = Phase(0.03, True)


def _case(fps: float) -> tuple[Targets, Trajectory]:
    """A random trajectory near the ground, its targets elsewhere, its soles half in contact."""
    rng = np.random.default_rng(3)
    root = np.array([0.0, 0.0, 0.74]) + 0.02 * rng.normal(size=(T, 3))
    state = Trajectory(root, rotvec_to_quat(0.2 * rng.normal(size=(T, 3))), 0.2 * rng.normal(size=(T, V - 6)))
    links = PROFILE.link_indices(link for link, _ in PROFILE.correspondences)
    poses = KINEMATICS.forward(state.root_pos, state.root_quat, state.joint_pos)
    turned = np.array([0, *PROFILE.foot_index], dtype=np.intp)
    turn = quat_mul(rotvec_to_quat(0.1 * rng.normal(size=(T, 3, 3))), poses.quat[:, turned])
    away = poses.pos[:, links] + 0.05 * rng.normal(size=(T, len(links), 3))
    contact = rng.uniform(0, 1, size=(T, *PROFILE.sole_points.shape[:2]))
    return Targets(fps, root, links, away, turned, turn, np.array([0.2, 0.3, 0.3]), contact), state


def _point(state: Trajectory) -> Point:
    poses = KINEMATICS.forward(state.root_pos, state.root_quat, state.joint_pos)
    soles = KINEMATICS.sole_points(poses).reshape(T, -1, 3)
    return Point(state, poses, soles, soles[..., 2] < 0, PHASE)


def _huber(away: np.ndarray, slack: float) -> np.ndarray:
    """The square of what is small against `slack`, and 2 slack away of what is large."""
    return 2 * slack**2 * (np.sqrt(1 + (away / slack) ** 2) - 1)


def _cost(targets: Targets, state: Trajectory) -> float:
    """What `linearise` lowers, written out."""
    at, s = _point(state), SETTINGS
    away = np.linalg.norm(at.poses.pos[:, targets.links] - targets.positions, axis=-1)
    cost = _huber(away, PHASE.link_slack).sum()
    turn = quat_to_rotvec(quat_mul(at.poses.quat[:, targets.turned], quat_conj(targets.orientations)))
    cost += ((targets.turned_weights[:, None] * turn) ** 2).sum()
    firm, height = targets.sole_contact.reshape(T, -1), at.soles[..., 2]
    slide = np.linalg.norm(np.diff(at.soles[..., :2], axis=0), axis=-1)
    pace = targets.fps / 30.0
    cost += (firm[1:] * firm[:-1] * s.foot_hold**2 * _huber(slide * pace, s.hold_slack)).sum()
    stand = (firm * s.sole_height) ** 2 * _huber(height, s.sole_slack)
    cost += np.where(at.pressed, s.penetration**2 * height**2, stand).sum()
    change = np.diff(state.joint_pos, axis=0)
    most = PROFILE.joint_velocity_limit / targets.fps
    cost += (s.speed_limit**2 * (change - np.clip(change, -most, most)) ** 2).sum()
    return float(cost + (s.posture**2 * (state.joint_pos - PROFILE.default_joint_pos) ** 2).sum())


@pytest.mark.parametrize("fps", [20.0, 30.0, 120.0])
def test_gradient_is_half_the_costs(fps: float) -> None:
    targets, state = _case(fps)
    joints = state.joint_pos.copy()
    joints[2, PROFILE.joint_index("left_knee_joint")] += 1.0  # faster than its limit
    state = Trajectory(state.root_pos, state.root_quat, joints)
    gradient = linearise(KINEMATICS, targets, _point(state), SETTINGS).gradient
    wide = np.full(V - 6, 10.0)
    for frame in range(T):
        for variable in range(V):
            step = np.zeros((T, V))
            step[frame, variable] = 1e-6
            ahead, behind = (_cost(targets, state.moved(sign * step, -wide, wide)) for sign in (1, -1))
            assert gradient[frame, variable] == pytest.approx((ahead - behind) / 4e-6, rel=2e-4, abs=2e-6)


def test_sums_up_the_tree_equal_explicit_jacobians() -> None:
    _, state = _case(30.0)
    at = _point(state)
    rng = np.random.default_rng(4)
    links = np.array([PROFILE.link_index(n) for n in ("left_hand_link", "torso_link", "left_ankle_roll_link")])
    offset, weight, away = rng.normal(size=(3, 3)), rng.uniform(0, 1, (3, 3, T)), rng.normal(size=(3, 3, T))
    jacobian = KINEMATICS.jacobian(at.poses, links, offset)
    where = KINEMATICS.points(at.poses, links, offset) - at.poses.pos[:, :1]
    residuals = LinkResiduals(KINEMATICS, at.poses)
    residuals.add_points(links, where.transpose(2, 1, 0), weight, weight * away)
    system = BandedSystem(T, V)
    residuals.add_to(system)
    expected = np.einsum("tkav,akt,tkaw->tvw", jacobian, weight, jacobian)
    np.testing.assert_allclose(
        system.gradient, np.einsum("tkav,akt->tv", jacobian, weight * away), rtol=1e-10, atol=1e-12
    )
    step = system.solve()
    normal = expected + 1e-4 * np.eye(V)
    gradient = np.einsum("tkav,akt->tv", jacobian, weight * away)
    np.testing.assert_allclose(step, np.linalg.solve(normal, -gradient[..., None])[..., 0], rtol=1e-6, atol=1e-8)
