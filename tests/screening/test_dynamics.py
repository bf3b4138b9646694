from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import SAMPLES, poses
from asap_core.motions.skeleton import NUM_JOINTS, body_offsets
from asap_core.motions.tables import Source
from asap_core.rotations import quat_mul, quat_to_rotvec, rotvec_to_quat
from asap_core.screening.body import body_segments
from asap_core.screening.dynamics import (
    GRAVITY,
    Demand,
    contact_demand,
    contact_forces,
    slowest_low_point,
    support_distance,
)

FPS = 60.0


def _standing(frames: int = 60) -> HumanMotion:
    """The first frame of the squat, held."""
    rotations, translation = poses(SAMPLES["squat"]())
    first = np.tile(rotations[0].reshape(1, NUM_JOINTS, 3), (frames, 1, 1))
    source = Source("tests", "0", "tests")
    return HumanMotion("still", FPS, first, np.tile(translation[0], (frames, 1)), body_offsets(), source)


def test_segments_make_a_whole_body_with_positive_moments() -> None:
    segments = body_segments(body_offsets())
    assert segments.mass.sum() == pytest.approx(1.0)
    assert (np.linalg.eigvalsh(segments.inertia) > 0).all()


def test_standing_asks_for_the_weight_and_no_moment() -> None:
    demand = contact_demand(_standing())
    np.testing.assert_allclose(demand.force, np.tile([0.0, 0.0, GRAVITY], (60, 1)), atol=1e-9)
    np.testing.assert_allclose(demand.moment, 0.0, atol=1e-9)
    assert demand.sole_speed.max() < 1e-9


def test_free_fall_asks_for_nothing() -> None:
    still = _standing()
    times = np.arange(60) / FPS
    drop = np.stack([0.7 * times, 0 * times, 3 * times - GRAVITY / 2 * times**2], axis=1)
    demand = contact_demand(replace(still, root_translation=still.root_translation + drop))
    np.testing.assert_allclose(demand.force[12:-12], 0.0, atol=1e-6)
    np.testing.assert_allclose(demand.moment[12:-12], 0.0, atol=1e-6)


def test_angular_momentum_of_a_rigid_body_that_spins_up_grows_with_its_inertia() -> None:
    """Stretched out in the air, turning about the vertical through the centre of mass with 2 rad/s²."""
    still = _standing(90)
    angle = 0.5 * 2.0 * (np.arange(90) / FPS) ** 2
    turn = rotvec_to_quat(np.stack([0 * angle, 0 * angle, angle], axis=1))
    rotations = still.joint_rotations.copy()
    rotations[:, 0] = quat_to_rotvec(quat_mul(turn, rotvec_to_quat(rotations[:, 0])))
    motion = replace(still, joint_rotations=rotations)
    world = still.global_rotations()[0]
    segments = body_segments(still.skeleton)
    turned = world[segments.joint]
    places = still.joint_positions()[0, segments.joint] + np.einsum("sij,sj->si", turned, segments.com)
    arm = places - segments.mass @ places
    inertia = (segments.mass * (arm[:, 0] ** 2 + arm[:, 1] ** 2)).sum()
    inertia += (turned @ segments.inertia @ np.swapaxes(turned, 1, 2))[:, 2, 2].sum()
    np.testing.assert_allclose(contact_demand(motion).moment[15:-15, 2], 2.0 * inertia, rtol=0.02)


def _demand(com: list[float], force: list[float]) -> Demand:
    square = np.array([[[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.1, 0.1)]])
    row = np.array([com])
    return Demand(row, np.zeros(1), np.array([force]), np.zeros((1, 3)), square, np.zeros((1, 4)))


def test_residual_is_the_weight_in_the_air_and_zero_over_the_feet() -> None:
    demand = _demand([0.05, 0.0, 0.9], [0.0, 0.0, GRAVITY])
    assert contact_forces(demand, np.zeros((1, 4), bool), 0.9)[0][0] == pytest.approx(1.0)
    assert contact_forces(demand, np.ones((1, 4), bool), 0.9)[0][0] == pytest.approx(0.0, abs=1e-9)


def test_residual_sees_forces_outside_the_friction_cone() -> None:
    """Pushing sideways with the weight needs a friction of one, and 0.5 covers half of it at most."""
    demand = _demand([0.0, 0.0, 0.0], [GRAVITY, 0.0, GRAVITY])
    assert contact_forces(demand, np.ones((1, 4), bool), 1.0)[0][0] == pytest.approx(0.0, abs=1e-9)
    assert contact_forces(demand, np.ones((1, 4), bool), 0.5)[0][0] == pytest.approx(1 / np.sqrt(5), rel=1e-6)


def test_support_distance_is_measured_from_the_hull() -> None:
    feet = np.ones((1, 4), bool)
    assert support_distance(_demand([0.05, -0.08, 0.9], [0, 0, 1]), feet)[0] == pytest.approx(0.0, abs=1e-6)
    assert support_distance(_demand([0.3, 0.0, 0.9], [0, 0, 1]), feet)[0] == pytest.approx(0.2, rel=1e-3)
    assert support_distance(_demand([0.13, 0.14, 0.9], [0, 0, 1]), feet)[0] == pytest.approx(0.05, rel=1e-3)


def test_contact_forces_add_up_to_the_demand_when_they_explain_it() -> None:
    demand = _demand([0.03, -0.02, 0.0], [1.0, -2.0, GRAVITY])
    residual, forces = contact_forces(demand, np.ones((1, 4), bool), 0.9)
    assert residual[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(forces[0].sum(axis=0), [1.0, -2.0, GRAVITY], atol=1e-9)
    moment = np.cross(demand.soles[0] - demand.com[0], forces[0]).sum(axis=0)
    np.testing.assert_allclose(moment, 0.0, atol=1e-9)
    assert (np.abs(forces[0][:, :2]).sum(axis=1) <= 0.9 * forces[0][:, 2] + 1e-9).all()


def test_slowest_low_point_ignores_points_in_the_air() -> None:
    demand = replace(_demand([0, 0, 0.9], [0, 0, 1]), sole_speed=np.array([[0.0, 0.3, 0.2, 0.1]]))
    assert slowest_low_point(demand, np.array([[False, True, True, False]]))[0] == 0.2
    assert slowest_low_point(demand, np.zeros((1, 4), bool))[0] == 0.0
