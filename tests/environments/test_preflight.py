from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.environments.preflight import preflight
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.terminations import TerminationSettings
from asap_core.robots import get_profile
from asap_core.rotations import rotvec_to_quat
from tests.robot_motions import knee_bend, knee_bend_reference

PROFILE = get_profile("g1_23dof")
SETTINGS = TerminationSettings()


def test_a_standing_reference_ends_nothing() -> None:
    found = preflight(knee_bend_reference(), PROFILE, SETTINGS)
    assert found.accepted
    assert found.texts == ()


def test_a_reference_that_lies_down_would_end_at_step_0() -> None:
    """1.9 rad of pitch: gravity's largest horizontal component in the pelvis frame is sin 1.9 = 0.946."""
    motion = knee_bend()
    lying = replace(motion, root_quat=np.tile(rotvec_to_quat(np.array([0.0, 1.9, 0.0])), (motion.num_frames, 1)))
    found = preflight(ReferenceMotion.from_motion(lying, PROFILE, 0.02), PROFILE, SETTINGS)
    assert found.ends.all()
    expected = "would end at step 0: pelvis tilt 0.95 > 0.80 in frame 0 (51 of 51 frames end an episode)"
    assert found.text() == expected


def test_a_reference_that_tips_over_later_names_the_frame() -> None:
    motion = knee_bend()
    angle = np.linspace(0.0, 1.2, motion.num_frames)
    tipping = replace(motion, root_quat=rotvec_to_quat(np.stack([angle, 0 * angle, 0 * angle], axis=1)))
    found = preflight(ReferenceMotion.from_motion(tipping, PROFILE, 0.02), PROFILE, SETTINGS)
    first = int((np.sin(angle) > 0.8).argmax())
    assert not found.ends[0]
    assert int(found.ends.argmax()) == first
    assert f"would end at step {first}: pelvis tilt" in found.text()


def test_links_that_do_not_belong_to_the_joints_are_named() -> None:
    reference = knee_bend_reference()
    pos = reference.links.pos.copy()
    pos[7:, PROFILE.link_index("left_knee_link"), 0] += 2.0
    broken = replace(reference, links=replace(reference.links, pos=pos))
    found = preflight(broken, PROFILE, SETTINGS)
    assert int(found.ends.argmax()) == 7
    assert "left_knee_link 2.00 m > 1.50 m from its own reference in frame 7" in found.text()


def test_a_speed_that_is_no_number_ends_an_episode() -> None:
    reference = knee_bend_reference()
    speed = reference.state.joint_vel.copy()
    speed[5, 3] = np.nan
    found = preflight(replace(reference, state=replace(reference.state, joint_vel=speed)), PROFILE, SETTINGS)
    assert found.text().startswith("would end at step 5: a joint angle or speed is not finite in frame 5")


@pytest.mark.parametrize("tilt", [0.5, 0.9])
def test_the_limit_is_the_environments(tilt: float) -> None:
    motion = knee_bend()
    leaning = replace(motion, root_quat=np.tile(rotvec_to_quat(np.array([0.7, 0.0, 0.0])), (motion.num_frames, 1)))
    found = preflight(ReferenceMotion.from_motion(leaning, PROFILE, 0.02), PROFILE, TerminationSettings(tilt=tilt))
    assert found.accepted == (np.sin(0.7) < tilt)
