"""MaskedMimic of ProtoMotions as the imitator, run as an external command by those who have it installed.

The motion is written as an AMASS npz (SMPL, z up). The command runs in a process group of its own and leaves a JSON
manifest; only the manifest decides. A process that dies after it wrote one has succeeded, and one that ends with
status 0 without one has failed: simulators do both.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import ConfigError, StageError
from asap_core.files import read_object
from asap_core.motions.formats.amass import write_amass
from asap_core.motions.human import HumanMotion
from asap_core.screening.settings import MaskedMimicSettings
from asap_core.screening.verdict import Reason, Verdict

_GRACE_S = 10.0
_TAIL = 5
"""Last lines of the log that an error shows."""
_PLACES = ("{motion}", "{result}")


@dataclass(frozen=True)
class MimicResult:
    """What the manifest says: `{"success": bool, "frames": int, "failed_frames": [int, …]}`."""

    success: bool
    frames: int
    """Frames of the clip that were simulated."""
    failed_frames: tuple[int, ...]
    """Those in which the character was too far from the clip."""
    log: Path

    def verdict(self) -> Verdict:
        """As one of the screen's."""
        share = len(self.failed_frames) / self.frames if self.frames else 1.0
        figures = {"imitation_failed_share": share}
        if self.success:
            return Verdict(True, [], figures, 1.0 - share)
        frames = [[frame, frame] for frame in self.failed_frames]
        reason = Reason("imitation", share, 0.0, "of the frames not imitated by MaskedMimic", frames)
        return Verdict(False, [reason], figures, 1.0 - share)


def run_masked_mimic(motion: HumanMotion, settings: MaskedMimicSettings, folder: Path) -> MimicResult:
    """Let the configured command imitate a clip; `folder` receives motion.npz, result.json and log.txt.

    Raises:
        ConfigError: no command is configured, or it does not name {motion} and {result}.
        StageError: it cannot be started, takes longer than `settings.timeout_s`, or leaves no whole manifest.
    """
    command = _command(settings, folder)
    folder.mkdir(parents=True, exist_ok=True)
    result, log = folder / "result.json", folder / "log.txt"
    result.unlink(missing_ok=True)
    poses = motion.joint_rotations.reshape(motion.num_frames, -1)
    write_amass(folder / "motion.npz", poses, motion.root_translation, motion.fps)
    ended = _run(command, log, settings.timeout_s)
    if not result.exists():
        raise StageError(f"{command[0]}: {ended} and left no manifest {result}; end of {log}:\n{_tail(log)}")
    return _read(result, log, motion.num_frames)


def _command(settings: MaskedMimicSettings, folder: Path) -> list[str]:
    missing = [place for place in _PLACES if place not in settings.command]
    if missing:
        found = repr(settings.command) if settings.command else "nothing"
        raise ConfigError(
            f"screen.masked_mimic.command: found {found}, expected a command with {' and '.join(_PLACES)}"
        )
    values = {"{motion}": str(folder / "motion.npz"), "{result}": str(folder / "result.json")}
    parts = shlex.split(settings.command)
    for place, value in values.items():
        parts = [part.replace(place, value) for part in parts]
    return parts


def _run(command: list[str], log: Path, timeout_s: float) -> str:
    """Run to the end or the time limit, output to `log`; how it ended."""
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            raise StageError(f"{command[0]}: cannot be started: {error.strerror or error}") from None
        try:
            process.wait(timeout_s)
            return f"exit status {process.returncode}"
        except subprocess.TimeoutExpired:
            return f"stopped after {timeout_s:g} s"
        finally:
            _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the command's process group, children that outlived it included."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue


def _read(result: Path, log: Path, num_frames: int) -> MimicResult:
    content = read_object(result)
    success, frames, failed = (content.get(key) for key in ("success", "frames", "failed_frames"))
    if not isinstance(success, bool) or not isinstance(frames, int) or not isinstance(failed, list):
        raise StageError(f"{result}: found {content}, expected success (bool), frames (int), failed_frames (list)")
    if not all(isinstance(frame, int) and 0 <= frame < num_frames for frame in failed):
        raise StageError(f"{result}: failed_frames: found {failed[:5]}, expected frames 0 to {num_frames - 1}")
    if success and frames < num_frames:
        raise StageError(f"{result}: claims success after {frames} of {num_frames} frames")
    return MimicResult(success, frames, tuple(failed), log)


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_TAIL:])
