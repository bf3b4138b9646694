"""Any of the AMASS npz layouts (SMPL, SMPL+H, SMPL-X) straight into a record, and the writer of the SMPL one.

World z-up, metres, axis-angle. `trans` moves the pelvis; the constant offset of the shape's pelvis from its origin is
horizontal but for 3 cm and is left to ground alignment. The readers of the single layouts, which decide by evidence,
are `amass_smplh`, `amass_smplx` and `asap_smpl`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.formats.npz import write_npz
from asap_core.motions.formats.smpl_npz import MODEL_OF_WIDTH, read_smpl_npz
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import body_offsets
from asap_core.motions.smpl_shape import body_for
from asap_core.motions.tables import Source
from asap_core.rotations import Array

TOOL = "asap reader amass 1"


def read_amass(
    path: Path | str, name: str | None = None, source_path: str | None = None, body_models: Path | None = None
) -> HumanMotion:
    """Read a clip; only the fields that are needed are opened, and never with pickle.

    Args:
        path: npz with `poses` (or `root_orient`, `pose_body`), `trans`, `mocap_framerate` (or `mocap_frame_rate`).
        name: name of the motion; the file's stem if absent.
        source_path: what the record's source shall name; `path` if absent.
        body_models: folder of licensed model files; one that fits gives the person's own bones and pelvis.

    Raises:
        InputFileError: missing, truncated, another layout, a wrong width, a NaN or no frame rate.
    """
    path = Path(path)
    clip = read_smpl_npz(path, "amass", tuple(MODEL_OF_WIDTH))
    source = Source(source_path or path.as_posix(), clip.sha256, TOOL)
    assert clip.fps is not None  # the reader refuses a file without
    body = body_for(clip, body_models)
    root, skeleton = clip.root_translation, body_offsets()
    if body is not None:
        root, skeleton = root + body.rest_joints(clip.betas)[0], body.offsets(clip.betas)
    try:
        return HumanMotion(name or clip.name, clip.fps, clip.joint_rotations, root, skeleton, source)
    except InputFileError as error:
        raise InputFileError(path, error.reason) from None


def write_amass(path: Path | str, poses: Array, trans: Array, fps: float) -> None:
    """Write poses (T, 72) and trans (T, 3) in the AMASS layout, atomically; equal arrays give equal bytes."""
    arrays = {
        "poses": poses.astype(np.float32),
        "trans": trans.astype(np.float32),
        "mocap_framerate": np.array(float(fps)),
    }
    write_npz(Path(path), arrays)
