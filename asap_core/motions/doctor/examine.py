"""The doctor's visit to a file: its format, then each of its clips."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError
from asap_core.evidence import Decision
from asap_core.motions.doctor.file_format import decide_format
from asap_core.motions.doctor.human import HumanDiagnosis, examine_human
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.robot import RobotDiagnosis, examine_robot
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.table import FORMATS, sniff

Diagnosis = RobotDiagnosis | HumanDiagnosis


@dataclass(frozen=True)
class FileReport:
    """What the doctor says of one file."""

    path: Path
    format: Decision
    clips: tuple[Diagnosis, ...]

    @property
    def clean(self) -> bool:
        """No problem and no open question in any clip."""
        return self.format.answer is not None and all(clip.clean for clip in self.clips)


def examine(path: Path | str, options: Options) -> FileReport:
    """Understand all clips of a file.

    Raises:
        InputFileError: missing, of no known format, damaged, or with joints that no known robot has.
    """
    path = Path(path)
    candidates = sniff(path)
    if not candidates:
        raise InputFileError(path, f"found no known motion format, expected one of {', '.join(FORMATS)}")
    clips = candidates[0].format.read(path)
    if not clips:
        raise InputFileError(path, "holds no clip")
    found = tuple(
        examine_robot(clip, options) if isinstance(clip, RobotClip) else examine_human(clip, options) for clip in clips
    )
    return FileReport(path, decide_format(candidates, found[0].decisions), found)
