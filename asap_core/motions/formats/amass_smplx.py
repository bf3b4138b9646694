"""Reader of AMASS SMPL-X (`*_stageii.npz`): `root_orient`, `pose_body`, `trans`, `betas`, `mocap_frame_rate`.

Also of the same numbers as one `poses` (T, 165), or (T, 66) without hands, jaw and eyes. `*_stagei.npz` holds a
subject's shape and no motion; it is refused with that reason.
"""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.smpl_npz import read_smpl_npz
from asap_core.motions.formats.smpl_sniff import sniff_smpl_npz


def read(path: Path) -> list[HumanClip]:
    """The one clip of the file.

    Raises:
        InputFileError: missing, truncated, a shape without motion, another layout, a NaN or no frame rate.
    """
    return [read_smpl_npz(path, "amass_smplx", (66, 165))]


def sniff(path: Path) -> Match | None:
    """By the names of the fields and the width of the poses."""
    return sniff_smpl_npz(path, (66, 165, 0))


FORMAT = Format("amass_smplx", "AMASS SMPL-X", "human", (".npz",), sniff, read)
