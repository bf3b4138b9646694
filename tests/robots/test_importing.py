"""A foreign humanoid becomes a profile: its frames and limits, fitted soles and shapes, mended inertias."""

from __future__ import annotations

import json
import re
from pathlib import Path

import humanoid_urdf as humanoid
import numpy as np
import pytest
from typer.testing import CliRunner

from asap_core.errors import ConfigError, InputFileError
from asap_core.robots import get_profile
from asap_core.robots.importing.importer import import_model
from asap_core.robots.importing.inertias import inertia_problem
from asap_core.robots.importing.meshes import fit_shape, sole_points
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile_file import read_profile, write_profile
from flows.cli import app


def _import(folder: Path, **replaced: str):
    return import_model(humanoid.write_humanoid(folder, **replaced), "small")


def test_frames_masses_limits_and_roles_are_the_files(tmp_path: Path) -> None:
    profile, report = _import(tmp_path)
    assert profile.num_joints == 15
    assert sum(link.mass for link in profile.links) == pytest.approx(5 + 8 + 2 * (0.8 + 3 + 2 + 0.8 + 0.5 + 1 + 0.8))
    knee = profile.joint_index("l_knee")
    assert (profile.joint_lower[knee], profile.joint_upper[knee]) == (0.0, 2.2)
    assert (profile.joint_torque_limit[knee], profile.joint_velocity_limit[knee]) == (100.0, 15.0)
    assert report.roles["left_hip"] == "l_hip"
    assert report.roles["right_shoulder"] == "r_shoulder"
    assert report.roles["left_hand"] == "left_hand_link"
    assert profile.torso_link == "chest"
    assert dict(profile.paper_correspondences)["r_foot"] == "R_Ankle"


def test_forward_kinematics_by_hand(tmp_path: Path) -> None:
    profile, _ = _import(tmp_path)
    angles = np.zeros((1, profile.num_joints))
    angles[0, profile.joint_index("l_knee")] = np.pi / 2
    poses = Kinematics(profile).forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), angles)
    left, right = (poses.pos[0, profile.link_index(f"{side}_foot")] for side in "lr")
    down = humanoid.HIP_DROP + humanoid.THIGH
    np.testing.assert_allclose(right, [0, -humanoid.HIP_SIDE, -down - humanoid.SHANK], atol=1e-12)
    np.testing.assert_allclose(left, [-humanoid.SHANK, humanoid.HIP_SIDE, -down], atol=1e-12)


def test_soles_are_the_corners_of_the_feet(tmp_path: Path) -> None:
    profile, _ = _import(tmp_path)
    x, y = humanoid.FOOT[0] / 2, humanoid.FOOT[1] / 2
    z = -humanoid.ANKLE_TO_SOLE
    expected = [(0.03 - x, y, z), (0.03 - x, -y, z), (0.03 + x, y, z), (0.03 + x, -y, z)]
    np.testing.assert_allclose(profile.sole_points[0], expected, atol=1e-6)


def test_knees_bend_their_own_way_and_feet_stay_level(tmp_path: Path) -> None:
    profile, _ = _import(tmp_path)
    pose = dict(zip(profile.joint_names, profile.default_joint_pos, strict=True))
    assert pose["l_knee"] == pytest.approx(0.3)
    assert pose["l_hip_pitch"] + pose["l_knee"] + pose["l_ankle"] == pytest.approx(0.0)


def test_imported_robot_stands_and_is_retargeted_to(tmp_path: Path) -> None:
    from asap_core.motions.formats.amass import read_amass
    from asap_core.retargeting.retarget import retarget, retarget_figures
    from asap_core.retargeting.settings import RetargetSettings
    from asap_core.robots.physics import PhysicsSettings
    from asap_core.simulators.mujoco import MujocoSimulator
    from asap_core.simulators.protocol import RobotState

    profile, _ = _import(tmp_path)
    simulator = MujocoSimulator(profile, PhysicsSettings(), 1, threads=1)
    pose = profile.default_joint_pos[None]
    level = np.array([[1.0, 0, 0, 0]])
    poses = Kinematics(profile).forward(np.zeros((1, 3)), level, pose)
    foot = profile.foot_index[0]
    height = -(poses.pos[0, foot] + poses.rot[0, foot] @ profile.sole_points[0, 0])[2]
    still, root = np.zeros((1, 3)), np.array([[0.0, 0.0, height]])
    start = RobotState(root, level, still, still, pose.copy(), np.zeros_like(pose))
    simulator.set_state(np.array([0]), start)
    for _ in range(50):
        simulator.step(pose)
    assert simulator.state.root_pos[0, 2] > 0.9 * height
    clip = Path(__file__).resolve().parents[2] / "data" / "human" / "squat.npz"
    human, settings = read_amass(clip), RetargetSettings()
    motion = retarget(human, profile, settings)
    figures = retarget_figures(human, motion, profile, settings)
    assert motion.joint_names == profile.joint_names
    assert figures["limit_violations"] == 0
    assert figures["link_error_mm"] < 15


def test_impossible_inertia_is_replaced_and_said(tmp_path: Path) -> None:
    profile, report = _import(tmp_path, thigh_inertia='<inertia ixx="0.02" iyy="0.02" izz="0.05"/>')
    thigh = next(link for link in profile.links if link.name == "l_thigh")
    assert inertia_problem(np.diag(thigh.inertia)) is None
    assert any("l_thigh" in text and "above the sum" in text for text in report.changes)
    assert not any("r_thigh" in text and "above the sum" in text for text in report.changes)


@pytest.mark.parametrize(
    ("moments", "word"),
    [((1, 1, 1), None), ((1, 1, 2), None), ((1, 1, 2.1), "sum"), ((-1, 1, 1), "principal")],
)
def test_inertia_of_a_rigid_body(moments: tuple[float, ...], word: str | None) -> None:
    problem = inertia_problem(np.diag(moments).astype(float))
    assert problem is None if word is None else word in (problem or "")


def test_missing_role_names_the_option(tmp_path: Path) -> None:
    path = humanoid.write_humanoid(tmp_path)
    path.write_text(path.read_text().replace("l_shank", "l_bone").replace("l_knee", "l_joint"))
    with pytest.raises(InputFileError, match=r"left_knee; give --role left_knee=LINK; links: .*l_bone"):
        import_model(path, "small")
    profile, _ = import_model(path, "small", {"left_knee": "l_bone"})
    assert ("l_bone", "L_Knee") in profile.correspondences


def test_slide_joint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="l_knee: found type prismatic, expected one of fixed, revolute"):
        _import(tmp_path, knee_type='<joint name="l_knee" type="prismatic">')


def test_missing_mesh_is_said(tmp_path: Path) -> None:
    profile, report = _import(tmp_path, shank_mesh="package://humanoid/meshes/gone.stl")
    assert any("gone.stl" in text for text in report.changes)
    assert not any(shape.link == "l_shank" for shape in profile.shapes)
    assert any(shape.link == "r_shank" for shape in profile.shapes)


@pytest.mark.parametrize("text", ["", "<robot/>", "<a", '<robot><link name="a"/><link name="b"/></robot>', "\x00\x01"])
def test_no_robot_is_a_message(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    with pytest.raises(InputFileError):
        import_model(path, "bad")


def test_fitted_shapes_are_the_smallest_that_hold_the_points() -> None:
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(500, 3))
    ball *= 0.2 / np.linalg.norm(ball, axis=1, keepdims=True)
    sphere = fit_shape("a", ball)
    assert sphere is not None
    assert sphere.kind == "sphere"
    assert sphere.size[0] == pytest.approx(0.2, rel=0.05)
    rod = ball * 0.25 + np.array([0.3, 0.3, 0.0]) * rng.choice([-1.0, 1.0], size=(500, 1))
    capsule = fit_shape("a", rod)
    assert capsule is not None
    assert capsule.kind == "capsule"
    assert capsule.size[0] == pytest.approx(0.05, rel=0.1)
    corners = np.stack(np.meshgrid([0, 1.0], [0, 0.5], [0, 0.2]), axis=-1).reshape(-1, 3)
    box = fit_shape("a", corners)
    assert box is not None
    assert (box.kind, box.pos, box.size) == ("box", (0.5, 0.25, 0.1), (0.5, 0.25, 0.1))
    assert fit_shape("a", corners[:3]) is None


def test_sole_is_found_under_a_heel_that_is_higher() -> None:
    points = np.array([[0.1, 0.03, -0.05], [0.1, -0.03, -0.05], [-0.1, 0.02, -0.05], [-0.1, -0.02, -0.05], [0, 0, 0.1]])
    corners = sole_points(points, np.array([0.0, 0, -1]), np.array([1.0, 0, 0]))
    np.testing.assert_allclose(corners, points[[2, 3, 0, 1]])


def test_profile_file_round_trip_is_exact(tmp_path: Path) -> None:
    import dataclasses

    for profile in (get_profile("g1_23dof"), _import(tmp_path)[0]):
        path = tmp_path / "profile.json"
        write_profile(path, profile, ["a note"])
        back = read_profile(path)
        for field in dataclasses.fields(profile):
            first, second = getattr(profile, field.name), getattr(back, field.name)
            if isinstance(first, np.ndarray):
                np.testing.assert_array_equal(first, second)
            else:
                assert first == second, field.name


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kp", [1.0], "kp has shape"),
        ("torso_link", "gone", "gone"),
        ("kp", ["a"] * 23, "expected numbers"),
        ("links", [{"name": "a"}], "links"),
    ],
)
def test_edited_profile_file_is_checked(tmp_path: Path, field: str, value: object, message: str) -> None:
    import json

    path = tmp_path / "profile.json"
    write_profile(path, get_profile("g1_23dof"), [])
    content = json.loads(path.read_text())
    content[field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(Exception, match=message) as error:
        get_profile(str(path))
    assert type(error.value).__name__ in ("InputFileError", "UnknownNameError")


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_the_published_g1_gives_our_own_profile(shared_dir: Path, suffix: str) -> None:
    path = shared_dir / "data" / "asap" / "robot" / f"g1_29dof_anneal_23dof.{suffix}"
    imported, _ = import_model(path, "g1")
    ours = get_profile("g1_23dof")
    assert imported.joint_names == ours.joint_names
    np.testing.assert_allclose(imported.joint_lower, ours.joint_lower, atol=1e-6)
    np.testing.assert_allclose(imported.joint_upper, ours.joint_upper, atol=1e-6)
    angles = np.random.default_rng(1).uniform(ours.joint_lower, ours.joint_upper, (20, ours.num_joints))
    root, level = np.zeros((20, 3)), np.tile([1.0, 0, 0, 0], (20, 1))
    places = [Kinematics(p).forward(root, level, angles).pos[:, : len(ours.links)] for p in (imported, ours)]
    np.testing.assert_allclose(places[0], places[1], atol=2e-6)


def test_torque_limits_that_a_file_lacks_go_by_weight_and_part(tmp_path: Path) -> None:
    model = humanoid.write_humanoid(tmp_path)
    model.write_text(re.sub(r'effort="[^"]*"', "", model.read_text()))
    profile, report = import_model(model, "small")
    mass = sum(link.mass for link in (*profile.links, *profile.fixed_links))
    limit = dict(zip(profile.joint_names, profile.joint_torque_limit / mass, strict=True))
    arms = {name for name in limit if "shoulder" in name or "elbow" in name}
    ankles = {name for name in limit if "ankle" in name}
    assert arms
    assert ankles
    for name, value in limit.items():
        assert value == pytest.approx(0.75 if name in arms else 1.5 if name in ankles else 3.0, abs=0.01), name
    assert any("torque limit" in text for text in report.chosen)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('lower="-1" upper="1"', 'lower="1" upper="-1"', "found 1 to -1 rad"),
        ('name="l_knee"', 'name="r_knee"', "joint r_knee: found more than once"),
        ("</robot>", '<link name="l_foot"/></robot>', "link l_foot: found more than once"),
        (
            "</robot>",
            '<joint name="x" type="fixed"><parent link="base"/><child link="l_foot"/></joint></robot>',
            "joint above link l_foot: found more than once",
        ),
        (
            "</robot>",
            '<link name="a"/><link name="b"/><joint name="x" type="fixed"><parent link="a"/><child link="b"/></joint>'
            '<joint name="y" type="fixed"><parent link="b"/><child link="a"/></joint></robot>',
            "in a circle",
        ),
        ("<robot", "<?xml version='1.0' encoding='none'?><robot", "not a readable XML file"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    model = humanoid.write_humanoid(tmp_path)
    text = model.read_text()
    assert old in text
    model.write_text(text.replace(old, new, 1).removeprefix("<?xml version='1.0'?>"))
    with pytest.raises(InputFileError, match=re.escape(reason)):
        import_model(model, "small")


@pytest.mark.parametrize(
    ("field", "key", "value"),
    [
        ("links", "pos", "abc"), ("links", "pos", [1, 2]), ("links", "quat", [0, 0, 0, 0]), ("links", "axis", None),
        ("links", "mass", "x"), ("links", "mass", -1), ("links", "name", 5), ("links", "com", [1e308, 0, 0]),
        ("virtual_links", "parent", "none"), ("shapes", "kind", "cone"), ("shapes", "size", ["a"]),
    ],
)  # fmt: skip
def test_an_edited_profile_is_checked(field: str, key: str, value: object, tmp_path: Path) -> None:
    profile, _ = _import(tmp_path)
    write_profile(tmp_path / "p.json", profile, [])
    content = json.loads((tmp_path / "p.json").read_text())
    content[field][-1][key] = value
    (tmp_path / "p.json").write_text(json.dumps(content))
    with pytest.raises(InputFileError, match=r"p\.json"):
        read_profile(tmp_path / "p.json")


def test_a_profile_never_takes_the_place_of_its_model(tmp_path: Path) -> None:
    model = humanoid.write_humanoid(tmp_path)
    before = model.read_bytes()
    for output in (model, tmp_path):
        result = CliRunner().invoke(app, ["profile", "add", str(model), "-o", str(output)])
        assert isinstance(result.exception, ConfigError)
    assert model.read_bytes() == before
