"""The video bench: rendered clips through the whole stage, scored against the body that was rendered."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from asap_core.evaluation.video_bench.draws import bench_motions, draw_shot
from asap_core.evaluation.video_bench.raw import raw_landmarks
from asap_core.evaluation.video_bench.score import Figures, of_keypoints, of_landmarks, of_skeleton, score
from asap_core.motions.human import HumanMotion
from asap_core.progress import track as progress
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.lift import lift
from asap_core.reconstruction.reconstruct import Choice
from asap_core.reconstruction.rendering.mp4 import write_mp4
from asap_core.reconstruction.rendering.render import Shot, render
from asap_core.retargeting.retarget import retarget
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

NOTHING, GIVEN, RAW = "nothing given", "camera and height given", "raw per frame"
YARDSTICKS: dict[str, Figures] = {
    f"must, {NOTHING}": {"mpjpe_mm": 115.0, "drift_mm": 180.0, "acceleration_mm": 6.0, "frames_per_s": 30.0},
    f"must, {GIVEN}": {"mpjpe_mm": 95.0, "drift_mm": 80.0, "acceleration_mm": 6.0, "frames_per_s": 30.0},
    "aim": {"mpjpe_mm": 80.0, "drift_mm": 50.0, "acceleration_mm": 3.0, "frames_per_s": 60.0},
}
_SEED = 11
Rows = dict[str, Figures]


def bench(shared: Path, choice: Choice, profile: RobotProfile, settings: RetargetSettings, seed: int = _SEED) -> Rows:
    """Figures of each motion under each condition, their means, and the yardsticks, by "motion, condition".

    Scored are the twelve main joints of the reconstructed skeleton (`score.score`) against the mesh's COCO keypoints of
    the same names, on which the yardsticks were measured, and as `rig_mpjpe_mm` against the joints of the mesh's rig,
    whose hips lie deeper and higher. `robot_mm` is how far the links of the robot are off, root on root, that the
    motion is retargeted to, against the robot of the true motion. `frames_per_s` is that of the stage from the mp4 to
    the motion by the clock, `processor_ms` what one of its frames takes of all cores together.
    """
    motions = bench_motions(shared)
    rows: Rows = {}
    with progress("video bench", len(motions)) as bar, tempfile.TemporaryDirectory() as folder:
        for motion in motions:
            shot = draw_shot(motion, seed)
            video = Path(folder) / f"{motion.name}.mp4"
            write_mp4(render(shot, seed), motion.fps, video)
            for condition, figures in _score_shot(shot, video, choice, profile, settings).items():
                rows[f"{motion.name}, {condition}"] = figures
            bar.advance(note=motion.name)
    for condition in (NOTHING, GIVEN, RAW):
        scored = [row for name, row in rows.items() if name.endswith(f", {condition}")]
        rows[f"mean, {condition}"] = {key: float(np.mean([row[key] for row in scored])) for key in scored[0]}
    return rows | YARDSTICKS


def _score_shot(shot: Shot, video: Path, choice: Choice, profile: RobotProfile, settings: RetargetSettings) -> Rows:
    camera = shot.camera
    given = Known(focal=camera.focal, pitch=camera.pitch, camera_height=camera.height, person_height=shot.body.stature)
    true = of_keypoints(shot.keypoints()), of_skeleton(shot.joints())
    begin = _clocks()
    track = choice.track(video)
    tracked = _clocks() - begin
    robot = _links(shot.motion, profile, settings)
    rows: Rows = {}
    for condition, known in ((NOTHING, Known()), (GIVEN, given)):
        begin = _clocks()
        motion = lift(track, known).motion
        seconds, processor = tracked + _clocks() - begin
        figures = _against(of_skeleton(motion.joint_positions()), true, motion.fps)
        rows[condition] = figures | {
            "robot_mm": _distance(_links(motion, profile, settings), robot),
            "frames_per_s": motion.num_frames / seconds,
            "processor_ms": 1e3 * processor / motion.num_frames,
        }
    raw = of_landmarks(raw_landmarks(track, camera))
    seen = np.asarray(np.isfinite(raw).all(axis=(1, 2)))
    rows[RAW] = _against(raw[seen], tuple(part[: len(seen)][seen] for part in true), shot.motion.fps)
    return rows


def _against(found: Array, true: tuple[Array, ...], fps: float) -> Figures:
    count = min(len(found), len(true[0]))
    keypoints, joints = (part[:count] for part in true)
    figures = score(found[:count], keypoints, fps)
    return figures | {"rig_mpjpe_mm": score(found[:count], joints, fps)["mpjpe_mm"]}


def _clocks() -> Array:
    """(2,) s on the wall's clock and of this process on all cores."""
    return np.array([time.perf_counter(), time.process_time()])


def _links(motion: HumanMotion, profile: RobotProfile, settings: RetargetSettings) -> Array:
    """Links (T, L, 3) of the retargeted robot from its root, m."""
    robot = retarget(motion, profile, settings)
    links = Kinematics(profile).forward(robot.root_pos, robot.root_quat, robot.joint_pos).pos
    return links - links[:, :1]


def _distance(one: Array, other: Array) -> float:
    count = min(len(one), len(other))
    return 1e3 * float(np.linalg.norm(one[:count] - other[:count], axis=-1).mean())
