"""A person's clip understood: up axis, frame, units and rate decided, problems named, the motion if it is sure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from asap_core.errors import InputFileError
from asap_core.evidence import Decision, given, undecided
from asap_core.motions.doctor.contact import slide_problems
from asap_core.motions.doctor.human_evidence import (
    FACTOR_SPREAD,
    STATURE_RANGE,
    UP_LEAST,
    UP_MARGIN,
    CameraFigures,
    RateFigures,
    camera_frame,
    camera_frame_suspect,
    fps_evidence,
    units,
    up_axis,
)
from asap_core.motions.doctor.integrity import leaps, repeats
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.problems import Problem
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.frame_gaps import bridge_gaps, gaps
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import sole_points
from asap_core.motions.tables import check_size
from asap_core.rotations import Array

_LEAST_FRAMES = 4
_HIGHEST = 20.0
"""m; a root that is higher above its world's origin is given in another unit."""
_MOST_TURN = 7.0
"""rad; a rotation vector beyond a whole turn is in degrees."""


@dataclass(frozen=True)
class HumanDiagnosis:
    """What the doctor found of one person's clip."""

    clip: HumanClip
    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]
    motion: HumanMotion | None
    """None while a question is open or the frame is a camera's."""

    @property
    def open_questions(self) -> tuple[Decision, ...]:
        """Those that must be settled before the clip can be converted."""
        return undecided(self.decisions)

    @property
    def clean(self) -> bool:
        """Nothing open and nothing worse than a note."""
        return not self.open_questions and all(problem.severity == "note" for problem in self.problems)


def examine_human(clip: HumanClip, options: Options) -> HumanDiagnosis:
    """Understand a clip by its physics.

    Raises:
        InputFileError: fewer than four frames, or absurd numbers.
    """
    count = len(clip.root_translation)
    if count < _LEAST_FRAMES:
        raise InputFileError(clip.path, f"frames: found {count}, expected at least {_LEAST_FRAMES}")
    check_size(clip.path, "joint_rotations", clip.joint_rotations, 1e5, "in any unit")
    check_size(clip.path, "root_translation", clip.root_translation, 1e7, "in any unit")
    angle, up = _angle_unit(clip), _up_axis(clip, options)
    if angle.answer == "deg":
        clip = replace(clip, joint_rotations=np.radians(clip.joint_rotations))
        up = _up_axis(clip, options)
    length = _length_unit(clip, up.answer)
    camera = camera_frame(clip)
    frame = _frame(clip, camera, options)
    rate = fps_evidence(replace(clip, fps=options.fps or clip.fps), up.answer)
    fps, fps_decision = _fps(clip, options, rate)
    decisions = (up, frame, length, angle, fps_decision)
    problems = [*_against_format(clip, decisions), *_camera_problems(frame, camera), *_rate_problems(fps, rate)]
    problems += _gaps(clip)
    problems += [Problem("note", "reader", note) for note in clip.notes]
    rows = np.concatenate([clip.root_translation, clip.joint_rotations.reshape(count, -1)], axis=1)
    problems += repeats(rows)
    if fps is None or undecided(decisions) or frame.answer == "camera":
        return HumanDiagnosis(clip, decisions, tuple(problems), None)
    motion = to_human_motion(bridge_gaps(clip), fps, up.answer, length.answer)  # type: ignore[arg-type]
    problems += leaps(motion.root_translation, motion.fps) + slide_problems(_soles(motion), motion.fps)
    return HumanDiagnosis(clip, decisions, tuple(problems), motion)


def _angle_unit(clip: HumanClip) -> Decision:
    largest = float(np.quantile(np.linalg.norm(clip.joint_rotations, axis=-1), 0.999))
    how = f"rotations reach {largest:.3g}, a whole turn is 6.28 rad"
    return Decision("angle unit", "deg" if largest > _MOST_TURN else "rad", largest, None, float("inf"), how, "")


def _length_unit(clip: HumanClip, up: str | None) -> Decision:
    """By the file's own bones; without any, by how far the feet make the root travel, or by an impossible height."""
    figures = units(clip)
    if figures.stature:
        how = f"stature of the file's own bones, expected {STATURE_RANGE[0]} to {STATURE_RANGE[1]} m"
        best = figures.best or min(
            figures.stature, key=lambda name: abs(np.log(max(figures.stature[name], 1e-9) / 1.7))
        )
        return Decision("length unit", figures.best, figures.stature[best], None, float("inf"), how, "", "m")
    if figures.best not in (None, "m"):
        how = "root travel over that of the standing feet"
        ratio = figures.leg_travel[str(figures.best)]
        return Decision("length unit", figures.best, ratio, "m", ratio - figures.leg_travel["m"], how, "")
    height = float(np.median(np.abs(clip.root_translation[:, "xyz".index((up or "z")[-1])])))
    if height > _HIGHEST:
        unit = "cm" if height < 10 * _HIGHEST else "mm"
        return Decision("length unit", unit, height, "m", 0.0, f"the root is {height:.0f} up", "")
    return given("length unit", clip.declared.length_unit or "m", "the format says so; the travel does not object", "")


def _up_axis(clip: HumanClip, options: Options) -> Decision:
    if options.up_axis is not None:
        return given("up axis", options.up_axis, "the option says so", "--up-axis")
    figures = up_axis(clip)
    sure = figures.scores[figures.best] >= UP_LEAST and figures.margin >= UP_MARGIN
    answer = figures.best if sure else clip.declared.up_axis
    how = "cosine between ankles to head and the axis" + ("" if sure else "; the format says so" if answer else "")
    others = {name: score for name, score in figures.scores.items() if name[-1] != figures.best[-1]}
    following = max(others, key=lambda name: others[name])
    score = figures.scores[figures.best]
    return Decision("up axis", answer, score, following, score - others[following], how, "--up-axis")


def _frame(clip: HumanClip, figures: CameraFigures, options: Options) -> Decision:
    """World or camera: a camera's frame has its y axis down, or is pitched against the standing body.

    In the project's own format z is up, whatever the person leans at.
    """
    told = options.up_axis is not None or (clip.format == "human_parquet" and figures.up == clip.declared.up_axis)
    suspect = clip.declared.frame == "camera" or (not told and camera_frame_suspect(figures))
    how = f"the standing body is {figures.tilt:.0f} deg from {figures.up}"
    if figures.ground_tilt is not None:
        how += f", the ground under its feet {figures.ground_tilt:.0f} deg"
    return Decision("frame", "camera" if suspect else "world", figures.tilt, None, float("inf"), how, "", "deg")


def _fps(clip: HumanClip, options: Options, rate: RateFigures) -> tuple[float | None, Decision]:
    stated = options.fps or clip.fps
    gravity = (
        "no flight to check it" if rate.gravity_fps is None else f"gravity in flight says {rate.gravity_fps:.0f} Hz"
    )
    if stated is None:
        how = f"the file stores none; {gravity}"
        return None, Decision("fps", None, rate.gravity_fps or 0.0, None, float("inf"), how, "--fps RATE", "Hz")
    source = "the option says so" if options.fps else "the file says so"
    return stated, Decision("fps", f"{stated:g}", stated, None, float("inf"), f"{source}; {gravity}", "--fps", "Hz")


def _against_format(clip: HumanClip, decisions: tuple[Decision, ...]) -> list[Problem]:
    declared = {
        "up axis": clip.declared.up_axis,
        "length unit": clip.declared.length_unit,
        "angle unit": clip.declared.angle_unit,
    }
    problems = []
    for decision in decisions:
        said = declared.get(decision.question)
        if said is None or decision.answer in (None, said) or decision.how.startswith("the option"):
            continue
        text = f"{decision.question} is {decision.answer}, {clip.format} says {said} ({decision.how})"
        code = decision.question.replace(" ", "_")
        problems.append(Problem("error", code, text, "", "asap convert SRC DST (reads it as found)"))
    return problems


def _camera_problems(frame: Decision, figures: CameraFigures) -> list[Problem]:
    if frame.answer != "camera":
        return []
    text = f"the motion is in a camera's frame ({frame.how})"
    mend = "use the world's motion of the same tool (GVHMR: smpl_params_global, WHAM: pose_world)"
    return [Problem("error", "camera_frame", text, "", mend)]


def _rate_problems(fps: float | None, rate: RateFigures) -> list[Problem]:
    if fps is None or rate.factor is None or 1 / FACTOR_SPREAD < rate.factor < FACTOR_SPREAD:
        return []
    text = f"the rate of {fps:g} Hz is off by {rate.factor:.2f}: flight falls with gravity at {rate.gravity_fps:.1f} Hz"
    return [Problem("error", "wrong_fps", text, "", f"asap convert SRC DST --fps {rate.gravity_fps:.4g}")]


def _gaps(clip: HumanClip) -> list[Problem]:
    missing = gaps(clip)
    if not missing:
        return []
    count = sum(last - first + 1 for first, last in missing)
    text = f"{count} frames of the video are missing in {len(missing)} gaps, the first {missing[0][0]}-{missing[0][1]}"
    return [Problem("warning", "frame_gaps", text, "", "asap convert SRC DST --bridge (interpolates them)")]


def _soles(motion: HumanMotion) -> Array:
    """(T, 2, S, 3) m, points under both feet."""
    world = motion.global_rotations()
    joints = motion.joint_positions(world)
    points = sole_points(motion.skeleton)
    placed = [joints[:, joint] + world[:, joint] @ offset for joint, offset in points]
    half = len(points) // 2
    return np.stack([np.stack(placed[:half], axis=1), np.stack(placed[half:], axis=1)], axis=1)
