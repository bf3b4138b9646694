"""The lift gives back what was acted; what it had to guess it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.motions.human import HumanMotion
from asap_core.motions.skeleton import INDEX
from asap_core.reconstruction import lift as lift_module
from asap_core.reconstruction import residuals, sequence
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.lift import lift
from asap_core.reconstruction.sides import exchanged, with_sides
from tests.reconstruction.acted import CAMERA, act, walk_on_the_spot

ALL = Known(CAMERA.focal, CAMERA.pitch, CAMERA.height, 1.70, 0.0)
LIMBS = [INDEX[f"{side}_{joint}"] for side in "LR" for joint in ("Hip", "Knee", "Ankle", "Shoulder", "Elbow", "Wrist")]


@pytest.fixture(scope="module")
def scene():  # type: ignore[no-untyped-def]
    return act(walk_on_the_spot())


def error_mm(motion: HumanMotion, joints: np.ndarray) -> np.ndarray:
    return 1e3 * np.linalg.norm(motion.joint_positions() - joints, axis=-1)[:, LIMBS]


def test_exact_landmarks_give_the_motion_within_the_priors(scene) -> None:  # type: ignore[no-untyped-def]
    error = error_mm(lift(scene.track, ALL).motion, scene.joints)
    assert error.mean() < 15.0
    assert error.max() < 50.0


def test_without_priors_exact_landmarks_give_it_to_the_millimetre(  # type: ignore[no-untyped-def]
    scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residuals, "_ACCELERATION", 30.0 * residuals._ACCELERATION)
    for name in ("_BALL_SPREAD", "_HINGE_SPREAD"):
        monkeypatch.setattr(residuals, name, 30.0 * getattr(residuals, name))
    for name in ("_HOLD", "_STAND", "_SUNK"):
        monkeypatch.setattr(residuals, name, 100.0 * getattr(residuals, name))
    monkeypatch.setattr(lift_module, "_LANDMARK", 1e-3)
    error = error_mm(lift(scene.track, ALL).motion, scene.joints)
    assert error.mean() < 1.0
    assert np.percentile(error, 99) < 5.0


def test_a_clip_longer_than_a_window_is_solved_in_windows_alike(  # type: ignore[no-untyped-def]
    scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lift(scene.track, ALL).motion.joint_positions()
    monkeypatch.setattr(sequence, "_WINDOW", 1.2)
    monkeypatch.setattr(sequence, "_OVERLAP", 0.4)
    monkeypatch.setattr(lift_module, "_SCENE", 1.5)
    parts = lift(scene.track, ALL).motion.joint_positions()
    assert 1e3 * np.linalg.norm(parts - whole, axis=-1).max() < 30.0
    jerk = np.linalg.norm(np.diff(parts[:, 0], 3, axis=0), axis=-1)
    assert jerk.max() < 4 * np.linalg.norm(np.diff(whole[:, 0], 3, axis=0), axis=-1).max()


def test_standing_soles_are_found(scene) -> None:  # type: ignore[no-untyped-def]
    found = lift(scene.track, ALL).contacts
    still = np.zeros_like(found)
    still[1:-1] = scene.contacts[2:] & scene.contacts[:-2] & scene.contacts[1:-1]
    assert found[still].mean() > 0.95
    high = ~scene.contacts & ~np.roll(scene.contacts, 3, axis=0) & ~np.roll(scene.contacts, -3, axis=0)
    assert found[high].mean() < 0.1


def test_standing_feet_are_on_the_ground_and_stay(scene) -> None:  # type: ignore[no-untyped-def]
    result = lift(scene.track, Known())
    ankles = result.motion.joint_positions()[:, [INDEX["L_Ankle"], INDEX["R_Ankle"]]]
    standing = result.contacts[:, [0, 2]]
    assert np.abs(ankles[standing][:, 2] - 0.072).max() < 0.03
    both = standing[1:] & standing[:-1]
    assert np.linalg.norm(np.diff(ankles, axis=0)[both], axis=-1).mean() < 0.004


def test_what_was_given_is_kept_and_what_was_not_is_estimated_or_assumed(scene) -> None:  # type: ignore[no-untyped-def]
    found = lift(scene.track, ALL).estimates
    assert {name: estimate.origin for name, estimate in found.items()} == dict.fromkeys(found, "given")
    given = {"focal": 700.0, "pitch": 0.12, "roll": 0.0, "camera_height": 1.3, "person_height": 1.70}
    for name, value in given.items():
        assert found[name].value == pytest.approx(value, abs=2e-3 * max(1.0, value))
    nothing = lift(scene.track, Known()).estimates
    assert nothing["person_height"].origin == "assumed"
    assert nothing["person_height"].value == pytest.approx(1.70)
    assert {nothing[name].origin for name in ("focal", "pitch", "roll", "camera_height")} == {"estimated"}
    assert lift(replace(scene.track, focal=700.0), Known()).estimates["focal"].origin == "metadata"


def test_the_persons_height_follows_from_the_cameras(scene) -> None:  # type: ignore[no-untyped-def]
    known = Known(CAMERA.focal, CAMERA.pitch, 1.2 * CAMERA.height)
    height = lift(scene.track, known).estimates["person_height"]
    assert height.origin == "estimated"
    assert 1.80 < height.value < 2.08  # everything is 1.2 times as large; the prior holds back


def test_a_gap_is_bridged_and_marked(scene) -> None:  # type: ignore[no-untyped-def]
    gone = slice(40, 50)
    track = replace(
        scene.track,
        pixels=scene.track.pixels.copy(),
        metric=scene.track.metric.copy(),
        confidence=scene.track.confidence.copy(),
        found=scene.track.found.copy(),
    )
    track.pixels[gone], track.metric[gone], track.confidence[gone], track.found[gone] = np.nan, np.nan, 0.0, False
    result = lift(track, ALL)
    np.testing.assert_array_equal(np.flatnonzero(result.bridged), np.arange(40, 50))
    assert (result.confidence[gone] == 0).all()
    assert (result.confidence[50:, LIMBS] > 0.9).all()
    assert error_mm(result.motion, scene.joints)[gone].mean() < 60.0
    whole = error_mm(lift(scene.track, ALL).motion, scene.joints)
    assert error_mm(result.motion, scene.joints)[55:].mean() < whole[55:].mean() + 2.0


def test_exchanged_sides_are_mended(scene) -> None:  # type: ignore[no-untyped-def]
    wrong = np.zeros(len(scene.track.times), dtype=bool)
    wrong[30:45] = True
    track = with_sides(scene.track, wrong)
    np.testing.assert_array_equal(exchanged(track), wrong)
    assert not exchanged(scene.track).any()
    right = error_mm(lift(scene.track, ALL).motion, scene.joints).mean()
    assert error_mm(lift(track, ALL).motion, scene.joints).mean() < right + 3.0


def test_the_motion_carries_rate_confidence_and_a_whole_record(scene, tmp_path) -> None:  # type: ignore[no-untyped-def]
    result = lift(scene.track, ALL, "clip")
    result.motion.save(tmp_path / "a.parquet")
    back = HumanMotion.load(tmp_path / "a.parquet")
    assert (back.name, back.fps) == ("clip", pytest.approx(30.0))
    np.testing.assert_array_equal(back.confidence, result.confidence)


def test_one_seen_frame_is_refused(scene) -> None:  # type: ignore[no-untyped-def]
    seen = np.zeros(len(scene.track.times), dtype=bool)
    seen[3] = True
    with pytest.raises(StageError, match="seen in 1 frames, expected at least 2"):
        lift(replace(scene.track, found=seen), Known())


def test_two_frames_are_enough(scene) -> None:  # type: ignore[no-untyped-def]
    track = scene.track
    parts = {name: getattr(track, name)[:2] for name in ("times", "pixels", "metric", "confidence", "found")}
    assert error_mm(lift(replace(track, **parts), ALL).motion, scene.joints[:2]).mean() < 60.0


def test_a_long_clip_that_begins_without_the_person(  # type: ignore[no-untyped-def]
    scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lift_module, "_SCENE", 1.0)
    found = scene.track.found.copy()
    found[:35] = False
    result = lift(replace(scene.track, found=found), ALL)
    np.testing.assert_array_equal(result.bridged, ~found)
    assert error_mm(result.motion, scene.joints)[40:].mean() < 20.0
