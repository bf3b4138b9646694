"""A twin recorded the way a robot is: 500 Hz states, commands on policy ticks, mocap on a clock of its own.

What the log was made from is returned beside it, so that ingest can be held against the truth. A twin is a simulator;
nothing here is a robot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.files import atomic_file
from asap_core.motions.doctor.joint_orders import G1_ORDERS
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.ingest.lowstate_log import write_g1_log
from asap_core.rotations import quat_mul, rotate, rotate_inverse, rotvec_to_quat, slerp
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import Ids, RobotState, TargetCorrection

Array = NDArray[np.floating]
GRAVITY = 9.81
STATE_HZ = 500
TWIN = {"kind": "twin", "label": "twin, not a robot"}
START_UNIX = 1.7e9
"""Stamp of the first row in an npz."""


@dataclass(frozen=True)
class SensorSettings:
    """What lies between the twin and its log."""

    encoder_noise: float = 1e-4
    """rad."""
    velocity_noise: float = 5e-3
    """rad/s."""
    torque_noise: float = 0.05
    """N m."""
    gyro_noise: float = 5e-3
    """rad/s."""
    accel_noise: float = 0.05
    """m/s²."""
    mocap_hz: float = 120.0
    mocap_pos_noise: float = 3e-4
    """m."""
    mocap_rot_noise: float = float(np.radians(0.11))
    mocap_offset_s: float = 0.4
    """mocap time = robot time + offset + drift · robot time."""
    mocap_drift: float = 0.0
    mount_rotvec: tuple[float, float, float] = (0.05, -0.1, 0.4)
    """rad, from the mocap body's frame to the pelvis."""
    mocap_lever: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m, the mocap body's origin from the pelvis, in its frame."""
    arrival_delay_s: float = 5e-4
    """Mean of the exponential delay of every packet."""


class RecordingSimulator(MujocoSimulator):
    """One robot whose states between the control steps are kept as well."""

    def __init__(self, profile: RobotProfile, physics: PhysicsSettings, delay_s: float = 0.0) -> None:
        """`delay_s`, a multiple of 2 ms, lies between a command and its effect, besides what `physics` says."""
        fine = 1.0 / STATE_HZ
        delay = physics.action_delay * physics.control_dt + delay_s
        values = physics.model_dump() | {"physics_dt": fine, "control_dt": fine, "action_delay": round(delay / fine)}
        super().__init__(profile, PhysicsSettings.model_validate(values), 1)
        self.control_dt = physics.control_dt
        self._repeats = round(physics.control_dt / fine)
        self._rows: list[tuple[Array, Array, Array]] = []
        self.targets: list[Array] = []

    def set_state(self, ids: Ids, state: RobotState, past_target: Array | None = None) -> None:
        """See `Simulator.set_state`; what was recorded is forgotten."""
        super().set_state(ids, state, past_target)
        self._rows, self.targets = [], []
        self._keep()

    def step(self, joint_target: Array, correction: TargetCorrection | None = None) -> None:
        """See `Simulator.step`."""
        self.targets.append(np.array(joint_target))
        for _ in range(self._repeats):
            super().step(joint_target, correction)
            self._keep()

    def _keep(self) -> None:
        stepper = self._stepper
        self._rows.append((stepper.qpos[0].copy(), stepper.qvel[0].copy(), stepper.ctrl[0].copy()))

    def recorded(self) -> tuple[RobotState, Array]:
        """The N states since `set_state`, 2 ms apart, and the torque (N, J) N m that the drives ask for in them."""
        qpos, qvel, ctrl = (np.stack(column) for column in zip(*self._rows, strict=True))
        quat = qpos[:, 3:7]
        state = RobotState(qpos[:, :3], quat, qvel[:, :3], rotate(quat, qvel[:, 3:6]), qpos[:, 7:], qvel[:, 6:])
        torque = self._kp * (ctrl - state.joint_pos) - self._kd * state.joint_vel
        return state, np.clip(torque, -self._torque_limit, self._torque_limit)


@dataclass(frozen=True)
class TwinRecord:
    """The truth of a run: N states 2 ms apart from time 0 on, M commands a control step apart."""

    joint_names: tuple[str, ...]
    time: Array
    """(N,) s."""
    state: RobotState
    """N rows."""
    torque: Array
    """(N, J) N m that the drives ask for after the step that led to each state."""
    command_time: Array
    """(M,) s."""
    joint_target: Array
    """(M, J) rad."""
    kp: Array
    kd: Array
    """(J,) gains that are commanded: the nominal ones."""

    @classmethod
    def of(cls, simulator: RecordingSimulator, profile: RobotProfile) -> TwinRecord:
        """What a simulator has recorded since its last `set_state`."""
        state, torque = simulator.recorded()
        return cls(
            joint_names=profile.joint_names,
            time=np.arange(len(torque)) / STATE_HZ,
            state=state,
            torque=torque,
            command_time=np.arange(len(simulator.targets)) * simulator.control_dt,
            joint_target=np.concatenate(simulator.targets),
            kp=np.asarray(profile.kp),
            kd=np.asarray(profile.kd),
        )


def first_seconds(record: TwinRecord, seconds: float) -> TwinRecord:
    """The beginning of a record."""
    states, commands = round(seconds * STATE_HZ) + 1, int(np.searchsorted(record.command_time, seconds - 1e-9))
    return replace(
        record,
        time=record.time[:states],
        state=record.state.take(np.arange(states)),
        torque=record.torque[:states],
        command_time=record.command_time[:commands],
        joint_target=record.joint_target[:commands],
    )


def write_twin_log(path: Path | str, record: TwinRecord, seed: int, sensors: SensorSettings | None = None) -> None:
    """Write a record as the MCAP of a G1 with mocap: `/lowstate`, `/lowcmd` in SDK order, the pelvis as a pose.

    Args:
        path: the `.mcap`.
        record: the run.
        seed: of the noise.
        sensors: noise, clocks and mounting.
    """
    s = sensors or SensorSettings()
    rng = np.random.default_rng(seed)
    state = record.state
    acc = np.gradient(_centred(state.root_lin_vel), record.time, axis=0) + np.array([0.0, 0.0, GRAVITY])
    rates = rotate_inverse(state.root_quat, _centred(state.root_ang_vel))
    mocap = _mocap(record, s, rng)

    def noisy(values: Array, size: float) -> Array:
        return values + rng.normal(0.0, size, values.shape)

    def arrived(time: Array) -> Array:
        return np.maximum.accumulate(time + rng.exponential(s.arrival_delay_s, len(time)))

    write_g1_log(
        path,
        time=arrived(record.time),
        joint_pos=_sdk(noisy(state.joint_pos, s.encoder_noise), record.joint_names),
        joint_vel=_sdk(noisy(state.joint_vel, s.velocity_noise), record.joint_names),
        joint_torque=_sdk(noisy(record.torque, s.torque_noise), record.joint_names),
        imu_quat=state.root_quat,
        ang_vel=noisy(rates, s.gyro_noise),
        lin_acc=noisy(rotate_inverse(state.root_quat, acc), s.accel_noise),
        command_time=arrived(record.command_time),
        joint_target=_sdk(record.joint_target, record.joint_names),
        kp=_sdk(record.kp, record.joint_names),
        kd=_sdk(record.kd, record.joint_names),
        tick=np.round(record.time * 1000).astype(np.int64),
        mocap_time=mocap[0],
        mocap_pos=mocap[1],
        mocap_quat=mocap[2],
        mocap_receive_time=arrived(mocap[0]),
        source=TWIN,
    )


def write_twin_npz(path: Path | str, record: TwinRecord, seed: int, sensors: SensorSettings | None = None) -> None:
    """Write a record as the `motion_k.npz` of ASAP's listener: one row a command, the state just before it, odometry.

    The mocap body is the pelvis: rows have one clock, and neither its offset nor its mount applies.
    """
    s = sensors or SensorSettings()
    rng = np.random.default_rng(seed)
    every = len(record.time) // len(record.command_time)
    state, count = record.state, len(record.command_time)
    acc = np.gradient(_centred(state.root_lin_vel), record.time, axis=0) + np.array([0.0, 0.0, GRAVITY])
    rates = rotate_inverse(state.root_quat, _centred(state.root_ang_vel))

    def rows(values: Array, noise: float) -> Array:
        kept = values[::every][:count]
        return kept + rng.normal(0.0, noise, kept.shape)

    def joints(values: Array, noise: float = 0.0) -> Array:
        return _sdk(rows(values, noise), record.joint_names)

    wobble = rotvec_to_quat(rng.normal(0.0, s.mocap_rot_noise, (count, 3)))
    quat = rows(state.root_quat, 0.0)
    still = np.zeros((count, len(G1_ORDERS["unitree29"].joints)))
    arrays = {
        "is_twin": np.ones(1),
        "time": START_UNIX + record.command_time,
        "joint_pos": joints(state.joint_pos, s.encoder_noise),
        "joint_vel": joints(state.joint_vel, s.velocity_noise),
        "tau_est": joints(record.torque, s.torque_noise),
        "joint_pos_cmd": _sdk(record.joint_target, record.joint_names),
        "joint_vel_cmd": still,
        "tau_cmd": still,
        "kp": still + _sdk(record.kp, record.joint_names),
        "kd": still + _sdk(record.kd, record.joint_names),
        "IMU_quaternion": quat,
        "IMU_gyro": rows(rates, s.gyro_noise),
        "IMU_acc": rows(acc, s.accel_noise),
        "pos": rows(state.root_pos, s.mocap_pos_noise),
        "quat": quat_mul(quat, wobble),
        "lin_vel": rows(state.root_lin_vel, 1e-3),
        "ang_vel": rows(state.root_ang_vel, s.gyro_noise),
    }
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _centred(values: Array) -> Array:
    """Velocities (N, 3) at the states' own times: the integrator's are those of the 2 ms before, half a step late."""
    return np.concatenate([(values[1:] + values[:-1]) / 2, values[-1:]])


def _sdk(values: Array, names: tuple[str, ...]) -> Array:
    """(…, 29) in the order of the SDK; zeros for joints that the record does not have."""
    order = G1_ORDERS["unitree29"].joints
    out = np.zeros((*values.shape[:-1], len(order)))
    out[..., [order.index(name) for name in names]] = values
    return out


def _mocap(record: TwinRecord, s: SensorSettings, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Stamps on the mocap's clock, positions (K, 3) and orientations (K, 4) of its body."""
    taken = np.arange(0.0, record.time[-1], 1.0 / s.mocap_hz)
    quat = slerp(record.state.root_quat, record.time, taken)
    pelvis = np.stack([np.interp(taken, record.time, column) for column in record.state.root_pos.T], axis=1)
    stamps = taken + s.mocap_offset_s + s.mocap_drift * taken
    mount = rotvec_to_quat(np.asarray(s.mount_rotvec, float))
    place = pelvis + rotate(quat, np.asarray(s.mocap_lever, float))
    turned = quat_mul(quat, mount)
    wobble = rotvec_to_quat(rng.normal(0.0, s.mocap_rot_noise, place.shape))
    return stamps, place + rng.normal(0.0, s.mocap_pos_noise, place.shape), quat_mul(turned, wobble)
