"""A twin's log says what the twin did: read back as MCAP, sample for sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.motions.doctor.joint_orders import G1_ORDERS
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.twin_log import RecordingSimulator, SensorSettings, TwinRecord, write_twin_log
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec
from asap_core.simulators.mujoco import MujocoSimulator
from asap_core.simulators.protocol import RobotState

PROFILE = get_profile("g1_23dof")
SILENT = SensorSettings(
    encoder_noise=0.0, velocity_noise=0.0, torque_noise=0.0, gyro_noise=0.0, accel_noise=0.0, mocap_pos_noise=0.0,
    mocap_rot_noise=0.0, arrival_delay_s=0.0, mocap_offset_s=0.25, mocap_drift=1e-5,
)  # fmt: skip


def _start() -> RobotState:
    still = np.zeros((1, 3))
    pose = np.asarray(PROFILE.default_joint_pos)[None]
    return RobotState(np.array([[0.0, 0.0, 0.784]]), np.array([[1.0, 0, 0, 0]]), still, still, pose.copy(), 0 * pose)


def _run(simulator: RecordingSimulator | MujocoSimulator, steps: int) -> list[np.ndarray]:
    simulator.set_state(np.array([0]), _start())
    rng = np.random.default_rng(3)
    states = []
    for _ in range(steps):
        simulator.step(_start().joint_pos + rng.normal(0, 0.05, (1, PROFILE.num_joints)))
        states.append(simulator.state.joint_pos[0])
    return states


def test_recording_does_not_change_what_is_simulated() -> None:
    physics = PhysicsSettings(physics_dt=0.002)
    recording = RecordingSimulator(PROFILE, physics)
    # Not to the bit: within one long step the contact solver starts warm.
    np.testing.assert_allclose(_run(recording, 20), _run(MujocoSimulator(PROFILE, physics, 1), 20), atol=1e-9)
    record = TwinRecord.of(recording, PROFILE)
    assert len(record.time) == 201
    np.testing.assert_allclose(record.state.joint_pos[10], _run(recording, 1)[0], atol=1e-12)


def test_delay_is_between_command_and_effect() -> None:
    plain = RecordingSimulator(PROFILE, PhysicsSettings(physics_dt=0.002))
    late = RecordingSimulator(PROFILE, PhysicsSettings(physics_dt=0.002), delay_s=0.006)
    for simulator in (plain, late):
        simulator.set_state(np.array([0]), _start())
        simulator.step(_start().joint_pos + 0.2)
    moved = [np.abs(simulator.recorded()[0].joint_vel).max(axis=1) > 0.5 for simulator in (plain, late)]
    assert int(np.argmax(moved[1])) - int(np.argmax(moved[0])) == 3


def test_log_holds_the_states_commands_and_mocap(tmp_path: Path) -> None:
    recording = RecordingSimulator(PROFILE, PhysicsSettings(physics_dt=0.002))
    _run(recording, 25)
    record = TwinRecord.of(recording, PROFILE)
    write_twin_log(tmp_path / "twin.mcap", record, 0, SILENT)
    log = read_log(tmp_path / "twin.mcap")
    columns = [G1_ORDERS["unitree29"].joints.index(name) for name in PROFILE.joint_names]
    state, command = log.of_kind("joint_state")[0], log.of_kind("joint_command")[0]
    imu, pose = log.of_kind("imu")[0], log.of_kind("pose")[0]
    np.testing.assert_allclose(state.values["joint_pos"][:, columns], record.state.joint_pos, atol=1e-6)
    np.testing.assert_allclose(command.values["joint_target"][:, columns], record.joint_target, atol=1e-6)
    turned = quat_mul(quat_conj(record.state.root_quat[:-2]), record.state.root_quat[2:])
    np.testing.assert_allclose(imu.values["ang_vel"][1:-1], quat_to_rotvec(turned) / 0.004, atol=2e-3)
    assert pose.source_time is not None
    np.testing.assert_allclose(pose.source_time[:3], 0.25 + np.arange(3) / 120 * (1 + 1e-5), atol=1e-6)
    np.testing.assert_allclose(pose.values["pos"][0], record.state.root_pos[0], atol=1e-9)


def test_accelerometer_shows_gravity_when_the_robot_stands(tmp_path: Path) -> None:
    stiff = PhysicsSettings(physics_dt=0.002, strength={"ankle": 20.0, "hip": 3.0, "knee": 3.0})
    recording = RecordingSimulator(PROFILE, stiff)
    recording.set_state(np.array([0]), _start())
    for _ in range(100):
        recording.step(_start().joint_pos)
    write_twin_log(tmp_path / "twin.mcap", TwinRecord.of(recording, PROFILE), 0, SILENT)
    force = read_log(tmp_path / "twin.mcap").of_kind("imu")[0].values["lin_acc"][-100:]
    np.testing.assert_allclose(np.linalg.norm(force, axis=1).mean(), 9.81, rtol=0.01)
