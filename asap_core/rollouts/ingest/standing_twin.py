"""A simulated G1 that stays on its feet and keeps moving: what acts in tests and in `asap bench ingest`.

It bends its knees, turns its pelvis and moves waist and arms. Ankles and hips hold its centre of mass over the feet, so
that it stands on the robot's own gains and also where its physics are altered. It is no learned policy, but it acts as
one does: 50 Hz joint targets from the state; nothing else touches the robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asap_core.robots.kinematics import LinkStates
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.twin_log import RecordingSimulator, TwinRecord
from asap_core.rotations import Array, quat_to_matrix
from asap_core.simulators.protocol import RobotState

_START_HEIGHT = 0.784
"""m of the pelvis in the default pose with the soles on the ground."""
_SETTLE_S = 1.0
"""Movements grow to their size within this time."""


@dataclass(frozen=True)
class Stand:
    """Sizes in rad and rates in rad/s of the movements, and the balance law's gains."""

    seed: int = 0
    knee: float = 0.25
    turn: float = 0.3
    waist: float = 0.35
    arms: float = 0.5
    clip: float = np.inf
    """rad; targets stay within this of the default pose, as those of a policy whose actions are clipped."""
    ahead: float = 0.04
    """m by which the centre of mass is held before the ankles."""
    gain: float = 30.0
    """rad of ankle target per m that the centre of mass is off."""
    rate_gain: float = 8.0
    """rad per m/s."""
    side_gain: float = 5.0
    """The same sideways, of hips and ankles."""
    side_rate_gain: float = 0.9


def stand(
    profile: RobotProfile, seconds: float, physics: PhysicsSettings | None = None, delay_s: float = 0.0,
    movement: Stand | None = None,
) -> TwinRecord:  # fmt: skip
    """Stand and move for `seconds`.

    Args:
        profile: a G1.
        physics: of the twin; nominal if left out.
        delay_s: between a command and its effect, a multiple of 2 ms.
        movement: what it does.

    Returns:
        The run; it may have fallen, see `fell`.
    """
    physics = physics or PhysicsSettings()
    simulator = RecordingSimulator(profile, physics, delay_s)
    simulator.set_state(np.array([0]), _start(profile))
    act = _Controller(profile, movement or Stand())
    for step in range(round(seconds / physics.control_dt)):
        simulator.step(act(step * physics.control_dt, simulator.link_states())[None])
    return TwinRecord.of(simulator, profile)


def fell(record: TwinRecord) -> bool:
    """Whether the pelvis ever went below 0.55 m."""
    return bool(record.state.root_pos[:, 2].min() < 0.55)


def _start(profile: RobotProfile) -> RobotState:
    still = np.zeros((1, 3))
    pose = np.asarray(profile.default_joint_pos, float)[None]
    return RobotState(
        np.array([[0.0, 0.0, _START_HEIGHT]]), np.array([[1.0, 0, 0, 0]]), still, still, pose.copy(), 0 * pose
    )


class _Controller:
    """Joint targets from time and state."""

    def __init__(self, profile: RobotProfile, movement: Stand) -> None:
        self._m = movement
        rng = np.random.default_rng(movement.seed)
        self._phase = rng.uniform(0, 2 * np.pi, 16)
        self._rate = rng.uniform(0.85, 1.15, 16)
        self._default = np.asarray(profile.default_joint_pos, float)
        self._joint = {name.removesuffix("_joint"): k for k, name in enumerate(profile.joint_names)}
        mass = np.array([link.mass for link in profile.links])
        self._share = mass / mass.sum()
        self._com = np.array([link.com for link in profile.links])
        self._feet = profile.foot_index
        self._limits = np.asarray(profile.joint_lower, float) + 0.02, np.asarray(profile.joint_upper, float) - 0.02

    def __call__(self, time: float, links: LinkStates) -> Array:
        """(J,) rad."""
        out = self._default.copy()
        grow = min(time / _SETTLE_S, 1.0)
        bend = grow * self._m.knee * (1 + 0.6 * self._wave(0, 3.0, time) + 0.4 * self._wave(1, 1.3, time)) / 2
        turn = grow * self._m.turn * (0.7 * self._wave(2, 2.1, time) + 0.5 * self._wave(3, 3.7, time))
        for side in ("left", "right"):
            self._add(out, {f"{side}_hip_pitch": -bend, f"{side}_knee": 2 * bend, f"{side}_ankle_pitch": -bend})
            self._add(out, {f"{side}_hip_yaw": -turn})
        waist = grow * self._m.waist
        self._add(
            out, {"waist_yaw": waist * self._wave(4, 2.7, time), "waist_roll": 0.3 * waist * self._wave(5, 1.9, time)}
        )
        arms = grow * self._m.arms
        for k, (joint, sign) in enumerate(_ARMS.items()):
            self._add(out, {joint: sign * arms * (0.5 + 0.5 * self._wave(6 + k, 1.5 + 0.3 * k, time))})
        self._balance(out, links)
        clipped: Array = self._default + np.clip(out - self._default, -self._m.clip, self._m.clip)
        return clipped

    def _balance(self, out: Array, links: LinkStates) -> None:
        """Ankles push the centre of mass back over the middle of the feet."""
        count = len(self._share)
        place = self._share @ (links.pos[0, :count] + np.einsum("lij,lj->li", links.rot[0, :count], self._com))
        feet = links.pos[0, self._feet].mean(axis=0)
        speed = self._share @ links.lin_vel[0, :count]
        heading = quat_to_matrix(links.quat[0, self._feet[0]])[:2, :2]
        away = heading.T @ (place - feet)[:2] - np.array([self._m.ahead, 0.0])
        rate = heading.T @ speed[:2]
        forward = self._m.gain * away[0] + self._m.rate_gain * rate[0]
        left = self._m.side_gain * away[1] + self._m.side_rate_gain * rate[1]
        for side in ("left", "right"):
            self._add(out, {f"{side}_ankle_pitch": forward, f"{side}_hip_roll": left, f"{side}_ankle_roll": -left})

    def _wave(self, k: int, rate: float, time: float) -> float:
        return float(np.sin(self._rate[k] * rate * time + self._phase[k]))

    def _add(self, out: Array, changes: dict[str, float]) -> None:
        for name, change in changes.items():
            out[self._joint[name]] += change


_ARMS = {
    "left_shoulder_pitch": 1.0,
    "right_shoulder_pitch": 1.0,
    "left_shoulder_roll": 0.6,
    "right_shoulder_roll": -0.6,
    "left_elbow": 1.0,
    "right_elbow": 1.0,
}
