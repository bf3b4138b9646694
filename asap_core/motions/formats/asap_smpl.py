"""Reader of the raw SMPL clips that ASAP publishes.

`poses` (T, 72), `trans` (T, 3), `betas` (16,), `gender`, `mocap_framerate`.
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
    return [read_smpl_npz(path, "asap_smpl", (72,))]


def sniff(path: Path) -> Match | None:
    """By the names of the fields and the width of the poses."""
    return sniff_smpl_npz(path, (72,))


FORMAT = Format("asap_smpl", "ASAP raw SMPL npz", "human", (".npz",), sniff, read)
