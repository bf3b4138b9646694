"""The reference motion at the control rate, with all link states, ready for look-up by frame number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from asap_core.errors import StageError
from asap_core.motions.robot import RobotMotion
from asap_core.robots.kinematics import Kinematics, LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, slerp
from asap_core.simulators.protocol import RobotState

Array = NDArray[np.floating]
JointVelocity = Literal["smoothed", "difference"]
"""How a reference's joint velocities come about: central differences through the Gaussian filter, or the forward
differences of the paper's code, whose last two are equal."""
Phase = Literal["frames", "clip"]
"""Whether the phase is 1 at the last frame of the control rate, or at the clip's own end as in the paper."""
_SMOOTHING_FRAMES = 2.0
"""Gaussian width of the velocity filter in frames of the source motion (paper's code)."""


def _velocity(values: Array, fps: float) -> Array:
    return gaussian_filter1d(np.gradient(values, 1.0 / fps, axis=0), _SMOOTHING_FRAMES, axis=0, mode="nearest")


def _difference(values: Array, fps: float) -> Array:
    step = np.diff(values, axis=0) * fps
    return np.concatenate([step, step[-1:]])


def _angular_velocity(quat: Array, fps: float) -> Array:
    step = quat_to_rotvec(quat_mul(quat[1:], quat_conj(quat[:-1]))) * fps
    return gaussian_filter1d(np.concatenate([step, step[-1:]]), _SMOOTHING_FRAMES, axis=0, mode="nearest")


def _lerp(times: Array, values: Array, at: Array) -> Array:
    return np.stack([np.interp(at, times, column) for column in values.T], axis=1)


@dataclass(frozen=True)
class ReferenceMotion:
    """T frames at the control rate. Frame k is time k · control_dt; the frames last (T − 1) · control_dt seconds."""

    name: str
    control_dt: float
    state: RobotState
    """Root and joints, T rows; velocities by central differences and a Gaussian filter (world frame)."""
    clip_length_s: float
    """Duration of the motion itself, less than one control step longer than the frames."""
    links: LinkStates
    """Link states (T, L, …), world frame."""

    @property
    def num_frames(self) -> int:
        """T."""
        return len(self.state.root_pos)

    @property
    def length_s(self) -> float:
        """Duration of the frames in seconds."""
        return (self.num_frames - 1) * self.control_dt

    @cached_property
    def first_frame(self) -> NDArray[np.intp]:
        """(T,) for each frame the first one of its motion: 0."""
        return np.zeros(self.num_frames, np.intp)

    @cached_property
    def last_frame(self) -> NDArray[np.intp]:
        """(T,) for each frame the last one of its motion: T − 1."""
        return np.full(self.num_frames, self.num_frames - 1)

    def phases(self, kind: Phase) -> Array:
        """(T,) phase of each frame."""
        return self.phase(np.arange(self.num_frames), self.clip_length_s if kind == "clip" else None)

    def phase(self, frame: NDArray[np.intp], length_s: float | None) -> Array:
        """Share (N,) of the clip at frames (N,): of the frames, or, where given, of `length_s` seconds; 1 at most."""
        if length_s is None:
            return frame / (self.num_frames - 1)
        return np.minimum(frame * self.control_dt / length_s, 1.0)

    @classmethod
    def from_motion(
        cls, motion: RobotMotion, profile: RobotProfile, control_dt: float, joint_velocity: JointVelocity = "smoothed"
    ) -> ReferenceMotion:
        """Resample `motion` to the control rate, its start moved to x = y = 0, and derive all velocities.

        Link velocities come from the smoothed joint velocities, whichever the state has.

        Raises:
            StageError: the motion's joints are not those of `profile`, in its order.
        """
        if tuple(motion.joint_names) != tuple(profile.joint_names):
            raise StageError(
                f"motion {motion.name!r} was made for robot {motion.robot!r}, {len(motion.joint_names)} joints; found "
                f"{', '.join(motion.joint_names)}; expected those of {profile.name!r}, in this order: "
                f"{', '.join(profile.joint_names)}; run stage retarget for this robot, or convert it: asap convert"
            )
        times = np.arange(len(motion.root_pos)) / motion.fps
        at = np.arange(int(np.floor(times[-1] / control_dt + 1e-9)) + 1) * control_dt
        root_pos = motion.root_pos - np.array([*motion.root_pos[0, :2], 0.0])
        state = RobotState(
            root_pos=_lerp(times, root_pos, at),
            root_quat=slerp(motion.root_quat, times, at),
            root_lin_vel=_lerp(times, _velocity(root_pos, motion.fps), at),
            root_ang_vel=_lerp(times, _angular_velocity(motion.root_quat, motion.fps), at),
            joint_pos=_lerp(times, motion.joint_pos, at),
            joint_vel=_lerp(times, _velocity(motion.joint_pos, motion.fps), at),
        )
        links = Kinematics(profile).forward_with_velocities(
            state.root_pos, state.root_quat, state.joint_pos, state.root_lin_vel, state.root_ang_vel, state.joint_vel
        )
        if joint_velocity == "difference":
            state = replace(state, joint_vel=_lerp(times, _difference(motion.joint_pos, motion.fps), at))
        return cls(motion.name, control_dt, state, float(times[-1]), links)
