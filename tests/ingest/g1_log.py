"""A made log of a G1 that bends its knees and sways: the numbers of `unitree_hg` messages, truth known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asap_core.motions.doctor.joint_orders import G1_ORDERS
from asap_core.robots import get_profile
from asap_core.rollouts.ingest.streams import Log, Stream
from asap_core.rotations import quat_mul, rotate, rotate_inverse, rotvec_to_quat

SDK = G1_ORDERS["unitree29"].joints
GRAVITY = np.array([0.0, 0.0, 9.81])


def joint_motion(time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities (N, 29) of knee bends with flat feet, arms and waist moving."""
    rng = np.random.default_rng(3)
    profile = get_profile("g1_29dof")
    pos, vel = np.tile(profile.default_joint_pos, (len(time), 1)), np.zeros((len(time), 29))
    for joint, name in enumerate(SDK):
        rate, phase = rng.uniform(2.0, 6.0), rng.uniform(0, 6.28)
        size = 0.0 if "hip" in name or "knee" in name or "ankle" in name else 0.15
        pos[:, joint] += size * np.sin(rate * time + phase)
        vel[:, joint] += size * rate * np.cos(rate * time + phase)
    for side, rate in (("left", 3.1), ("right", 3.7)):
        bend, speed = 0.2 + 0.2 * np.sin(rate * time), 0.2 * rate * np.cos(rate * time)
        for part, share in (("hip_pitch", -1.0), ("knee", 2.0), ("ankle_pitch", -1.0)):
            pos[:, SDK.index(f"{side}_{part}_joint")] += share * bend
            vel[:, SDK.index(f"{side}_{part}_joint")] += share * speed
    return pos, vel


def base_motion(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position (N, 3), orientation (N, 4) wxyz and world velocity (N, 3): it walks on a curve and sways."""
    pos = np.stack([0.4 * time, 0.5 * np.sin(0.8 * time), 0.74 + 0.02 * np.sin(6.0 * time)], axis=1)
    vel = np.stack([np.full_like(time, 0.4), 0.4 * np.cos(0.8 * time), 0.12 * np.cos(6.0 * time)], axis=1)
    yaw, tilt = np.zeros((len(time), 3)), np.zeros((len(time), 3))
    yaw[:, 2] = 0.6 * np.sin(0.9 * time) + 0.3 * np.sin(2.3 * time + 1.0)
    tilt[:, 0], tilt[:, 1] = 0.08 * np.sin(2.7 * time), 0.06 + 0.05 * np.sin(4.1 * time + 0.5)
    return pos, quat_mul(rotvec_to_quat(yaw), rotvec_to_quat(tilt)), vel


def body_rates(time: np.ndarray) -> np.ndarray:
    """(N, 3) rad/s of `base_motion` by central differences."""
    h = 1e-4
    first, second = base_motion(time - h)[1], base_motion(time + h)[1]
    conj = np.concatenate([first[:, :1], -first[:, 1:]], axis=1)
    return quat_mul(conj, second)[:, 1:] / h


def make_log(seconds: float = 8.0, **changes: dict[str, Any]) -> Log:
    """States and IMU at 500 Hz, commands at 50 Hz, mocap at 120 Hz, odometry at 50 Hz.

    `changes` replace attributes of a stream by its name: `state`, `imu`, `command`, `mocap`, `odometry`.
    """
    rng = np.random.default_rng(0)
    time, ticks = np.arange(0.0, seconds, 2e-3), np.arange(0.0, seconds, 0.02)
    frames, slow = np.arange(0.0, seconds, 1 / 120), np.arange(0.0, seconds, 0.02)
    profile = get_profile("g1_29dof")
    pos, vel = joint_motion(time)
    target = joint_motion(ticks + 0.03)[0] + rng.normal(0.0, 0.01, (len(ticks), 29))
    held = target[np.searchsorted(ticks, time + 1e-9, side="right") - 1]
    torque = profile.kp * (held - pos) - profile.kd * vel
    torque = np.clip(torque, -profile.joint_torque_limit, profile.joint_torque_limit)
    _, quat, base_vel = base_motion(time)
    acc = np.gradient(base_vel, 2e-3, axis=0)
    rates = body_rates(time)
    mocap_pos, mocap_quat, _ = base_motion(frames)
    odo_pos, odo_quat, odo_vel = base_motion(slow)
    w, x, y, z = quat.T
    rpy = np.stack(
        [
            np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
            np.arcsin(2 * (w * y - z * x)),
            np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        ],
        axis=1,
    )
    parts: dict[str, dict[str, Any]] = {
        "state": {
            "kind": "joint_state",
            "values": {
                "joint_pos": pos + rng.normal(0.0, 1e-4, pos.shape),
                "joint_vel": vel + rng.normal(0.0, 5e-3, pos.shape),
                "joint_torque": torque,
            },
            "receive_time": time + 1.7e9,
            "sequence": (np.arange(len(time)) * 2).astype(np.int64),
            "declared": {"joint_order": "unitree29", "angle_unit": "rad"},
        },
        "imu": {
            "kind": "imu",
            "values": {
                "quat": quat,
                "ang_vel": rates + rng.normal(0.0, 5e-3, rates.shape),
                "lin_acc": rotate_inverse(quat, acc + GRAVITY) + rng.normal(0.0, 0.05, rates.shape),
                "rpy": rpy,
            },
            "receive_time": time + 1.7e9,
            "sequence": (np.arange(len(time)) * 2).astype(np.int64),
            "declared": {"quat_order": "wxyz", "angle_unit": "rad"},
        },
        "command": {
            "kind": "joint_command",
            "values": {
                "joint_target": target,
                "kp": np.tile(profile.kp, (len(ticks), 1)),
                "kd": np.tile(profile.kd, (len(ticks), 1)),
            },
            "receive_time": ticks + 1.7e9,
            "declared": {"joint_order": "unitree29", "angle_unit": "rad"},
        },
        "mocap": {
            "kind": "pose",
            "values": {"pos": mocap_pos, "quat": np.roll(mocap_quat, -1, axis=1)},
            "source_time": frames + 1.7e9 + 0.3,
            "declared": {"quat_order": "xyzw", "length_unit": "m"},
        },
        "odometry": {
            "kind": "odometry",
            "values": {
                "pos": odo_pos,
                "quat": np.roll(odo_quat, -1, axis=1),
                "lin_vel": rotate_inverse(odo_quat, odo_vel),
                "ang_vel": body_rates(slow),
            },
            "source_time": slow + 1.7e9,
            "declared": {"quat_order": "xyzw", "length_unit": "m", "twist_frame": "body"},
        },
    }
    for name, change in changes.items():
        change = dict(change)
        values = parts[name]["values"] | change.pop("values", {})
        parts[name] |= change | {"values": {k: v for k, v in values.items() if v is not None}}
    return Log(Path("made.mcap"), "mcap", "0" * 64, tuple(Stream(name=n, **part) for n, part in parts.items()))


def odometry_world_velocity(seconds: float = 8.0) -> np.ndarray:
    """(N, 3) m/s world, the truth of the odometry stream."""
    slow = np.arange(0.0, seconds, 0.02)
    _, quat, vel = base_motion(slow)
    return rotate(quat, rotate_inverse(quat, vel))
