"""Faults that users reported, put into clean clips: what the doctor has to name, by the code of the problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from asap_core.motions.derived import centres_of_mass
from asap_core.motions.doctor.joint_orders import JointOrder, orders_of_width, swapped_sides
from asap_core.motions.formats.clip import HumanClip, RobotClip
from asap_core.robots import get_profile
from asap_core.rotations import Array, quat_mul, quat_to_rotvec, rotate, rotvec_to_quat

Z_TO_Y_UP = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
"""wxyz: (x, y, z) of a z-up world becomes (x, z, -y)."""
CAMERA_PITCH = np.radians(20.0)
_AnyClip = TypeVar("_AnyClip", RobotClip, HumanClip)
_SLIDE = 0.2
"""m/s."""


def robot_faults(clip: RobotClip) -> dict[str, tuple[str, Callable[[], RobotClip]]]:
    """Fault → (code that names it, how to make it), for a clean nameless clip in MJCF order of a G1 with a known rate.

    The clip's declared orders must be those it is in, as a format's definition gives them.
    """
    order = next(o for o in orders_of_width(clip.joint_pos.shape[1]) if o.name == clip.declared.joint_order)
    return {
        "order_swapped": ("joint_order", lambda: _isaac(clip, order)),
        "sides_swapped": ("sides_swapped", lambda: _columns(clip, order, swapped_sides(order.joints))),
        "quat_order": ("quaternion_order", lambda: replace(clip, root_quat=_other_quat(clip))),
        "degrees": ("angle_unit", lambda: replace(clip, joint_pos=np.degrees(clip.joint_pos))),
        "centimetres": ("length_unit", lambda: replace(clip, root_pos=clip.root_pos * 100)),
        "y_up": ("up_axis", lambda: _y_up(clip)),
        "slide": ("foot_slide", lambda: replace(clip, root_pos=clip.root_pos + _drift(clip.root_pos, clip.fps))),
        "float": ("floating", lambda: replace(clip, root_pos=clip.root_pos + np.array([0, 0, 0.3]))),
        "penetration": ("penetration", lambda: replace(clip, root_pos=clip.root_pos - np.array([0, 0, 0.2]))),
        "teleport": ("jump", lambda: replace(clip, root_pos=clip.root_pos + _step(clip.root_pos))),
        "repeated": ("repeated_frames", lambda: _repeated(clip)),
        "not_unit": ("not_unit", lambda: replace(clip, root_quat=clip.root_quat * 1.2)),
    }


def rate_faults(clip: _AnyClip) -> dict[str, _AnyClip]:
    """The clip labelled at twice and at half its rate, which a flight or stored velocities give away as `wrong_fps`."""
    assert clip.fps is not None
    return {"double_fps": replace(clip, fps=2 * clip.fps), "half_fps": replace(clip, fps=clip.fps / 2)}


def velocity_faults(clip: RobotClip, links: tuple[str, ...], robot: str) -> dict[str, tuple[str, RobotClip]]:
    """Stored velocities of the wrong point or frame, for a clip with the bodies `links` and wxyz quaternions."""
    assert clip.body_lin_vel is not None
    assert clip.body_ang_vel is not None
    assert clip.body_quat is not None
    profile = get_profile(robot)
    com = rotate(clip.body_quat, centres_of_mass(profile)[profile.link_indices(links)])
    at_com = clip.body_lin_vel + np.cross(clip.body_ang_vel, com)
    turned = rotate(clip.body_quat, clip.body_ang_vel)
    return {
        "com_velocity": ("velocity_point", replace(clip, body_lin_vel=at_com)),
        "twice_rotated": ("angular_velocity_frame", replace(clip, body_ang_vel=turned)),
    }


def human_faults(clip: HumanClip) -> dict[str, tuple[str, Callable[[], HumanClip]]]:
    """Fault → (code, how to make it), for a clean clip in a z-up world in metres."""
    root = clip.root_translation
    return {
        "y_up": ("up_axis", lambda: _turn_human(clip, Z_TO_Y_UP)),
        "camera_pitch": ("camera_frame", lambda: _turn_human(clip, _camera())),
        "degrees": ("angle_unit", lambda: replace(clip, joint_rotations=np.degrees(clip.joint_rotations))),
        "centimetres": ("length_unit", lambda: replace(clip, root_translation=root * 100)),
        "slide": ("foot_slide", lambda: replace(clip, root_translation=root + _drift(root, clip.fps))),
        "teleport": ("jump", lambda: replace(clip, root_translation=root + _step(root))),
    }


def _isaac(clip: RobotClip, order: JointOrder) -> RobotClip:
    isaac = next(o for o in orders_of_width(len(order.joints)) if o.name in (f"{order.name}_isaac", "isaac29"))
    return _columns(clip, order, isaac.joints)


def _columns(clip: RobotClip, order: JointOrder, joints: tuple[str, ...]) -> RobotClip:
    return replace(clip, joint_pos=clip.joint_pos[:, [order.joints.index(joint) for joint in joints]])


def _other_quat(clip: RobotClip) -> Array:
    return np.roll(clip.root_quat, -1 if clip.declared.quat_order == "wxyz" else 1, axis=1)


def _y_up(clip: RobotClip) -> RobotClip:
    shift = 1 if clip.declared.quat_order == "xyzw" else 0
    quat = quat_mul(Z_TO_Y_UP, np.roll(clip.root_quat, shift, axis=1))
    return replace(clip, root_pos=rotate(Z_TO_Y_UP, clip.root_pos), root_quat=np.roll(quat, -shift, axis=1))


def _drift(root: Array, fps: float | None) -> Array:
    """20 cm/s along x."""
    return np.outer(np.arange(len(root)) / (fps or 30.0), [_SLIDE, 0.0, 0.0])


def _step(root: Array) -> Array:
    """0.7 m along y from the middle on."""
    return np.outer(np.arange(len(root)) >= len(root) // 2, [0.0, 0.7, 0.0])


def _repeated(clip: RobotClip) -> RobotClip:
    """Every fourth frame repeats the one before."""
    frames = np.arange(len(clip.root_pos))
    frames[3::4] -= 1
    parts = {name: getattr(clip, name)[frames] for name in ("root_pos", "root_quat", "joint_pos")}
    return replace(clip, **parts)


def _camera() -> Array:
    """wxyz: from the z-up world into a camera (x right, y down) that looks along y, pitched by 20°."""
    return rotvec_to_quat(np.array([np.pi / 2 + CAMERA_PITCH, 0.0, 0.0]))


def _turn_human(clip: HumanClip, turn: Array) -> HumanClip:
    rotations = clip.joint_rotations.copy()
    rotations[:, 0] = quat_to_rotvec(quat_mul(turn, rotvec_to_quat(rotations[:, 0])))
    return replace(clip, joint_rotations=rotations, root_translation=rotate(turn, clip.root_translation))
