from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import human_fixtures as made
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.motions.doctor import human_evidence as evidence
from asap_core.motions.formats.clip import Declared, HumanClip
from asap_core.motions.formats.table import read_any
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.skeleton import INDEX, PELVIS_REST, REST_TO_WORLD, body_offsets
from asap_core.rotations import Array

FPS = 50.0


def _clip(turn: Array | None = None, fps: float = 30.0, **change: object) -> HumanClip:
    """The side step in a world turned by `turn` (3, 3), as a file that declares z up."""
    sample, turn = made.sample(), np.eye(3) if turn is None else turn
    rotations = sample.joint_rotations.copy()
    rotations[:, 0] = made.turned_root(sample, turn)
    clip = HumanClip(
        path=Path("clip.npz"),
        name="clip",
        format="asap_smpl",
        sha256="",
        joint_rotations=rotations,
        root_translation=sample.root_translation @ turn.T,
        fps=fps,
        declared=Declared(up_axis="z", length_unit="m"),
    )
    return replace(clip, **change)  # type: ignore[arg-type]


def _jump(fps: float = FPS) -> HumanClip:
    """Standing for 0.5 s, a stiff jump of 0.5 s of flight, standing for 0.5 s."""
    times = np.arange(int(1.5 * fps)) / fps
    flight = np.clip(times - 0.5, 0.0, 0.5)
    height = 0.9 + 9.81 / 2 * flight * (0.5 - flight)
    rotations = np.zeros((len(times), 24, 3))
    rotations[:, 0] = Rotation.from_matrix(REST_TO_WORLD).as_rotvec()
    root = np.stack([0 * times, 0 * times, height], axis=1)
    return _clip(joint_rotations=rotations, root_translation=root, fps=fps)


@pytest.mark.parametrize(("name", "turn"), [("z", np.eye(3)), ("y", REST_TO_WORLD.T), ("x", REST_TO_WORLD)])
def test_up_axis_is_the_one_the_body_stands_along(name: str, turn: Array) -> None:
    figures = evidence.up_axis(_clip(turn))
    assert figures.best == name
    assert figures.scores[name] > 0.99
    assert figures.margin > 0.9
    assert figures.scores[f"-{name}"] == -figures.scores[name]


def test_flight_falls_along_the_up_axis() -> None:
    assert evidence.up_axis(_jump()).gravity == pytest.approx(1.0)
    assert evidence.up_axis(_clip()).gravity is None


def test_c11_y_up_file_that_claims_z_is_turned_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """SMPL's `trans` is a pelvis offset away from the pelvis, which is vertical where y is up."""
    clip = _clip(REST_TO_WORLD.T, root_point="model_origin", body_model="smpl")
    clip = replace(clip, root_translation=clip.root_translation - PELVIS_REST["smpl"])
    with caplog.at_level(logging.WARNING):
        motion = to_human_motion(clip)
    np.testing.assert_allclose(motion.joint_positions(), made.expected_joints(made.sample()), atol=1e-9)
    assert "y is up" in caplog.text
    assert "not z: turned" in caplog.text


def test_c11_camera_frame_with_20_degrees_of_pitch_is_recognised_and_refused() -> None:
    clip = _clip(made.camera_turn(20.0))
    figures = evidence.camera_frame(clip)
    assert figures.up == "-y"
    assert figures.tilt == pytest.approx(20.0, abs=5.0)
    assert evidence.camera_frame_suspect(figures)
    with pytest.raises(InputFileError, match=r"along -y \(0\.9\d\), as in a camera's frame; .*smpl_params_global"):
        to_human_motion(clip)


def test_world_frames_are_not_suspected() -> None:
    for turn in (np.eye(3), REST_TO_WORLD, REST_TO_WORLD.T):
        assert not evidence.camera_frame_suspect(evidence.camera_frame(_clip(turn)))


def test_ground_under_feet_that_cover_an_area_shows_the_cameras_pitch() -> None:
    """A person who stands at 16 places of a square metre, seen by a camera pitched by 20°."""
    places = np.repeat(np.stack(np.meshgrid(np.arange(4) / 3, np.arange(4) / 3), axis=-1).reshape(-1, 2), 5, axis=0)
    stand = _jump()
    rotations = np.tile(stand.joint_rotations[:1], (len(places), 1, 1))
    clip = _clip(joint_rotations=rotations, root_translation=np.column_stack([places, np.full(len(places), 0.9)]))
    assert evidence.camera_frame(clip).ground_tilt == pytest.approx(0.0, abs=0.1)
    turn = made.camera_turn(20.0)
    rotations[:, 0] = (Rotation.from_matrix(turn) * Rotation.from_rotvec(rotations[:, 0])).as_rotvec()
    pitched = replace(clip, joint_rotations=rotations, root_translation=clip.root_translation @ turn.T)
    assert evidence.camera_frame(pitched).ground_tilt == pytest.approx(20.0, abs=0.1)


def test_gravity_gives_the_rate() -> None:
    figures = evidence.fps_evidence(_jump())
    assert figures.flight_frames > 10
    assert figures.acceleration == pytest.approx(-9.81, rel=1e-3)
    assert figures.gravity_fps == pytest.approx(FPS, rel=1e-3)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_c6_rate_that_is_wrong_by_a_factor_is_found(factor: float) -> None:
    figures = evidence.fps_evidence(replace(_jump(), fps=factor * FPS))
    assert figures.factor == pytest.approx(factor, rel=1e-3)
    assert figures.acceleration == pytest.approx(-9.81 * factor**2, rel=2e-3)


def test_rate_of_a_file_without_one_is_estimated_and_of_a_clip_without_flight_is_not() -> None:
    assert evidence.fps_evidence(replace(_jump(), fps=None)).gravity_fps == pytest.approx(FPS, rel=1e-3)
    assert evidence.fps_evidence(_clip()) == evidence.RateFigures(0, None, None, None)


@pytest.mark.parametrize(("unit", "scale"), [("m", 1.0), ("cm", 100.0), ("mm", 1000.0)])
def test_unit_is_told_by_the_bones_or_by_the_standing_feet(unit: str, scale: float) -> None:
    clip = _clip()
    moved = replace(clip, root_translation=scale * clip.root_translation)
    assert evidence.units(moved).best == unit
    assert evidence.units(replace(moved, skeleton=scale * body_offsets())).best == unit
    assert evidence.units(moved).leg_travel[unit] == pytest.approx(1.0, abs=0.1)


def test_bones_that_no_unit_makes_a_person_give_no_unit() -> None:
    assert evidence.units(_clip(skeleton=3.0 * body_offsets())).best is None
    with pytest.raises(InputFileError, match="length unit: the bones are no person's"):
        to_human_motion(_clip(skeleton=3.0 * body_offsets(), declared=Declared(up_axis="z")))


def test_body_that_shows_no_axis_leaves_the_formats_or_is_refused() -> None:
    """Lying askew: the declared axis is kept; without one the user is asked."""
    lying = _clip(Rotation.from_euler("xy", [45, 35], degrees=True).as_matrix())
    assert to_human_motion(lying).num_frames == made.FRAMES
    with pytest.raises(InputFileError, match=r"up axis: the body does not show it .* give it with --up-axis"):
        to_human_motion(replace(lying, declared=Declared(length_unit="m")))


def test_users_axis_goes_before_what_is_measured() -> None:
    clip = _clip(REST_TO_WORLD.T)
    np.testing.assert_array_equal(to_human_motion(clip, up_axis="z").root_translation, clip.root_translation)


def test_root_between_the_hips_is_moved_to_the_pelvis() -> None:
    clip = _clip()
    joints = made.expected_joints(made.sample())
    hips = joints[:, [INDEX["L_Hip"], INDEX["R_Hip"]]].mean(axis=1)
    motion = to_human_motion(replace(clip, root_translation=hips, root_point="hip_centre"))
    np.testing.assert_allclose(motion.root_translation, joints[:, 0], atol=1e-12)


def test_published_clips_are_upright_at_their_rate(shared_dir: Path) -> None:
    flights = 0
    for path in sorted((shared_dir / "data/asap/smpl").glob("*.npz")):
        (clip,) = read_any(path)
        assert isinstance(clip, HumanClip)
        up, camera, rate = evidence.up_axis(clip), evidence.camera_frame(clip), evidence.fps_evidence(clip)
        assert up.best == "z"
        assert up.scores["z"] > 0.98
        assert up.margin > 0.75
        assert not evidence.camera_frame_suspect(camera)
        if rate.factor is not None:
            flights += 1
            assert rate.factor == pytest.approx(1.0, abs=0.02)
    assert flights == 9


def test_lying_body_does_not_overrule_the_format() -> None:
    """Along x, as if x were up; and along y, 20° askew."""
    for turn in (REST_TO_WORLD, Rotation.from_euler("ZX", [20.0, -90.0], degrees=True).as_matrix()):
        clip = _clip(turn)
        assert evidence.up_axis(clip).best in ("x", "y")
        np.testing.assert_array_equal(to_human_motion(clip).root_translation, clip.root_translation)
