"""unitree_rl_lab's npz: BeyondMimic's layout for 23, 27 or 29 joints in the Isaac order of the chosen model (E6)."""

from __future__ import annotations

from pathlib import Path

from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.formats.tracking_npz import read_tracking, sniff_tracking


def sniff(path: Path) -> Match | None:
    """Looks at names and shapes; BeyondMimic and mjlab look the same."""
    return sniff_tracking(path, 0.55)


def read(path: Path) -> list[RobotClip]:
    """The one clip.

    Raises:
        InputFileError: as `read_tracking`.
    """
    return read_tracking(path, FORMAT.id)


FORMAT = Format("unitree_rl_lab_npz", "unitree_rl_lab npz", "robot", (".npz",), sniff, read)
