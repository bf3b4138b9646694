"""One check for all robot clips: shapes that agree, finite numbers, names that fit."""

from __future__ import annotations

from collections.abc import Mapping

from asap_core.errors import InputFileError
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.tables import check_array, check_fps
from asap_core.rotations import Array


def checked(clip: RobotClip, fields: Mapping[str, str] | None = None, where: str = "") -> RobotClip:
    """`clip` itself, once all its arrays fit each other.

    Args:
        clip: as a reader made it.
        fields: what the file calls an attribute of the clip where the name differs.
        where: put before a field's name, for files of several clips.

    Raises:
        InputFileError: another shape, a NaN, an impossible rate, fewer than two frames, or other names than columns.
    """

    def check(attribute: str, values: Array | None, *shape: int | None) -> None:
        if values is not None:
            check_array(clip.path, where + (fields or {}).get(attribute, attribute), values, shape)

    frames = len(clip.joint_pos) if clip.joint_pos.ndim else 0
    check("joint_pos", clip.joint_pos, None, None)
    joints = clip.joint_pos.shape[1]
    check("root_pos", clip.root_pos, frames, 3)
    check("root_quat", clip.root_quat, frames, 4)
    check("joint_vel", clip.joint_vel, frames, joints)
    check("action", clip.action, frames, joints)
    check("contact_mask", clip.contact_mask, frames, 2)
    bodies = clip.body_pos.shape[1] if clip.body_pos is not None and clip.body_pos.ndim == 3 else None
    for attribute, width in (("body_pos", 3), ("body_quat", 4), ("body_lin_vel", 3), ("body_ang_vel", 3)):
        check(attribute, getattr(clip, attribute), frames, bodies, width)
    for attribute, names, count in (("joint_names", clip.joint_names, joints), ("body_names", clip.body_names, bodies)):
        if names is not None and count is not None:
            _check_names(clip, where + (fields or {}).get(attribute, attribute), names, count)
    if frames < 2 or not joints:
        raise InputFileError(clip.path, f"{where}frames: found {frames} of {joints} joints, expected at least 2 of 1")
    if clip.fps is not None:
        check_fps(clip.path, where + (fields or {}).get("fps", "fps"), clip.fps)
    return clip


def _check_names(clip: RobotClip, field: str, names: tuple[str, ...], count: int) -> None:
    if len(names) != count:
        raise InputFileError(clip.path, f"{field}: found {len(names)} names, expected {count} as there are columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputFileError(clip.path, f"{field}: found {', '.join(twice)} more than once, expected one column each")
