"""What the table of formats knows of each one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from asap_core.motions.formats.clip import Clip
from asap_core.motions.robot import RobotMotion
from asap_core.robots.profile import RobotProfile


@dataclass(frozen=True)
class Match:
    """How well a file fits a format."""

    confidence: float
    """0 to 1. 1: the file says so itself; ≥ 0.9: no other format has this layout; ≤ 0.6: another one has it too."""
    reason: str
    """What was seen, for the user."""


@dataclass(frozen=True)
class Format:
    """One layout of motion files.

    Attributes:
        id: key in `FORMATS`.
        title: for people: whose it is.
        kind: whose motion it holds.
        suffixes: of its files in lower case, with the dot; "/" for a folder.
        sniff: a cheap look at a file that exists; None where it is something else. It reads no arrays and raises
            nothing.
        read: all clips of a file; raises InputFileError.
        write: a robot motion to a file; None if the format is only read.
    """

    id: str
    title: str
    kind: Literal["robot", "human"]
    suffixes: tuple[str, ...]
    sniff: Callable[[Path], Match | None]
    read: Callable[[Path], Sequence[Clip]]
    write: Callable[[Path, RobotMotion, RobotProfile], None] | None = None


@dataclass(frozen=True)
class Candidate:
    """A format that a file may have."""

    format: Format
    confidence: float
    reason: str
