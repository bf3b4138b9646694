"""SONIC's reference: a folder of CSV files with header lines, joints and bodies in Isaac order, wxyz, 50 Hz (E11).

`metadata.txt` tells which bodies of the 29-joint G1 the columns are, by their places in the Isaac order.
"""

from __future__ import annotations

import re
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.files import sha256_tree
from asap_core.motions.formats.checks import checked
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.formats.csv_numbers import read_csv
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.tables import check_array
from asap_core.robots import get_profile
from asap_core.robots.profile import breadth_first
from asap_core.rotations import Array

_FPS = 50.0
_INDEXES = re.compile(r"Body part indexes:\s*\[([\d\s,]*)\]")
_MOST_TEXT = 1 << 20
_NAMES = {name: f"{name}.csv" for name in ("joint_pos", "joint_vel", "body_pos", "body_quat", "body_lin_vel")} | {
    "body_ang_vel": "body_ang_vel.csv",
    "root_pos": "body_pos.csv",
    "root_quat": "body_quat.csv",
}
_DECLARED = Declared("wxyz", "isaac29", "isaac", "z", "m", "rad", frame="world")


def sniff(path: Path) -> Match | None:
    """Looks for the files' names."""
    wanted = ("joint_pos.csv", "body_pos.csv", "body_quat.csv")
    if not path.is_dir() or not all((path / name).is_file() for name in wanted):
        return None
    return Match(0.98, f"a folder with {', '.join(wanted)}")


def read(path: Path) -> list[RobotClip]:
    """The one clip; its root is the first body.

    Raises:
        InputFileError: a file is missing, no table of numbers or of another length, bodies that the robot lacks, or a
            NaN; the text names the file.
    """
    if not path.is_dir():
        raise InputFileError(path, "a file, expected a folder" if path.exists() else "missing")
    _, joint_pos = read_csv(path / "joint_pos.csv", header=True)
    body_pos, body_quat = _bodies(path, "body_pos", 3), _bodies(path, "body_quat", 4)
    if body_pos is None or body_quat is None:
        raise InputFileError(path, "missing body_pos.csv or body_quat.csv, which hold the root")
    names = _body_names(path / "metadata.txt", body_pos.shape[1])
    check_array(path, "body_quat.csv", body_quat, (len(body_pos), body_pos.shape[1], 4))
    clip = RobotClip(
        path=path,
        name=path.name,
        format=FORMAT.id,
        sha256=sha256_tree(path),
        root_pos=body_pos[:, 0],
        root_quat=body_quat[:, 0],
        joint_pos=joint_pos,
        fps=_FPS,
        joint_vel=read_csv(path / "joint_vel.csv", header=True)[1] if (path / "joint_vel.csv").exists() else None,
        body_names=names,
        body_pos=body_pos,
        body_quat=body_quat,
        body_lin_vel=_bodies(path, "body_lin_vel", 3),
        body_ang_vel=_bodies(path, "body_ang_vel", 3),
        declared=_DECLARED,
        notes=("50 frames a second by the format's definition; the files do not say",),
    )
    return [checked(clip, _NAMES)]


def _bodies(path: Path, name: str, width: int) -> Array | None:
    """(T, B, width) of a file, None if there is none."""
    file = path / f"{name}.csv"
    if not file.exists():
        return None
    _, values = read_csv(file, header=True)
    if values.shape[1] % width:
        raise InputFileError(file, f"columns: found {values.shape[1]}, expected {width} for each body")
    return values.reshape(len(values), -1, width)


def _body_names(path: Path, count: int) -> tuple[str, ...] | None:
    """Names of the bodies whose places `metadata.txt` lists; None without it."""
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            found = _INDEXES.search(stream.read(_MOST_TEXT))
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror or error}") from None
    if found is None:
        return None
    places = [int(word[:6]) for word in re.findall(r"\d+", found.group(1))]
    links = breadth_first(get_profile("g1_29dof"))
    if len(places) != count or max(places, default=0) >= len(links):
        wanted = f"expected {count} below {len(links)}, one for each body of body_pos.csv"
        raise InputFileError(path, f"Body part indexes: found {len(places)} up to {max(places, default=0)}, {wanted}")
    return tuple(links[place] for place in places)


FORMAT = Format("sonic_folder", "SONIC reference folder", "robot", ("/",), sniff, read)
