"""Batched quaternion algebra. Quaternions are wxyz, unit, leading axes free; vectors are metres or rad/s."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def quat_mul(a: Array, b: Array) -> Array:
    """Hamilton product (..., 4): rotate by `b`, then by `a`."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quat_conj(q: Array) -> Array:
    """Inverse rotation (..., 4)."""
    return np.concatenate([q[..., :1], -q[..., 1:]], axis=-1)


def cross(u: Array, v: Array) -> Array:
    """Cross product (..., 3); `numpy.cross` takes several times as long on a few rows."""
    return np.stack(
        [
            u[..., 1] * v[..., 2] - u[..., 2] * v[..., 1],
            u[..., 2] * v[..., 0] - u[..., 0] * v[..., 2],
            u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0],
        ],
        axis=-1,
    )


def rotate(q: Array, v: Array) -> Array:
    """Vector `v` (..., 3) from the frame of `q` (..., 4) into the world."""
    u = q[..., 1:]
    t = 2.0 * cross(u, v)
    return v + q[..., :1] * t + cross(u, t)


def rotate_inverse(q: Array, v: Array) -> Array:
    """Vector `v` (..., 3) from the world into the frame of `q` (..., 4)."""
    u = q[..., 1:]
    t = 2.0 * cross(u, v)
    return v - q[..., :1] * t + cross(u, t)


def quat_to_rotvec(q: Array) -> Array:
    """Axis times angle (..., 3) in rad, the short way round."""
    q = np.where(q[..., :1] < 0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[..., :1])
    return q[..., 1:] * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 2.0)


def rotvec_to_quat(v: Array) -> Array:
    """Unit quaternion (..., 4) of axis times angle (..., 3) in rad."""
    angle = np.linalg.norm(v, axis=-1, keepdims=True)
    half = 0.5 * angle
    scale = np.where(angle > 1e-9, np.sin(half) / np.maximum(angle, 1e-12), 0.5)
    return np.concatenate([np.cos(half), v * scale], axis=-1)


def quat_to_matrix(q: Array) -> Array:
    """Rotation matrix (..., 3, 3)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(r, axis=-1) for r in rows], axis=-2)


def yaw(q: Array) -> Array:
    """Heading (...,) in rad of the x axis of `q`."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def yaw_quat(q: Array) -> Array:
    """The heading part of `q` as a quaternion (..., 4)."""
    half = 0.5 * yaw(q)
    zero = np.zeros_like(half)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], axis=-1)


def projected_gravity(q: Array) -> Array:
    """World down (0, 0, -1) in the frame of `q`, (..., 3)."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return np.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], axis=-1)


def slerp(q: Array, times: Array, at: Array) -> Array:
    """Orientations `q` (T, 4) at increasing `times` (T,), interpolated at `at` (M,), clamped to the ends."""
    at = np.clip(at, times[0], times[-1])
    i = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    blend = ((at - times[i]) / (times[i + 1] - times[i]))[:, None]
    step = quat_to_rotvec(quat_mul(quat_conj(q[i]), q[i + 1]))
    out = quat_mul(q[i], rotvec_to_quat(step * blend))
    return out / np.linalg.norm(out, axis=-1, keepdims=True)
