"""Reader of AMASS SMPL+H (`*_poses.npz`): `poses` (T, 156), `trans`, `betas` (16,), `gender`, `mocap_framerate`.

Columns 66 and up are the fingers, which the 24 SMPL joints have no place for.
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
        InputFileError: missing, truncated, another layout, a NaN or no frame rate.
    """
    return [read_smpl_npz(path, "amass_smplh", (156,))]


def sniff(path: Path) -> Match | None:
    """By the names of the fields and the width of the poses."""
    return sniff_smpl_npz(path, (156,))


FORMAT = Format("amass_smplh", "AMASS SMPL+H", "human", (".npz",), sniff, read)
