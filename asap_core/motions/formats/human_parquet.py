"""Reader of the project's own human motion: Parquet with named columns and a JSON header (see `motions/human.py`)."""

from __future__ import annotations

from pathlib import Path

from asap_core.files import sha256_file
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.format import Format, Match
from asap_core.motions.human import FORMAT as HUMAN_FORMAT
from asap_core.motions.human import HumanMotion
from asap_core.motions.tables import table_format


def read(path: Path) -> list[HumanClip]:
    """The one motion of the file.

    Raises:
        InputFileError: missing, truncated, of another format, or with impossible values.
    """
    motion = HumanMotion.load(path)
    clip = HumanClip(
        path=path,
        name=motion.name,
        format="human_parquet",
        sha256=sha256_file(path),
        joint_rotations=motion.joint_rotations,
        root_translation=motion.root_translation,
        fps=motion.fps,
        skeleton=motion.skeleton,
        declared=Declared(up_axis="z", length_unit="m", angle_unit="rad", frame="world"),
        notes=(f"made from {motion.source.path} by {motion.source.tool}",),
    )
    return [clip]


def sniff(path: Path) -> Match | None:
    """By the header in the file's metadata."""
    if table_format(path) == HUMAN_FORMAT:
        return Match(1.0, f"the header says {HUMAN_FORMAT}")
    return None


FORMAT = Format("human_parquet", "this project's human motion", "human", (".parquet",), sniff, read)
