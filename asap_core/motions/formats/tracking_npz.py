"""What BeyondMimic, mjlab and unitree_rl_lab share: one npz layout, `joint_pos`, `body_pos_w` and their derivatives.

Nothing in a file says which of the three wrote it, and they differ in the order of joints and bodies, in the quaternion
order (Isaac Lab 2 and 3) and in the point whose velocity is stored. All of that is left open for the doctor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from asap_core.files import sha256_file
from asap_core.motions.derived import derive_motion, written_rate
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import NpzFields, one_number
from asap_core.motions.formats.format import Match
from asap_core.motions.formats.npz import npz_shapes, write_npz
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import check_array
from asap_core.robots.profile import RobotProfile

_WANTED = {"joint_pos", "body_pos_w", "body_quat_w"}
NAMES = {f"body_{name}": f"body_{name}_w" for name in ("pos", "quat", "lin_vel", "ang_vel")} | {
    "root_pos": "body_pos_w",
    "root_quat": "body_quat_w",
}
"""What the files call the attributes of a clip."""


def sniff_tracking(path: Path, confidence: float) -> Match | None:
    """Looks at names and shapes; a `joint_pos` wider than `joint_vel` is holosoma's whole state, not angles."""
    shapes = npz_shapes(path)
    if not set(shapes) >= _WANTED:
        return None
    widths = [shapes[name][-1] for name in ("joint_pos", "joint_vel") if shapes.get(name)]
    if len(set(widths)) > 1:
        return None
    return Match(confidence, "an npz with joint_pos and body_pos_w, as BeyondMimic, mjlab and unitree_rl_lab write it")


def read_tracking(path: Path, format_name: str) -> list[RobotClip]:
    """The one clip; its root is the first body.

    Raises:
        InputFileError: missing, truncated, another layout, arrays that do not fit each other, or a NaN.
    """
    with NpzFields(path) as fields:
        body_pos, body_quat = fields["body_pos_w"], fields["body_quat_w"]
        check_array(path, "body_pos_w", body_pos, (None, None, 3))
        check_array(path, "body_quat_w", body_quat, (len(body_pos), body_pos.shape[1], 4))
        check_array(path, "body_pos_w of the root", body_pos[:, :1], (len(body_pos), 1, 3))
        clip = RobotClip(
            path=path,
            name=path.stem,
            format=format_name,
            sha256=sha256_file(path),
            root_pos=body_pos[:, 0],
            root_quat=body_quat[:, 0],
            joint_pos=fields["joint_pos"],
            fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
            joint_names=fields.texts("joint_names"),
            joint_vel=fields.get("joint_vel"),
            body_names=fields.texts("body_names"),
            body_pos=body_pos,
            body_quat=body_quat,
            body_lin_vel=fields.get("body_lin_vel_w"),
            body_ang_vel=fields.get("body_ang_vel_w"),
            declared=Declared(up_axis="z", length_unit="m", angle_unit="rad", frame="world"),
        )
    return [checked(clip, NAMES)]


def write_tracking(
    path: Path,
    motion: RobotMotion,
    profile: RobotProfile,
    joints: Sequence[str],
    bodies: Sequence[str],
    at_com: bool,
) -> None:
    """Write joints and bodies in the orders given, quaternions wxyz, linear velocities at link origins or `at_com`."""
    derived = derive_motion(motion, profile)
    columns = [profile.joint_index(name) for name in joints]
    rows = profile.link_indices(bodies)
    links = derived.links
    arrays = {
        "joint_pos": derived.joint_pos[:, columns],
        "joint_vel": derived.joint_vel[:, columns],
        "body_pos_w": links.pos[:, rows],
        "body_quat_w": links.quat[:, rows],
        "body_lin_vel_w": (derived.com_lin_vel if at_com else links.lin_vel)[:, rows],
        "body_ang_vel_w": links.ang_vel[:, rows],
    }
    rate = np.array([written_rate(motion.fps)])
    write_npz(path, {"fps": rate} | {key: values.astype(np.float32) for key, values in arrays.items()})
