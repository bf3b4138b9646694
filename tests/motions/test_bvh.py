from __future__ import annotations

from pathlib import Path

import human_fixtures as made
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.motions.doctor.human_evidence import units
from asap_core.motions.formats import bvh
from asap_core.motions.formats.bvh_file import load_bvh
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.skeleton import JOINT_NAMES
from asap_core.rotations import Array

T_POSE = {name: np.eye(3) for name in JOINT_NAMES}

SMALL = """HIERARCHY
ROOT Hips
{
  OFFSET 9.0 9.0 9.0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Chest
  {
    OFFSET 0.0 10.0 0.0
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 0.0 5.0 0.0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.016683
1.0 2.0 3.0 90.0 0.0 0.0 0.0 0.0 0.0
1.0 2.0 3.0 90.0 30.0 10.0 20.0 40.0 60.0
"""


def _a_pose() -> dict[str, Array]:
    """Arms 45° down in the zero pose."""
    frames = dict(T_POSE)
    for side, sign in (("L", -1), ("R", 1)):
        turn = Rotation.from_rotvec([0.0, 0.0, np.pi / 4 * sign]).as_matrix()
        frames |= {f"{side}_{name}": turn.T for name in ("Shoulder", "Elbow", "Wrist")}
    return frames


def _mixamo() -> dict[str, str]:
    names = {joint: f"mixamorig:{name}" for joint, name in made.BVH_NAMES.items()}
    return names | {"L_Toe": "mixamorig:LeftToeBase", "R_Toe": "mixamorig:RightToeBase"}


def _cmu() -> dict[str, str]:
    spine = {"Torso": "LowerBack", "Spine": "Spine", "Chest": "Spine1"}
    return made.BVH_NAMES | spine | {"L_Toe": "LeftToeBase", "R_Toe": "RightToeBase"}


def _smpl() -> dict[str, str]:
    return {name: name for name in made.BVH_NAMES}


@pytest.mark.parametrize("names", [made.BVH_NAMES, _mixamo(), _cmu(), _smpl()], ids=["lafan", "mixamo", "cmu", "smpl"])
@pytest.mark.parametrize("frames", [made.lafan_frames(), T_POSE, _a_pose()], ids=["along_x", "t_pose", "a_pose"])
def test_joints_are_the_samples_whatever_the_names_and_the_zero_pose(
    names: dict[str, str], frames: dict[str, Array], tmp_path: Path
) -> None:
    sample = made.sample()
    made.write_bvh(tmp_path / "clip.bvh", sample, names=names, frames=frames)
    (clip,) = bvh.read(tmp_path / "clip.bvh")
    assert units(clip).best == "cm"
    motion = to_human_motion(clip)
    np.testing.assert_allclose(motion.joint_positions(), made.expected_joints(sample), atol=1e-6)
    lengths, wanted = (np.linalg.norm(record.skeleton, axis=1) for record in (motion, sample))
    np.testing.assert_allclose(lengths, wanted, atol=1e-6)


def test_zero_pose_near_the_t_pose_keeps_the_files_rotations_and_bones(tmp_path: Path) -> None:
    sample = made.sample()
    made.write_bvh(tmp_path / "clip.bvh", sample, frames=T_POSE)
    motion = to_human_motion(bvh.read(tmp_path / "clip.bvh")[0])
    np.testing.assert_allclose(motion.joint_rotations[:, :22], sample.joint_rotations[:, :22], atol=1e-6)
    np.testing.assert_allclose(motion.skeleton, sample.skeleton, atol=1e-8)


@pytest.mark.parametrize("order", ["ZXY", "XYZ", "YXZ", "YZX"])
def test_euler_angles_follow_the_order_of_the_channels(order: str, tmp_path: Path) -> None:
    sample = made.sample()
    made.write_bvh(tmp_path / "clip.bvh", sample, order=order)
    motion = to_human_motion(bvh.read(tmp_path / "clip.bvh")[0])
    np.testing.assert_allclose(motion.joint_positions(), made.expected_joints(sample), atol=1e-6)


def test_pose_of_a_small_file_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.bvh").write_text(SMALL)
    file = load_bvh(tmp_path / "a.bvh")
    turns, places = file.pose()
    np.testing.assert_allclose(places[0], [[1, 2, 3], [-9, 2, 3]], atol=1e-12)
    about_z, about_x, about_y = (Rotation.from_rotvec(np.radians(v)) for v in ([0, 0, 90], [30, 0, 0], [0, 10, 0]))
    expected = about_z * about_x * about_y
    np.testing.assert_allclose(turns[1, 0], expected.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(places[1, 1], np.array([1, 2, 3]) + expected.apply([0, 10, 0]), atol=1e-12)
    assert file.fps == pytest.approx(60 / 1.001)


@pytest.mark.parametrize(
    ("text", "fps"),
    [("0.033333", 30.0), ("0.0083333", 120.0), ("0.0166667", 60.0), ("0.04", 25.0), ("0.01234", 1 / 0.01234)],
)
def test_printed_frame_time_gives_the_rate_it_was_rounded_from(text: str, fps: float, tmp_path: Path) -> None:
    (tmp_path / "a.bvh").write_text(SMALL.replace("0.016683", text))
    assert load_bvh(tmp_path / "a.bvh").fps == pytest.approx(fps, rel=1e-9)


def test_frame_time_that_fits_two_rates_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.bvh").write_text(SMALL.replace("0.016683", "0.008"))
    file = load_bvh(tmp_path / "a.bvh")
    assert file.fps == 125.0
    assert "Frame Time 0.008 fits" in file.notes[0]


def test_joints_that_cannot_be_mapped_are_listed_with_those_expected(tmp_path: Path) -> None:
    names = made.BVH_NAMES | {"L_Knee": "Tibia_A", "R_Wrist": "Grip"}
    made.write_bvh(tmp_path / "clip.bvh", made.sample(), names=names)
    with pytest.raises(InputFileError) as caught:
        bvh.read(tmp_path / "clip.bvh")
    text = str(caught.value)
    assert "found Hips, " in text
    assert "Tibia_A" in text
    assert "none for L_Knee, R_Wrist" in text
    assert "L_Knee: leftleg, leftknee" in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Frames: 2", "Frames: 3", "found 18 numbers, expected 3 frames of 9"),
        ("Frames: 2", "Frames: two", "found 'two' frames"),
        ("Frame Time: 0.016683", "Frame Time: 0", "Frame Time: found 0 s"),
        ("OFFSET 0.0 10.0 0.0", "OFFSET 0.0 nan 0.0", "OFFSET of Chest: found '0.0 nan 0.0'"),
        ("OFFSET 0.0 10.0 0.0", "OFFSET 0.0 ten 0.0", "expected three numbers"),
        ("3 Yrotation", "3 Wrotation", "CHANNELS of Chest: found Wrotation"),
        ("CHANNELS 6", "CHANNELS 7", "found '7', expected at most 6"),
        ("End Site", "End Sight", "found 'Sight', expected Site"),
        ("  }\n}\nMOTION", "  }\nMOTION", "1 joints are not closed"),
        ("HIERARCHY", "HIERARCHIE", "expected HIERARCHY and then MOTION"),
        ("90.0 30.0", "90.0 x", "MOTION: could not convert"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in SMALL
    (tmp_path / "a.bvh").write_text(SMALL.replace(old, new))
    with pytest.raises(InputFileError, match=rf"a\.bvh: .*{words}"):
        load_bvh(tmp_path / "a.bvh")
