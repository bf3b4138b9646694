from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motion_fixtures import (
    SONIC_BODIES,
    XYZW,
    asap_content,
    holosoma_arrays,
    isaac_joints,
    robot_fixtures,
    swaying_motion,
    tracking_arrays,
)

from asap_core.errors import InputFileError, UnknownNameError
from asap_core.motions.derived import centres_of_mass, derive_motion
from asap_core.motions.formats import fields
from asap_core.motions.formats.clip import RobotClip
from asap_core.motions.formats.table import FORMATS, get_format, read_any, sniff
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import breadth_first
from asap_core.rotations import Array, rotate

MOTION = swaying_motion()
PROFILE = get_profile(MOTION.robot)
ISAAC = isaac_joints(MOTION.robot)
BODIES = [link.name for link in PROFILE.links]
AMBIGUOUS = {
    "lafan_csv": {"lafan_csv", "kimodo_csv"},
    "kimodo_csv": {"lafan_csv", "kimodo_csv"},
    "beyondmimic_npz": {"beyondmimic_npz", "mjlab_npz"},
    "mjlab_npz": {"beyondmimic_npz", "mjlab_npz"},
    "unitree_rl_lab_npz": {"beyondmimic_npz", "mjlab_npz"},
}
"""What the file alone leaves open: every format that is as sure as the best."""
STORED = {
    "asap_pkl": (30.0, "xyzw"),
    "lafan_csv": (30.0, "xyzw"),
    "kimodo_csv": (30.0, "wxyz"),
    "seed_csv": (120.0, "wxyz"),
    "gmr_pkl": (50.0, "xyzw"),
    "beyondmimic_npz": (50.0, "wxyz"),
    "beyondmimic_npz.xyzw": (50.0, "xyzw"),
    "protomotions_motion": (50.0, "xyzw"),
    "holomotion_npz": (50.0, "xyzw"),
    "holomotion_h5": (50.0, "xyzw"),
}
"""Rate and quaternion order in the file; 50 Hz and wxyz otherwise."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return robot_fixtures(tmp_path_factory.mktemp("robot"))


KEYS = (
    "asap_pkl", "asap_pkl.wxyz", "gmr_pkl", "mimickit_pkl", "lafan_csv", "kimodo_csv", "seed_csv", "beyondmimic_npz",
    "beyondmimic_npz.xyzw", "mjlab_npz", "unitree_rl_lab_npz", "holosoma_npz", "holosoma_npz.object", "amp_npz",
    "holomotion_npz", "protomotions_motion", "sonic_folder", "robot_parquet", "holomotion_h5",
)  # fmt: skip


def _clip(files: dict[str, Path], key: str) -> RobotClip:
    if key == "holomotion_h5":
        pytest.importorskip("h5py")
    (clip, *_) = get_format(key.split(".")[0]).read(files[key])
    assert isinstance(clip, RobotClip)
    return clip


def _motion_of(key: str) -> RobotMotion:
    if key == "asap_pkl":
        return swaying_motion("g1_23dof")
    rate = STORED.get(key, (50.0, ""))[0]
    return MOTION if rate == 50 else MOTION.resample(rate)


@pytest.mark.parametrize("key", KEYS)
def test_root_and_joints_come_as_the_file_has_them(files: dict[str, Path], key: str) -> None:
    clip, motion = _clip(files, key), _motion_of(key)
    if key == "holomotion_h5":
        half = motion.num_frames // 2
        motion = replace(
            motion,
            root_pos=motion.root_pos[:half],
            root_quat=motion.root_quat[:half],
            joint_pos=motion.joint_pos[:half],
        )
    seed = key == "seed_csv"
    isaac = key.startswith(("beyond", "unitree", "sonic"))
    wanted = motion.joint_pos[:, ISAAC] if isaac else motion.joint_pos
    quat = motion.root_quat[:, XYZW] if STORED.get(key, (0, ""))[1] == "xyzw" else motion.root_quat
    np.testing.assert_allclose(clip.joint_pos, np.rad2deg(wanted) if seed else wanted, atol=3e-7, rtol=0)
    np.testing.assert_allclose(clip.root_pos, motion.root_pos * (100 if seed else 1), atol=3e-7, rtol=0)
    sign = np.sign((clip.root_quat * quat).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(clip.root_quat * sign, quat, atol=3e-7, rtol=0)
    assert clip.format == key.split(".")[0]
    rateless = key in ("lafan_csv", "kimodo_csv")
    assert clip.fps == (None if rateless else 50.0 if key == "asap_pkl" else motion.fps)
    if clip.joint_names is not None:
        assert clip.joint_names == motion.joint_names


@pytest.mark.parametrize("key", KEYS)
def test_the_format_is_told_and_what_is_left_open_is_declared_open(files: dict[str, Path], key: str) -> None:
    if key not in files:
        pytest.skip("h5py absent")
    candidates, name = sniff(files[key]), key.split(".")[0]
    best = {candidate.format.id for candidate in candidates if candidate.confidence == candidates[0].confidence}
    assert best == AMBIGUOUS.get(name, {name})
    assert name in {candidate.format.id for candidate in candidates}
    assert read_any(files[key])[0].format in best
    declared = _clip(files, key).declared
    if name in AMBIGUOUS:
        assert declared.quat_order is None
    else:
        assert declared.quat_order == STORED.get(key, (0, "wxyz"))[1]
    assert (declared.length_unit, declared.angle_unit) == (("cm", "deg") if key == "seed_csv" else ("m", "rad"))
    if name.endswith(("mimic_npz", "mjlab_npz", "rl_lab_npz")):
        assert (declared.joint_order, declared.body_order, declared.velocity_point) == (None, None, None)


@pytest.mark.parametrize(
    ("key", "bodies", "at_com"),
    [
        ("beyondmimic_npz", breadth_first(PROFILE), True),
        ("mjlab_npz", BODIES, False),
        ("holosoma_npz", ["world", *BODIES], False),
        ("amp_npz", PROFILE.link_names, False),
        ("protomotions_motion", BODIES, False),
        ("holomotion_npz", BODIES, False),
        ("sonic_folder", [breadth_first(PROFILE)[i] for i in SONIC_BODIES], False),
    ],
)
def test_bodies_and_velocities_come_as_the_file_has_them(
    files: dict[str, Path], key: str, bodies: list[str], at_com: bool
) -> None:
    clip, derived = _clip(files, key), derive_motion(MOTION, PROFILE)
    start = 1 if bodies[0] == "world" else 0
    rows = PROFILE.link_indices(bodies[start:])
    assert clip.body_pos is not None
    assert clip.body_quat is not None
    assert clip.joint_vel is not None
    assert clip.body_lin_vel is not None
    assert clip.body_ang_vel is not None
    lin_vel = derived.com_lin_vel if at_com else derived.links.lin_vel
    quat = derived.links.quat[:, rows]
    for found, wanted in (
        (clip.body_pos, derived.links.pos[:, rows]),
        (clip.body_quat, quat[..., XYZW] if clip.declared.quat_order == "xyzw" else quat),
        (clip.body_lin_vel, lin_vel[:, rows]),
        (clip.body_ang_vel, derived.links.ang_vel[:, rows]),
    ):
        np.testing.assert_allclose(found[:, start:], wanted, atol=1e-6)
    joints = ISAAC if key in ("beyondmimic_npz", "sonic_folder") else slice(None)
    np.testing.assert_allclose(clip.joint_vel, derived.joint_vel[:, joints], atol=1e-6)
    if clip.body_names is not None:
        assert list(clip.body_names) == list(bodies)


WRITERS = [key for key, form in FORMATS.items() if form.write is not None and form.kind == "robot"]


def test_the_promised_formats_are_written() -> None:
    promised = {"asap_pkl", "lafan_csv", "beyondmimic_npz", "mjlab_npz", "gmr_pkl", "amp_npz"}
    assert promised <= set(WRITERS)


@pytest.mark.parametrize("robot", ["g1_23dof", "g1_29dof"])
@pytest.mark.parametrize("key", WRITERS)
def test_round_trip_is_exact_to_float32_and_bytes_repeat(tmp_path: Path, key: str, robot: str) -> None:
    motion, profile = swaying_motion(robot, fps=33.3), get_profile(robot)
    form = get_format(key)
    assert form.write is not None
    first, second = tmp_path / f"a{form.suffixes[0]}", tmp_path / f"b{form.suffixes[0]}"
    form.write(first, motion, profile)
    form.write(second, motion, profile)
    assert first.read_bytes() == second.read_bytes()
    assert key in {candidate.format.id for candidate in sniff(first)[:2]}
    (clip,) = form.read(first)
    assert isinstance(clip, RobotClip)
    joints = isaac_joints(robot) if key == "beyondmimic_npz" else slice(None)
    quat = motion.root_quat[:, XYZW] if key in ("asap_pkl", "gmr_pkl", "lafan_csv") else motion.root_quat
    assert _same32(clip.joint_pos, motion.joint_pos[:, joints])
    assert _same32(clip.root_pos, motion.root_pos)
    assert _same32(clip.root_quat, quat)
    assert clip.fps == (None if key == "lafan_csv" else 33.3)


def _same32(found: Array, wanted: Array) -> bool:
    return bool((found.astype(np.float32) == wanted.astype(np.float32)).all())


@pytest.mark.parametrize("key", [key for key in WRITERS if key != "robot_parquet"])
def test_a_motion_of_another_robot_is_refused_by_its_joints(tmp_path: Path, key: str) -> None:
    write = get_format(key).write
    assert write is not None
    with pytest.raises(InputFileError, match=r"joints: missing left_wrist_roll_joint, .*; left over none"):
        write(tmp_path / "a", swaying_motion("g1_23dof"), PROFILE)
    assert not list(tmp_path.iterdir())


def test_asap_file_is_read_by_joblib_and_its_rotation_vectors_are_those_of_its_joints(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    write = get_format("asap_pkl").write
    assert write is not None
    motion = swaying_motion("g1_23dof", fps=30)
    write(tmp_path / "a.pkl", motion, get_profile("g1_23dof"))
    content = joblib.load(tmp_path / "a.pkl")["sway"]
    wanted = asap_content(motion)
    assert content["fps"] == 30
    assert isinstance(content["fps"], int)
    assert content["pose_aa"].shape == (motion.num_frames, 27, 3)
    np.testing.assert_allclose(content["pose_aa"], wanted["pose_aa"], atol=1e-7)


def test_asap_axes_are_the_robots(files: dict[str, Path]) -> None:
    axes = {link.joint: link.axis for link in PROFILE.links}
    clip = _clip(files, "asap_pkl.wxyz")
    assert clip.joint_axes is not None
    np.testing.assert_allclose(clip.joint_axes, [axes[name] for name in PROFILE.joint_names], atol=1e-5)
    assert "as xyzw, by" in clip.notes[0]


def test_centres_of_mass_carry_what_is_welded_on() -> None:
    profile = get_profile("g1_23dof")
    kinematics = Kinematics(PROFILE)
    poses = kinematics.forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), np.zeros((1, 29)))
    elbow = PROFILE.link_index("left_elbow_link")
    arm = [link for link in PROFILE.links if link.name.startswith(("left_elbow", "left_wrist"))]
    rows = PROFILE.link_indices(link.name for link in arm)
    place = poses.pos[0, rows] + rotate(poses.quat[0, rows], np.array([link.com for link in arm]))
    mass = np.array([link.mass for link in arm])
    seen = np.einsum("ij,i->j", poses.rot[0, elbow], mass @ (place - poses.pos[0, elbow]) / mass.sum())
    found = centres_of_mass(profile)[profile.link_index("left_elbow_link")]
    np.testing.assert_allclose(found, seen, atol=1e-9)


def test_stored_velocities_are_the_derivatives_of_stored_places() -> None:
    motion = swaying_motion(fps=400)
    derived = derive_motion(motion, PROFILE)
    com = derived.links.pos + rotate(derived.links.quat, centres_of_mass(PROFILE))
    inside = slice(2, -2)
    for place, speed in ((derived.links.pos, derived.links.lin_vel), (com, derived.com_lin_vel)):
        np.testing.assert_allclose(np.gradient(place, 1 / 400, axis=0)[inside], speed[inside], atol=2e-4)


def _save(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


def test_c10_scene_without_an_object_keeps_its_last_seven_joints(tmp_path: Path) -> None:
    arrays = holosoma_arrays(MOTION, derive_motion(MOTION, PROFILE), with_object=False)
    for left_out in ((), ("joint_names",)):
        kept = {key: values for key, values in arrays.items() if key not in left_out}
        (clip,) = get_format("holosoma_npz").read(_save(tmp_path / "a.npz", kept))
        assert isinstance(clip, RobotClip)
        np.testing.assert_allclose(clip.joint_pos[:, -7:], MOTION.joint_pos[:, -7:], atol=1e-6)
        assert not clip.notes


def test_c10_object_is_left_out_with_a_note_and_nothing_of_it_is_made_a_joint(tmp_path: Path) -> None:
    arrays = holosoma_arrays(MOTION, derive_motion(MOTION, PROFILE), with_object=True)
    for left_out in ((), ("joint_names",)):
        kept = {key: values for key, values in arrays.items() if key not in left_out}
        (clip,) = get_format("holosoma_npz").read(_save(tmp_path / "a.npz", kept))
        assert isinstance(clip, RobotClip)
        assert clip.joint_vel is not None
        assert clip.joint_pos.shape == clip.joint_vel.shape == (MOTION.num_frames, 29)
        assert "free object of 7 columns" in clip.notes[0]
    path = _save(tmp_path / "a.npz", arrays | {"joint_names": arrays["joint_names"][:-1]})
    with pytest.raises(InputFileError, match=r"joint_pos: found 43 columns, expected 7 of the root, 28 joints"):
        get_format("holosoma_npz").read(path)


def test_holosoma_state_alone_is_read(tmp_path: Path) -> None:
    qpos = np.hstack([MOTION.root_pos, MOTION.root_quat, MOTION.joint_pos])
    (clip,) = get_format("holosoma_npz").read(_save(tmp_path / "a.npz", {"qpos": qpos}))
    assert isinstance(clip, RobotClip)
    np.testing.assert_array_equal(clip.joint_pos, MOTION.joint_pos)
    assert clip.fps is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": np.zeros((9, 23))}, r"a.pkl: k: action: found shape \(9, 23\), expected \(101, 23\)"),
        ({"action": np.zeros((101, 19))}, r"k: action: found shape \(101, 19\), expected \(101, 23\)"),
        ({"action": "none"}, "k: action: found str, expected numbers"),
        ({"contact_mask": np.zeros((101, 4))}, r"k: contact_mask: found shape \(101, 4\)"),
        ({"pose_aa": np.zeros((7, 27, 3))}, r"k: pose_aa: found shape \(7, 27, 3\), expected \(101, T, 3\)"),
    ],
)
def test_c19_wrong_action_is_named_with_file_clip_and_field(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    content = asap_content(swaying_motion("g1_23dof")) | change
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"k": content}))
    with pytest.raises(InputFileError, match=words):
        get_format("asap_pkl").read(tmp_path / "a.pkl")


def test_c19_an_action_in_one_clip_says_nothing_of_the_next(tmp_path: Path) -> None:
    content = asap_content(swaying_motion("g1_23dof"))
    action = np.random.default_rng(0).normal(size=(101, 23))
    mask = np.ones((101, 2), dtype=bool)
    clips = {"with": content | {"action": action, "contact_mask": mask}, "/data/x/without": content}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(clips))
    first, second = get_format("asap_pkl").read(tmp_path / "a.pkl")
    assert isinstance(first, RobotClip)
    assert isinstance(second, RobotClip)
    assert first.action is not None
    assert first.contact_mask is not None
    np.testing.assert_array_equal(first.action, action)
    assert first.contact_mask.sum() == 202
    assert (second.action, second.contact_mask, second.name) == (None, None, "without")


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("mjlab_npz", {"joint_pos": None}, "joint_pos: missing; found fps"),
        ("mjlab_npz", {"joint_vel": np.zeros((5, 29))}, r"joint_vel: found shape \(5, 29\), expected \(101, 29\)"),
        ("mjlab_npz", {"body_quat_w": np.zeros((101, 3, 4))}, r"body_quat_w: found shape \(101, 3, 4\)"),
        ("mjlab_npz", {"fps": np.array([0.0])}, "fps: found 0.0, expected frames per second"),
        ("mjlab_npz", {"fps": np.array([1.0, 2.0])}, r"fps: found shape \(2,\), expected one number"),
        ("mjlab_npz", {"joint_pos": np.full((101, 29), np.nan)}, "joint_pos: found 2929 NaN"),
        ("mjlab_npz", {"body_pos_w": np.zeros((101, 0, 3))}, "body_quat_w: found shape"),
        ("mjlab_npz", {"body_pos_w": np.array(["a"])}, "body_pos_w: found type <U1, expected numbers"),
        ("mjlab_npz", {"joint_names": np.array(["a"] * 29)}, "joint_names: found a more than once"),
        ("mjlab_npz", {"joint_names": np.array(["a"])}, "joint_names: found 1 names, expected 29"),
    ],
)
def test_faults_of_npz_files_are_named(tmp_path: Path, key: str, change: dict[str, Any], words: str) -> None:
    arrays = tracking_arrays(MOTION, derive_motion(MOTION, PROFILE), isaac=False) | change
    path = _save(tmp_path / "a.npz", {name: values for name, values in arrays.items() if values is not None})
    with pytest.raises(InputFileError, match=f"a.npz: {words}"):
        get_format(key).read(path)


def _edit(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("key", "edit", "words"),
    [
        ("lafan_csv", lambda text: text + "1,2,3\n", "not a table of numbers"),
        ("lafan_csv", lambda text: text.replace(",", ";"), "not a table of numbers"),
        ("lafan_csv", lambda text: "1,2,3\n1,2,3\n", r"columns: found 3, expected 7 of the root"),
        ("lafan_csv", lambda text: text.split("\n")[0], "frames: found 1 of 29 joints"),
        ("lafan_csv", lambda text: "nan" + text[text.index(",") :], "root_pos: found 1 NaN"),
        ("lafan_csv", lambda text: "", "found no numbers"),
        ("seed_csv", _edit("root_translateX", "x"), "columns: missing root_translateX; found Frame, x"),
        ("seed_csv", _edit("\n3.0", "\n8.0"), "Frame: found 8 after 2, expected every frame"),
        ("seed_csv", _edit("Frame,", ""), "columns: found 36, expected 35 as in the header|not a table"),
    ],
)
def test_faults_of_csv_files_are_named(
    files: dict[str, Path], tmp_path: Path, key: str, edit: Callable[[str], str], words: str
) -> None:
    (tmp_path / "a.csv").write_text(edit(files[key].read_text()))
    with pytest.raises(InputFileError, match=words):
        get_format(key).read(tmp_path / "a.csv")


def test_faults_of_a_sonic_folder_name_the_file(files: dict[str, Path], tmp_path: Path) -> None:
    def copy(name: str, text: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for item in files["sonic_folder"].iterdir():
            (folder / item.name).write_text(item.read_text())
        if text:
            (folder / name).write_text(text)
        else:
            (folder / name).unlink()
        return folder

    for name, text, words in (
        ("joint_pos.csv", "", "joint_pos.csv: missing"),
        ("body_quat.csv", "a,b,c\n1,2,3\n", r"body_quat.csv: columns: found 3, expected 4 for each body"),
        ("metadata.txt", "Body part indexes:\n[0 4]\n", r"metadata.txt: Body part indexes: found 2 up to 4"),
    ):
        with pytest.raises(InputFileError, match=words):
            get_format("sonic_folder").read(copy(name, text))


def test_sizes_are_bounded_before_memory_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MAX_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "a.npz", qpos=np.zeros((1000, 36)))
    with pytest.raises(InputFileError, match=r"a.npz: size: found 288\d\d\d bytes, expected at most 65536"):
        get_format("holosoma_npz").read(tmp_path / "a.npz")
    laughs: list[Any] = [0.0] * 1000
    for _ in range(3):
        laughs = [laughs] * 1000
    with pytest.raises(InputFileError, match="frames: found a list of more than"):
        fields.numbers(tmp_path, "frames", laughs)


def test_npz_without_velocities_is_read_without(tmp_path: Path) -> None:
    arrays = tracking_arrays(MOTION, derive_motion(MOTION, PROFILE), isaac=False)
    path = _save(tmp_path / "a.npz", {key: arrays[key] for key in ("joint_pos", "body_pos_w", "body_quat_w")})
    (clip,) = get_format("mjlab_npz").read(path)
    assert isinstance(clip, RobotClip)
    assert (clip.fps, clip.joint_vel, clip.body_lin_vel, clip.body_ang_vel) == (None, None, None, None)


def test_h5_without_h5py_says_what_to_install(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputFileError, match=r"needs h5py: pip install 'asap\[robot\]'"):
        get_format("holomotion_h5").read(files.get("holomotion_h5", tmp_path / "a.h5"))


def test_unknown_files_and_formats_are_refused_with_the_valid_answers(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing to see")
    assert sniff(tmp_path / "notes.txt") == []
    with pytest.raises(InputFileError, match=r"found no known motion format, expected one of asap_pkl, gmr_pkl"):
        read_any(tmp_path / "notes.txt")
    with pytest.raises(InputFileError, match="gone: missing"):
        read_any(tmp_path / "gone")
    with pytest.raises(UnknownNameError, match=r"unknown motion format 'gmr_pk'; valid: .* Did you mean 'gmr_pkl'"):
        get_format("gmr_pk")


def test_published_motions_are_told_with_orders_and_rate(shared_dir: Path) -> None:
    paths = sorted((shared_dir / "data/asap/g1").glob("*.pkl"))
    assert len(paths) == 39
    axes = {link.joint: link.axis for link in get_profile("g1_23dof").links}
    wanted = np.array([axes[name] for name in get_profile("g1_23dof").joint_names], dtype=float)
    for path in paths:
        assert sniff(path)[0].format.id == "asap_pkl"
        (clip,) = read_any(path)
        assert isinstance(clip, RobotClip)
        assert (clip.fps, clip.declared.quat_order, clip.declared.joint_order) == (30.0, "xyzw", "asap23")
        assert clip.notes == ()
        assert clip.joint_axes is not None
        moved = np.abs(clip.joint_axes).sum(axis=1) > 0
        np.testing.assert_allclose(clip.joint_axes[moved], wanted[moved], atol=1e-3)
