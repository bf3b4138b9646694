"""The table of all motion formats, and what is asked of it.

To add a format: a module with a `FORMAT` and its name in `_ROBOT` or `_HUMAN`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asap_core.errors import InputFileError, unknown_name
from asap_core.files import is_folder
from asap_core.motions.formats import (
    amass_smplh,
    amass_smplx,
    amp_npz,
    asap_pkl,
    asap_smpl,
    beyondmimic_npz,
    bvh,
    gmr_pkl,
    gvhmr,
    holomotion_h5,
    holomotion_npz,
    holosoma_npz,
    human_parquet,
    kimodo_csv,
    lafan_csv,
    mimickit_pkl,
    mjlab_npz,
    protomotions_motion,
    robot_parquet,
    seed_csv,
    sonic_folder,
    tram,
    unitree_rl_lab_npz,
    wham,
)
from asap_core.motions.formats.clip import Clip
from asap_core.motions.formats.format import Candidate, Format

_ROBOT = (
    asap_pkl,
    gmr_pkl,
    lafan_csv,
    kimodo_csv,
    seed_csv,
    beyondmimic_npz,
    mjlab_npz,
    unitree_rl_lab_npz,
    holosoma_npz,
    protomotions_motion,
    sonic_folder,
    amp_npz,
    holomotion_npz,
    holomotion_h5,
    mimickit_pkl,
    robot_parquet,
)
_HUMAN = (amass_smplh, amass_smplx, asap_smpl, gvhmr, wham, tram, bvh, human_parquet)
_MODULES = (*_ROBOT, *_HUMAN)
FORMATS: dict[str, Format] = {module.FORMAT.id: module.FORMAT for module in _MODULES}


def get_format(name: str) -> Format:
    """The format called `name`.

    Raises:
        UnknownNameError: there is none; the text lists the valid ones.
    """
    if name not in FORMATS:
        raise unknown_name("motion format", name, FORMATS)
    return FORMATS[name]


def sniff(path: Path | str) -> list[Candidate]:
    """The formats that a file or folder may have, the surest first; formats as sure keep their order in the table.

    Raises:
        InputFileError: it does not exist, cannot be read, or is neither a file nor a folder.
    """
    path = Path(path)
    is_folder(path)  # refuses what cannot be opened
    matches = [(form, form.sniff(path)) for form in FORMATS.values()]
    found = [Candidate(form, match.confidence, match.reason) for form, match in matches if match is not None]
    return sorted(found, key=lambda candidate: -candidate.confidence)


def read_any(path: Path | str) -> Sequence[Clip]:
    """The clips of a file of any format, read as the surest one.

    Raises:
        InputFileError: it does not exist, has no known format, or is damaged.
    """
    path = Path(path)
    candidates = sniff(path)
    if not candidates:
        raise InputFileError(path, f"found no known motion format, expected one of {', '.join(FORMATS)}")
    return candidates[0].format.read(path)
