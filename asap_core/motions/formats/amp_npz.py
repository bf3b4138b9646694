"""Isaac Lab's humanoid_amp npz: joints and bodies by name, quaternions wxyz (E12)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.files import sha256_file
from asap_core.motions.derived import derive_motion, written_rate
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import NpzFields, one_number
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.npz import npz_shapes, write_npz
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import check_array
from asap_core.robots.profile import RobotProfile

_NAMES = {
    "joint_names": "dof_names",
    "joint_pos": "dof_positions",
    "joint_vel": "dof_velocities",
    "body_pos": "body_positions",
    "body_quat": "body_rotations",
    "body_lin_vel": "body_linear_velocities",
    "body_ang_vel": "body_angular_velocities",
    "root_pos": "body_positions",
    "root_quat": "body_rotations",
}
_DECLARED = Declared("wxyz", None, None, "z", "m", "rad", frame="world")


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields."""
    if not {"dof_names", "body_names", "dof_positions", "body_positions"} <= set(npz_shapes(path)):
        return None
    return Match(0.98, "an npz with dof_names, body_names, dof_positions and body_positions")


def read(path: Path) -> list[RobotClip]:
    """The one clip; its root is the body called pelvis, or the first.

    Raises:
        InputFileError: missing, truncated, another layout, arrays that do not fit each other, or a NaN.
    """
    with NpzFields(path) as fields:
        joints, bodies = fields.texts("dof_names"), fields.texts("body_names")
        if not joints or not bodies:
            raise InputFileError(path, "dof_names, body_names: missing or no texts, expected lists of names")
        body_pos, body_quat = fields["body_positions"], fields["body_rotations"]
        check_array(path, "body_positions", body_pos, (None, len(bodies), 3))
        check_array(path, "body_rotations", body_quat, (len(body_pos), len(bodies), 4))
        root = bodies.index("pelvis") if "pelvis" in bodies else 0
        clip = RobotClip(
            path=path,
            name=path.stem,
            format=FORMAT.id,
            sha256=sha256_file(path),
            root_pos=body_pos[:, root],
            root_quat=body_quat[:, root],
            joint_pos=fields["dof_positions"],
            fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
            joint_names=joints,
            joint_vel=fields.get("dof_velocities"),
            body_names=bodies,
            body_pos=body_pos,
            body_quat=body_quat,
            body_lin_vel=fields.get("body_linear_velocities"),
            body_ang_vel=fields.get("body_angular_velocities"),
            declared=_DECLARED,
        )
    return [checked(clip, _NAMES)]


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write all joints and links of the robot, tracked points included; velocities at link origins."""
    derived = derive_motion(motion, profile)
    links = derived.links
    arrays = {
        "dof_positions": derived.joint_pos,
        "dof_velocities": derived.joint_vel,
        "body_positions": links.pos,
        "body_rotations": links.quat,
        "body_linear_velocities": links.lin_vel,
        "body_angular_velocities": links.ang_vel,
    }
    names = {"dof_names": np.array(profile.joint_names), "body_names": np.array(profile.link_names)}
    rate = np.array(written_rate(motion.fps))
    write_npz(path, {"fps": rate} | names | {key: values.astype(np.float32) for key, values in arrays.items()})


FORMAT = Format("amp_npz", "Isaac Lab humanoid_amp npz", "robot", (".npz",), sniff, read, write)
