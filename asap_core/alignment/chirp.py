"""SysID in the air without motion capture: joints of a hanging robot follow chirps, only joint data are recorded.

Source of the idea: PACE (in-air excitation of all joints, drive parameters fitted to encoder data). Ground friction and
the root's mass cannot be told from it and are not fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.alignment.physics_fit import PhysicsFitter, SysIdSettings
from asap_core.alignment.physics_replay import PhysicsReplay
from asap_core.alignment.replay import JOINT_ARM_M
from asap_core.alignment.sysid_parameters import Parameter, physics_of, sysid_parameters
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.drive_law import DriveLaw
from asap_core.simulators.mujoco import best_stepper
from asap_core.simulators.target_delay import TargetDelay

Array = NDArray[np.floating]
_RANGE_SHARE = 0.35
"""Of the way from the default pose to the nearer joint limit, the chirp's amplitude; 0.4 rad at most."""
_MOST_RAD = 0.4
_FREQUENCIES_HZ = (0.2, 4.0)
_ENCODER_NOISE_RAD = 1e-3
_PAST = 8
_ENVS = 512


@dataclass(frozen=True)
class JointLog:
    """K control steps of a hanging robot. Row k is the state in which target k is given."""

    control_dt: float
    joint_pos: Array
    """(K + 1, J) rad, encoders."""
    joint_vel: Array
    """(K + 1, J) rad/s."""
    joint_target: Array
    """(K, J) rad."""


def chirp_targets(profile: RobotProfile, control_dt: float, duration_s: float) -> Array:
    """(K, J) rad: all joints at once about the default pose, frequencies rising and out of phase with one another."""
    time = np.arange(round(duration_s / control_dt))[:, None] * control_dt
    middle = profile.default_joint_pos
    room = np.minimum(profile.joint_upper - middle, middle - profile.joint_lower)
    size = np.minimum(_RANGE_SHARE * room, _MOST_RAD)
    order = np.arange(profile.num_joints)
    first, last = _FREQUENCIES_HZ
    top = last * (0.6 + 0.4 * ((order * 7) % profile.num_joints) / profile.num_joints)
    turns = first * time + (top - first) * time**2 / (2 * duration_s)
    return middle + size * np.sin(2 * np.pi * turns + order * 2.4)


class HangingRobots:
    """N robots with their roots fixed, each under its own physics."""

    def __init__(self, profile: RobotProfile, physics: list[PhysicsSettings], threads: int = 1) -> None:
        models = {id(p): build_model(profile, p, hang=True) for p in physics}
        self._stepper = best_stepper([models[id(p)] for p in physics], threads)
        self._delay = TargetDelay(physics, profile.num_joints)
        self._drive = DriveLaw.of(profile, physics)

    @property
    def joint_pos(self) -> Array:
        """(N, J) rad."""
        return self._stepper.qpos.copy()

    @property
    def joint_vel(self) -> Array:
        """(N, J) rad/s."""
        return self._stepper.qvel.copy()

    def set_state(self, joint_pos: Array, joint_vel: Array, past_target: Array | None = None) -> None:
        """Put all robots into a state; see `Simulator.set_state`."""
        self._stepper.qpos[:], self._stepper.qvel[:], self._stepper.ctrl[:] = joint_pos, joint_vel, joint_pos
        self._delay.refill(np.arange(len(joint_pos)), joint_pos, past_target)

    def step(self, joint_target: Array) -> None:
        """One control step under targets (N, J) rad."""
        stepper = self._stepper
        for target, physics_steps in self._delay.runs(joint_target):
            for count in [physics_steps] if self._drive is None else [1] * physics_steps:
                drive = self._drive
                stepper.ctrl[:] = target if drive is None else drive(target, stepper.qpos, stepper.qvel)
                stepper.step(count)


def record_chirp(profile: RobotProfile, physics: PhysicsSettings, duration_s: float) -> JointLog:
    """What the encoders of a twin under `physics` show."""
    targets = chirp_targets(profile, physics.control_dt, duration_s)
    robot = HangingRobots(profile, [physics])
    robot.set_state(profile.default_joint_pos[None], np.zeros((1, profile.num_joints)))
    pos, vel = [robot.joint_pos[0]], [robot.joint_vel[0]]
    for target in targets:
        robot.step(target[None])
        pos.append(robot.joint_pos[0])
        vel.append(robot.joint_vel[0])
    return JointLog(physics.control_dt, np.stack(pos), np.stack(vel), targets)


def chirp_parameters(profile: RobotProfile, nominal: PhysicsSettings) -> tuple[Parameter, ...]:
    """All that a robot with a fixed root tells anything about."""
    root = profile.links[0].name
    return tuple(p for p in sysid_parameters(profile, nominal) if p.field != "friction" and p.key != root)


class ChirpReplay(PhysicsReplay):
    """Pieces of a joint log, from the recorded joint states on."""

    def __init__(
        self,
        profile: RobotProfile,
        nominal: PhysicsSettings,
        log: JointLog,
        parameters: tuple[Parameter, ...],
        horizon_s: float,
        count: int,
        threads: int,
        shrink: float = 1.0,
    ) -> None:
        super().__init__(parameters, shrink)
        self._profile = profile
        self._nominal = nominal
        self._log = log
        self._threads = threads
        self._horizon = max(1, round(horizon_s / log.control_dt))
        self.points = profile.num_joints
        last = len(log.joint_target) - self._horizon
        self._starts = np.unique(np.linspace(_PAST, last, count).astype(np.intp))
        self.episode = np.arange(len(self._starts))
        self.noise_m = JOINT_ARM_M * _ENCODER_NOISE_RAD

    def pieces(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """See `PhysicsReplay.pieces`: joint angles on an arm."""
        count, log = len(values), self._log
        at_once = min(max(1, _ENVS // count), len(self._starts))
        physics = [physics_of(self._nominal, self._parameters, value) for value in values]
        robots = HangingRobots(self._profile, [p for p in physics for _ in range(at_once)], self._threads)
        for begin in range(0, len(self._starts), at_once):
            starts = self._starts[begin : begin + at_once]
            rows = np.tile(np.resize(starts, at_once), count)
            past = log.joint_target[rows[:, None] + np.arange(-_PAST, 0)]
            robots.set_state(log.joint_pos[rows], log.joint_vel[rows], past)
            reached = []
            for step in range(self._horizon):
                robots.step(log.joint_target[rows + step])
                reached.append(robots.joint_pos)
            joints = np.stack(reached, axis=1).reshape(count, at_once, self._horizon, -1)[:, : len(starts)]
            recorded = log.joint_pos[starts[:, None] + 1 + np.arange(self._horizon)]
            yield JOINT_ARM_M * recorded, JOINT_ARM_M * joints


def chirp_fitter(
    profile: RobotProfile, nominal: PhysicsSettings, log: JointLog, settings: SysIdSettings, threads: int, cache: Path
) -> PhysicsFitter:
    """What fits the drives and the delay to a chirp's joint log."""
    parameters = chirp_parameters(profile, nominal)

    def replay(horizon_s: float, shrink: float) -> PhysicsReplay:
        count = max(2, round(settings.seconds / horizon_s))
        return ChirpReplay(profile, nominal, log, parameters, horizon_s, count, threads, shrink)

    return PhysicsFitter(parameters, replay, settings, cache)
