"""The rendered person: what the mesh does, where it is in the picture, and the sample that is shipped."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from asap_core.motions.formats.npz import npz_shapes
from asap_core.motions.human import HumanMotion
from asap_core.motions.samples import FPS, SAMPLES, poses
from asap_core.motions.skeleton import INDEX, REST_TO_WORLD, body_offsets, leg_length, place_joints
from asap_core.motions.tables import Source
from asap_core.reconstruction.camera import Camera

pytest.importorskip("cv2", reason="extra video absent")
from asap_core.reconstruction.rendering.body_mesh import FILE, KEYPOINT_NAMES, REGIONS, load_body_mesh
from asap_core.reconstruction.rendering.planted import planted_path
from asap_core.reconstruction.rendering.raster import _COLOURS
from asap_core.reconstruction.rendering.render import Shot, place, render
from asap_core.reconstruction.rendering.sample import NAME, sample_shot

CAMERA = Camera(700.0, 0.1, 0.0, 1.3, (320.0, 320.0))


def _motion(name: str) -> HumanMotion:
    rotations, pelvis = poses(SAMPLES[name]())
    source = Source(name, "", "test")
    return HumanMotion(name, FPS, rotations.reshape(-1, 24, 3), pelvis, body_offsets(), source)


@pytest.fixture(scope="module")
def shot() -> Shot:
    return place(_motion("side_step"), CAMERA, 640, 640, 1.8, 4.0, np.radians(160.0))


def test_mesh_is_small_and_its_weights_are_shares() -> None:
    body = load_body_mesh()
    assert FILE.stat().st_size < 1.3e6
    np.testing.assert_allclose(body.weights.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(body.regressor.sum(axis=1), 1.0, atol=1e-12)
    assert (np.bincount(body.weights.argmax(axis=1), minlength=24)[1:] > 20).all()
    assert npz_shapes(FILE)["vertices"] == (13524, 3)


@pytest.mark.parametrize("stature", [1.5, 1.95])
def test_fitted_body_has_the_stature_and_its_limbs_point_as_the_skeletons(stature: float) -> None:
    skeleton = body_offsets()
    skeleton[INDEX["L_Elbow"]] = 0.3 * np.array([0.8, -0.6, 0.0])
    body = load_body_mesh().fitted(skeleton, stature)
    assert body.stature == pytest.approx(stature, abs=1e-9)
    assert body.vertices[:, 1].min() == pytest.approx(0.0, abs=1e-9)
    for end in ("L_Elbow", "R_Elbow", "L_Wrist", "R_Knee", "L_Ankle"):
        own, wanted = body.offsets[INDEX[end]], skeleton[INDEX[end]]
        np.testing.assert_allclose(own / np.linalg.norm(own), wanted / np.linalg.norm(wanted), atol=1e-9)
    assert leg_length(body.offsets) == pytest.approx(0.47 * stature, rel=0.06)  # Winter: hip to ankle is 0.491


def test_a_turned_joint_carries_what_hangs_on_it_and_nothing_else() -> None:
    body = load_body_mesh()
    turns = np.tile(np.eye(3), (24, 1, 1))
    bend = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    for name in ("L_Knee", "L_Ankle", "L_Toe"):
        turns[INDEX[name]] = bend
    vertices, joints = body.pose(turns, body.joints[0])
    knee = body.joints[INDEX["L_Knee"]]
    below = body.weights[:, [INDEX[n] for n in ("L_Knee", "L_Ankle", "L_Toe")]].sum(axis=1)
    rigid, still = below == 1.0, below == 0.0
    assert rigid.sum() > 800
    np.testing.assert_allclose(vertices[rigid], (body.vertices[rigid] - knee) @ bend.T + knee, atol=1e-9)
    np.testing.assert_allclose(vertices[still], body.vertices[still], atol=1e-12)
    np.testing.assert_allclose(joints, place_joints(turns[None], body.joints[None, 0], body.offsets)[0], atol=1e-12)


def test_keypoints_are_near_the_joints_of_the_same_name() -> None:
    body = load_body_mesh()
    points = body.regressor @ body.vertices
    for part in ("shoulder", "elbow", "wrist", "hip", "knee", "ankle"):
        for side in ("left", "right"):
            joint = body.joints[INDEX[f"{side[0].upper()}_{part.capitalize()}"]]
            assert np.linalg.norm(points[KEYPOINT_NAMES.index(f"{side}_{part}")] - joint) < 0.06
    left, right = (points[KEYPOINT_NAMES.index(f"{side}_eye")] for side in ("left", "right"))
    np.testing.assert_allclose(left, right * (-1, 1, 1), atol=2e-3)


@pytest.mark.parametrize("name", ["squat", "side_step", "kick"])
def test_soles_touch_the_ground_and_the_standing_foot_stays(name: str) -> None:
    shot = place(_motion(name), CAMERA, 640, 640, 1.6, 4.0)
    lowest = np.array([vertices[:, 2].min() for vertices in shot.vertices()])
    assert np.abs(lowest).max() < 0.012
    left = shot.joints()[:, INDEX["L_Ankle"]]
    if name == "kick":  # it stands on the left foot throughout
        assert np.linalg.norm(left - left[0], axis=1).max() < 0.02
    if name == "side_step":
        travel = np.linalg.norm((left[-1] - left[0])[:2])
        scale = leg_length(shot.body.offsets) / leg_length(body_offsets())
        assert travel == pytest.approx(0.16 * scale, abs=0.02)


def test_a_jump_stays_a_jump() -> None:
    motion = _motion("squat")
    flight = 0.3 * np.exp(-(((np.arange(motion.num_frames) - 50) / 6.0) ** 2))
    motion = replace(motion, root_translation=motion.root_translation + flight[:, None] * [0.0, 0.0, 1.0])
    body = load_body_mesh().fitted(motion.skeleton, 1.7)
    rotations = motion.global_rotations()
    path = planted_path(motion, body, rotations)
    lowest = np.array([body.pose(r, p)[0][:, 2].min() for r, p in zip(rotations, path, strict=True)])
    scale = leg_length(body.offsets) / leg_length(motion.skeleton)
    assert lowest[50] == pytest.approx(scale * (0.3 - 0.03), abs=0.02)
    assert np.abs(lowest[:35]).max() < 0.012


def test_person_stands_where_and_faces_as_asked(shot: Shot) -> None:
    joints = shot.joints()
    middle = (joints[:, 0].min(axis=0) + joints[:, 0].max(axis=0)) / 2
    np.testing.assert_allclose(middle[:2], [4.0, 0.0], atol=1e-9)
    ahead = shot.motion.global_rotations()[0, 0] @ np.array([0.0, 0.0, 1.0])
    assert np.degrees(np.arctan2(ahead[1], ahead[0])) == pytest.approx(160.0, abs=1e-6)
    np.testing.assert_allclose(shot.motion.joint_positions(), joints)


def test_pictures_show_the_body_where_the_truth_says(shot: Shot) -> None:
    picture = next(render(shot)).astype(float)
    points = CAMERA.project(CAMERA.seen(shot.keypoints()[0]))
    shirt, skin = (np.array(_COLOURS[name], dtype=float) for name in ("shirt", "skin"))
    for name, colour in (("left_shoulder", shirt), ("right_shoulder", shirt), ("left_wrist", skin), ("nose", skin)):
        x, y = np.round(points[KEYPOINT_NAMES.index(name)]).astype(int)
        seen = picture[y - 1 : y + 2, x - 1 : x + 2].mean(axis=(0, 1))
        assert seen @ colour / np.linalg.norm(seen) / np.linalg.norm(colour) > 0.98, name
    vertices = CAMERA.project(CAMERA.seen(next(shot.vertices())))
    blue = (picture[..., 2] - picture[..., 0] > 40).nonzero()
    shirt_at = vertices[shot.body.regions == REGIONS.index("shirt")]
    np.testing.assert_allclose(
        [blue[1].min(), blue[1].max(), blue[0].min(), blue[0].max()],
        [*shirt_at[:, 0].min(keepdims=True), shirt_at[:, 0].max(), shirt_at[:, 1].min(), shirt_at[:, 1].max()],
        atol=8,
    )


def test_equal_shots_give_equal_pictures_and_the_seed_draws_the_floor(shot: Shot) -> None:
    one, other = (np.stack(list(islice(render(shot), 14))) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert (next(render(shot, seed=1)) != one[0]).mean() > 0.3
    assert (one[0] != one[13]).any()


def test_a_taller_person_is_drawn_taller() -> None:
    heights = []
    for stature in (1.5, 1.8):
        shot = place(_motion("squat"), replace(CAMERA, pitch=0.0), 640, 640, stature, 4.0)
        rows = CAMERA.focal * (next(shot.vertices())[:, 2] - CAMERA.height) / 4.0
        heights.append(np.ptp(rows))
    assert heights[1] / heights[0] == pytest.approx(1.8 / 1.5, rel=1e-3)


def test_the_rest_frame_is_the_skeletons() -> None:
    body = load_body_mesh()
    assert body.joints[INDEX["L_Hip"], 0] > 0.05  # x left
    assert body.joints[INDEX["Head"], 1] > 1.4  # y up
    toes = body.joints[INDEX["L_Toe"]] - body.joints[INDEX["L_Ankle"]]
    assert toes[2] > 0.1  # z forward
    assert (REST_TO_WORLD @ toes)[0] == toes[2]


def test_shipped_sample_is_what_the_command_makes(repo_root: Path) -> None:
    av = pytest.importorskip("av")
    folder = repo_root / "data" / "video"
    video = repo_root / "data" / "human" / f"{NAME}.mp4"
    assert video.stat().st_size + sum(path.stat().st_size for path in folder.iterdir()) < 500_000
    shot = sample_shot()
    motion = HumanMotion.load(folder / f"{NAME}.truth.parquet")
    np.testing.assert_allclose(motion.joint_positions(), shot.joints(), atol=1e-6)
    keypoints = np.load(folder / f"{NAME}.truth.npz")["keypoints"]
    np.testing.assert_allclose(keypoints, shot.keypoints(), atol=1e-5)
    about = json.loads((folder / f"{NAME}.truth.json").read_text())
    assert Camera(**about["camera"] | {"centre": tuple(about["camera"]["centre"])}) == shot.camera
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert float(stream.average_rate) == about["fps"] == FPS
    assert len(frames) == about["frames"] == shot.motion.num_frames
    assert 4.0 <= len(frames) / FPS <= 6.0
    first = next(render(shot)).astype(float)
    assert np.abs(first - frames[0]).mean() < 6.0
