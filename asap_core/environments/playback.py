"""Letting a policy act without learning: the one loop that evaluation and collection share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.correction import ActionCorrection
from asap_core.environments.future import Ahead
from asap_core.environments.observations import (
    CLIP,
    ObservationBuilder,
    ObservationContext,
    ObservationLayout,
    ObservationSettings,
)
from asap_core.environments.reference import ReferenceMotion
from asap_core.metrics import FAILURE_DISTANCE_M
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity
from asap_core.simulators.protocol import RobotState, Simulator

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ActingRule:
    """How a policy sees and acts: the part of its contract that a control loop needs."""

    observation: ObservationSettings
    action_base: Literal["default", "reference"]
    action_scale: Array
    """(J,) rad per unit action."""
    phase_length_s: float | None = None
    """Seconds after which the phase is 1; None: at the last frame."""


@dataclass(frozen=True)
class Playback:
    """N runs of K control steps side by side. State arrays hold K + 1 rows: row k is before step k."""

    states: list[RobotState]
    """K + 1 states of N robots."""
    link_pos: Array
    """(K + 1, N, L, 3) m, world."""
    action: Array
    """(K, N, J) raw, clipped."""
    joint_target: Array
    """(K, N, J) rad, nominal: before correction and delay."""
    torque: Array
    """(K, N, J) Nm, of the state after the step."""
    start_frame: NDArray[np.intp]
    """(N,) reference frame of row 0."""
    alive: NDArray[np.bool_]
    """(K + 1, N) the mean link distance never went over 0.5 m and the robot never tilted, up to this row."""
    mean_distance: Array
    """(K + 1, N) m, mean over links to the reference of the same time."""


def perturbed_starts(
    reference: ReferenceMotion,
    frames: NDArray[np.intp],
    seed: int,
    joint_pos_noise: float = 0.02,
    joint_vel_noise: float = 0.1,
) -> RobotState:
    """Reference states at `frames` (N,) with Gaussian noise on joint positions (rad) and velocities (rad/s)."""
    rng = np.random.default_rng(seed)
    clean = reference.state.take(frames)
    return RobotState(
        root_pos=clean.root_pos,
        root_quat=clean.root_quat,
        root_lin_vel=clean.root_lin_vel,
        root_ang_vel=clean.root_ang_vel,
        joint_pos=clean.joint_pos + rng.normal(0.0, joint_pos_noise, clean.joint_pos.shape),
        joint_vel=clean.joint_vel + rng.normal(0.0, joint_vel_noise, clean.joint_vel.shape),
    )


def play(
    policy: Callable[[NDArray[np.float32]], NDArray[np.floating]],
    rule: ActingRule,
    reference: ReferenceMotion,
    profile: RobotProfile,
    simulator: Simulator,
    starts: RobotState,
    start_frame: NDArray[np.intp],
    correction: ActionCorrection | None = None,
    action_noise: float = 0.0,
    seed: int = 0,
) -> Playback:
    """Run `policy` from `starts` (N rows, as many as the simulator has robots) until the clip ends.

    Robots that start later in the clip hold its last frame at the end. A failed run goes on, marked not alive.

    Args:
        policy: observation (N, W) → raw action (N, J).
        action_noise: standard deviation of Gaussian noise on the raw action (for data with more spread).
    """
    rng = np.random.default_rng(seed)
    everyone = np.arange(simulator.num_envs)
    builder = ObservationBuilder(ObservationLayout(rule.observation, profile), simulator.num_envs)
    simulator.set_state(everyone, starts)
    if correction is not None:
        correction.reset(everyone)
    last, last_action = reference.num_frames - 1, np.zeros((simulator.num_envs, len(profile.joint_names)))
    steps = int(last - start_frame.min())
    record = _Recorder(simulator, reference, start_frame)
    for k in range(steps):
        ahead = np.minimum(start_frame + k + 1, last)
        context = ObservationContext(
            profile=profile,
            state=simulator.state,
            links=None,
            last_action=last_action,
            phase=reference.phase(ahead, rule.phase_length_s),
            ref_joint_pos=reference.state.joint_pos[ahead],
            ref_link_pos=None,
            ahead=Ahead(reference, ahead),
        )
        action = np.asarray(policy(builder(context)), float)
        if action_noise:
            action = action + rng.normal(0.0, action_noise, action.shape)
        action = np.clip(action, -CLIP, CLIP)
        base = reference.state.joint_pos[ahead] if rule.action_base == "reference" else profile.default_joint_pos
        target = base + rule.action_scale * action
        simulator.step(target, correction)
        last_action = action
        record.add(action, target, np.minimum(start_frame + k + 1, last))
    return record.finish()


class _Recorder:
    def __init__(self, simulator: Simulator, reference: ReferenceMotion, start_frame: NDArray[np.intp]) -> None:
        self._simulator = simulator
        self._reference = reference
        self._start_frame = start_frame
        self._states: list[RobotState] = []
        self._links: list[Array] = []
        self._distance: list[Array] = []
        self._alive: list[NDArray[np.bool_]] = []
        self._actions: list[Array] = []
        self._targets: list[Array] = []
        self._torques: list[Array] = []
        self._see(start_frame)

    def _see(self, frame: NDArray[np.intp]) -> None:
        state, links = self._simulator.state, self._simulator.link_states().pos
        distance = np.linalg.norm(links - self._reference.links.pos[frame], axis=-1).mean(axis=1)
        upright = (np.abs(projected_gravity(state.root_quat)[:, :2]) <= 0.8).all(axis=1)
        alive = (distance <= FAILURE_DISTANCE_M) & upright
        self._alive.append(alive & self._alive[-1] if self._alive else alive)
        self._states.append(state)
        self._links.append(links)
        self._distance.append(distance)

    def add(self, action: Array, target: Array, frame: NDArray[np.intp]) -> None:
        self._actions.append(action)
        self._targets.append(target)
        self._torques.append(self._simulator.joint_torque())
        self._see(frame)

    def finish(self) -> Playback:
        return Playback(
            states=self._states,
            link_pos=np.stack(self._links),
            action=np.stack(self._actions),
            joint_target=np.stack(self._targets),
            torque=np.stack(self._torques),
            start_frame=self._start_frame,
            alive=np.stack(self._alive),
            mean_distance=np.stack(self._distance),
        )
