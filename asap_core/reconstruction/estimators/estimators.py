"""The three estimators: what runs each one, where it leaves its result, and how that becomes motions.

Facts are from the tools' own demo scripts: TRAM's `scripts/estimate_camera.py` and `estimate_humans.py`, GVHMR's
`tools/demo/demo.py`, WHAM's `demo.py`. All three write one frame for each of the video's: GVHMR's copy of the video
says 30 frames per second, but it repeats and leaves out none.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import ConfigError, InputFileError, StageError, unknown_name
from asap_core.files import make_folder
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.table import FORMATS, sniff
from asap_core.motions.frame_gaps import split_at_gaps
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.human import HumanMotion
from asap_core.progress import track
from asap_core.reconstruction.estimators.external_command import run_logged, said
from asap_core.reconstruction.estimators.settings import EstimatorSettings, EstimatorsSettings
from asap_core.reconstruction.video_file import probe

LOG = "estimator.log"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Estimator:
    """One tool; patterns may hold {python}, {video}, {out} and {name}."""

    steps: tuple[tuple[str, ...], ...]
    still: str
    """Argument of the first step for a camera that stands still; empty if there is none."""
    results: str
    """Pattern of the result files, one per person or one for all, from the working folder."""
    beside: tuple[str, ...] = ()
    """Files that the reader needs too."""


ESTIMATORS: dict[str, Estimator] = {
    "tram": Estimator(
        (
            ("{python}", "scripts/estimate_camera.py", "--video", "{video}"),
            ("{python}", "scripts/estimate_humans.py", "--video", "{video}"),
        ),
        "--static_camera",
        "results/{name}/hps/hps_track_*.npy",
        ("results/{name}/camera.npy",),
    ),
    "gvhmr": Estimator(
        (("{python}", "tools/demo/demo.py", "--video", "{video}", "--output_root", "{out}"),),
        "--static_cam",
        "{out}/{name}/hmr4d_results.pt",
    ),
    "wham": Estimator(
        (("{python}", "demo.py", "--video", "{video}", "--output_pth", "{out}", "--save_pkl"),),
        "",
        "{out}/{name}/wham_output.pkl",
    ),
}
"""By the name of `--with`, which is also the format of the result."""


def run_estimator(name: str, video: Path, settings: EstimatorsSettings, out: Path) -> list[HumanMotion]:
    """The motions that an estimator finds in a video, one for each person and unbroken piece.

    The result files and the log stay in `out`. Whether a run succeeded is told by its result files alone: a tool that
    fails afterwards, while it draws a picture of them, has done its work.

    Raises:
        UnknownNameError: there is no such estimator.
        ConfigError: it is not configured, or its folder or a placeholder is wrong.
        InputFileError: the video cannot be read.
        StageError: the tool cannot be started, ran out of time, or left no result or one that cannot be read; the end
            of its log is part of the message.
    """
    if name not in ESTIMATORS:
        raise unknown_name("estimator", name, ESTIMATORS)
    tool = ESTIMATORS[name]
    chosen: EstimatorSettings | None = getattr(settings, name)
    if chosen is None:
        raise ConfigError(f"reconstruct.estimators.{name}: missing; expected folder and python of an installed {name}")
    folder = chosen.folder.expanduser()
    if not folder.is_dir():
        raise ConfigError(f"reconstruct.estimators.{name}.folder: {folder} is no folder")
    info = probe(video)
    out = out.resolve()
    make_folder(out)
    run = f"{re.sub(r'[^A-Za-z0-9_]', '_', video.stem)}_{uuid.uuid4().hex[:8]}"
    link = out / f"{run}{video.suffix}"
    link.symlink_to(video.resolve())
    try:
        words = {"python": str(Path(chosen.python).expanduser()), "video": str(link), "out": str(out), "name": run}
        status = _run(name, chosen, folder, _steps(name, tool, chosen, words), out / LOG)
        found = _kept(tool, folder, words, out / name)
    finally:
        link.unlink(missing_ok=True)
    if not found:
        wanted = folder / tool.results.format(**words)
        raise StageError(f"{name}: ended with status {status} and left no {wanted}. {said(out / LOG)}")
    if status:
        _log.warning("%s ended with status %d after it wrote its result; see %s", name, status, out / LOG)
    try:
        return [motion for path in found for motion in import_result(path, name, info.rate)]
    except InputFileError as error:
        raise StageError(f"{name}: its result cannot be used: {error}. {said(out / LOG)}") from error


def result_of(path: Path) -> str | None:
    """The estimator whose finished result a file is; None for a video or another file."""
    names = [candidate.format.id for candidate in sniff(path)]
    return names[0] if names and names[0] in ESTIMATORS else None


def import_result(path: Path, name: str, fps: float) -> list[HumanMotion]:
    """The motions of a finished result: z up, one for each person and unbroken piece.

    Frames that the tool left out are never made up: the clip is cut there, and the pieces are named after their first
    frame. Pieces of a single frame are left out.

    Args:
        path: of the format `name`, a key of `ESTIMATORS`.
        name: the estimator.
        fps: of the video; no result stores it.

    Raises:
        InputFileError: damaged, of another layout, or only in the camera's frame.
    """
    clips: Sequence[HumanClip] = FORMATS[name].read(path)  # type: ignore[assignment]
    return [to_human_motion(piece, fps) for clip in clips for piece in split_at_gaps(clip)]


def _steps(name: str, tool: Estimator, chosen: EstimatorSettings, words: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    steps = chosen.steps or tool.steps
    if not chosen.steps and tool.still and not chosen.moving_camera:
        steps = ((*steps[0], tool.still), *steps[1:])
    try:
        return tuple(tuple(part.format(**words) for part in step) for step in steps)
    except (KeyError, IndexError, ValueError) as error:
        valid = ", ".join(f"{{{word}}}" for word in words)
        raise ConfigError(f"reconstruct.estimators.{name}.steps: {error}; valid: {valid}") from None


def _run(name: str, chosen: EstimatorSettings, folder: Path, steps: tuple[tuple[str, ...], ...], log: Path) -> int:
    """Status of the first step that fails, or 0."""
    log.write_bytes(b"")
    deadline = time.monotonic() + chosen.timeout_s
    with track(name, len(steps)) as bar:
        for step in steps:
            status = run_logged(step, folder, chosen.environment, log, deadline, bar)
            if status:
                return status
            bar.advance()
    return 0


def _kept(tool: Estimator, folder: Path, words: dict[str, str], keep: Path) -> list[Path]:
    """Copies in `keep` of the result files of this run; those of an earlier run have another name."""
    pattern = folder / tool.results.format(**words)
    found = sorted(pattern.parent.glob(pattern.name), key=lambda path: (len(path.name), path.name))
    copies = []
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir()
    for source in (*found, *(folder / name.format(**words) for name in tool.beside)):
        if source.is_file():
            shutil.copyfile(source, keep / source.name)
            copies += [keep / source.name] if source in found else []
    return copies
