"""The lift's kinematic tree: forward kinematics as `HumanMotion` has them, derivatives as finite differences have."""

from __future__ import annotations

import numpy as np

from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.motions.tables import Source
from asap_core.reconstruction.body import (
    HINGES,
    NUM_CAMERA,
    NUM_VARIABLES,
    SHAPE_GROUPS,
    BodyState,
    Points,
    Pose,
    shaped,
)
from asap_core.rotations import rotvec_to_quat

RNG = np.random.default_rng(0)
SHAPE = RNG.normal(size=len(SHAPE_GROUPS)) * 0.1
POINTS = Points(
    np.array([INDEX[n] for n in ("Head", "L_Wrist", "R_Elbow", "L_Toe", "R_Ankle", "L_Shoulder", "Pelvis")]),
    RNG.normal(size=(7, 3)) * 0.1,
)


def random_state(frames: int) -> BodyState:
    rng = np.random.default_rng(3)
    balls = rotvec_to_quat(rng.normal(size=(frames, 5, 3)))
    return BodyState(rng.normal(size=(frames, 3)), balls, rng.normal(size=(frames, len(HINGES))) * 0.5)


def test_joints_are_those_of_the_human_motion_it_becomes() -> None:
    state = random_state(4)
    source = Source("made", "00", "test")
    motion = HumanMotion("m", 30.0, state.joint_rotations(), state.root, shaped(SHAPE), source)
    np.testing.assert_allclose(Pose(SHAPE, state).joints, motion.joint_positions(), atol=1e-12)


def test_derivatives_equal_finite_differences() -> None:
    state, step = random_state(3), 1e-6
    pose = Pose(SHAPE, state)
    places = pose.place(POINTS)
    found = pose.rows(POINTS, places, np.broadcast_to(np.eye(3), (*places.shape, 3)), True)
    for variable in range(NUM_VARIABLES):
        change = np.zeros((3, NUM_VARIABLES))
        change[:, variable] = step
        after, before = (Pose(SHAPE, state.moved(s * change)).place(POINTS) for s in (1, -1))
        np.testing.assert_allclose(found[..., variable], (after - before) / (2 * step), atol=1e-8)
    for group in range(len(SHAPE_GROUPS)):
        change = np.zeros(len(SHAPE_GROUPS))
        change[group] = step
        after, before = (Pose(SHAPE + s * change, state).place(POINTS) for s in (1, -1))
        np.testing.assert_allclose(
            found[..., NUM_VARIABLES + NUM_CAMERA + group], (after - before) / (2 * step), atol=1e-8
        )
