"""GMR's pkl: a plain pickle of one clip, root quaternion xyzw, joints in the order of the MJCF and unnamed (E3)."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from asap_core.files import atomic_file, sha256_file
from asap_core.motions.derived import joints_in_order
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.fields import one_number, require_mapping, take, texts
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import check_array
from asap_core.restricted_pickle import load_restricted, peek
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile

_FIELDS = "fps, root_pos, root_rot, dof_pos"
_NAMES = {"root_quat": "root_rot", "joint_pos": "dof_pos"}


def sniff(path: Path) -> Match | None:
    """Looks for the names of the fields."""
    data = peek(path)
    if not all(name in data for name in (b"root_pos", b"root_rot", b"dof_pos")) or b"rigid_body_pos" in data:
        return None
    return Match(0.95, "a pickle with root_pos, root_rot and dof_pos")


def read(path: Path) -> list[RobotClip]:
    """The one clip; the bodies that some versions store are seen from the root.

    Raises:
        InputFileError: missing, truncated, holding anything but numpy and containers, or another layout.
    """
    fields = require_mapping(path, "content", load_restricted(path), _FIELDS)
    joint_pos = take(path, fields, "dof_pos")
    width = joint_pos.shape[-1] if joint_pos.ndim else 0
    local = take(path, fields, "local_body_pos") if fields.get("local_body_pos") is not None else None
    names = texts(fields.get("link_body_list"))
    clip = RobotClip(
        path=path,
        name=path.stem,
        format=FORMAT.id,
        sha256=sha256_file(path),
        root_pos=take(path, fields, "root_pos"),
        root_quat=take(path, fields, "root_rot"),
        joint_pos=joint_pos,
        fps=one_number(path, "fps", fields["fps"]) if "fps" in fields else None,
        body_names=names if local is not None else None,
        local_body_pos=local,
        declared=Declared("xyzw", "unitree29" if width == 29 else None, None, "z", "m", "rad", frame="world"),
    )
    checked(clip, _NAMES)
    if local is not None:
        bodies = None if names is None else len(names)
        check_array(path, "local_body_pos", local, (len(clip.joint_pos), bodies, 3))
    return [clip]


def write(path: Path, motion: RobotMotion, profile: RobotProfile) -> None:
    """Write the clip with its bodies as seen from the root; equal motions give equal bytes."""
    joints = joints_in_order(motion, profile.joint_names)
    still = np.zeros((motion.num_frames, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (motion.num_frames, 1))
    bodies = len(profile.links)
    content = {
        "fps": motion.fps,
        "root_pos": motion.root_pos.astype(np.float32),
        "root_rot": motion.root_quat[:, [1, 2, 3, 0]].astype(np.float32),
        "dof_pos": joints.astype(np.float32),
        "local_body_pos": Kinematics(profile).forward(*still, joints).pos[:, :bodies].astype(np.float32),
        "link_body_list": list(profile.link_names[:bodies]),
    }
    with atomic_file(path) as partial:
        partial.write_bytes(pickle.dumps(content, protocol=4))


FORMAT = Format("gmr_pkl", "GMR pkl", "robot", (".pkl",), sniff, read, write)
