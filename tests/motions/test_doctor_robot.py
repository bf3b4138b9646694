"""The doctor on robot clips: every order, unit, rate and frame decided by evidence, every constructed fault named."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motion_fixtures import asap_content, holosoma_arrays, robot_fixtures, swaying_motion

from asap_core.errors import InputFileError, UnknownNameError
from asap_core.motions.derived import derive_motion
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.faults import rate_faults, robot_faults, velocity_faults
from asap_core.motions.doctor.joint_orders import G1_ORDERS, get_order, swapped_sides
from asap_core.motions.doctor.made_clips import as_clip, walk_and_hop
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.robot import RobotDiagnosis, examine_robot
from asap_core.motions.formats.clip import Declared, RobotClip
from asap_core.motions.robot import RobotMotion
from asap_core.motions.tables import Source
from asap_core.robots import get_profile
from asap_core.robots.profile import breadth_first
from asap_core.rotations import quat_mul, rotate, rotvec_to_quat

NONE = Options()
WALK = {robot: walk_and_hop(robot, seconds=6.0) for robot in ("g1_29dof", "g1_23dof")}
RATELESS = {"lafan_csv": 30.0, "kimodo_csv": 30.0}


def answers(found: RobotDiagnosis) -> dict[str, str | None]:
    return {decision.question: decision.answer for decision in found.decisions}


def codes(found: RobotDiagnosis) -> set[str]:
    return {problem.code for problem in found.problems if problem.severity != "note"}


def said(robot: str, quat: str = "wxyz") -> RobotClip:
    """A walk without bodies, whose format would say what it holds."""
    order = {"g1_29dof": "unitree29", "g1_23dof": "asap23"}[robot]
    clip = as_clip(WALK[robot], quat=quat, bodies=False)
    return replace(clip, declared=Declared(quat, order, None, "z", "m", "rad", frame="world"))  # type: ignore[arg-type]


def test_named_orders_are_the_published_ones() -> None:
    isaac = [get_profile("g1_29dof").joint_index(name) for name in G1_ORDERS["isaac29"].joints]
    assert isaac[:6] == [0, 6, 12, 1, 7, 13]
    assert sorted(isaac) == list(range(29))
    tree = [name.replace("_link", "") for name in breadth_first(get_profile("g1_29dof"))[1:]]
    names = [name.removesuffix("_joint").replace("waist_pitch", "torso") for name in G1_ORDERS["isaac29"].joints]
    assert tree == names
    assert G1_ORDERS["asap23"].joints == get_profile("g1_23dof").joint_names
    assert G1_ORDERS["unitree23"].joints[13] == "left_shoulder_pitch_joint"
    assert G1_ORDERS["unitree23"].joints[17] == "left_wrist_roll_joint"
    assert [len(order.joints) for name, order in G1_ORDERS.items() if name.startswith("unitree27")] == [27, 27]
    assert swapped_sides(("left_knee_joint", "waist_yaw_joint")) == ("right_knee_joint", "waist_yaw_joint")
    with pytest.raises(UnknownNameError, match="isaac29"):
        get_order("isaac_29")


@pytest.mark.parametrize("robot", ["g1_29dof", "g1_23dof"])
@pytest.mark.parametrize("order", ["mjcf", "isaac"])
@pytest.mark.parametrize("quat", ["wxyz", "xyzw"])
def test_c1_joint_body_and_quaternion_order_are_told_by_the_bodies(robot: str, order: str, quat: str) -> None:
    motion = WALK[robot]
    found = examine_robot(as_clip(motion, order, quat), NONE)
    name = {"g1_29dof": ("unitree29", "isaac29"), "g1_23dof": ("asap23", "asap23_isaac")}[robot][order == "isaac"]
    wanted = {"joint order": name, "body order": order, "quaternion order": quat}
    assert answers(found) | wanted == answers(found)
    assert next(d for d in found.decisions if d.question == "body order").figure < 1e-6
    assert found.motion is not None
    np.testing.assert_allclose(found.motion.joint_pos, motion.joint_pos, atol=1e-12)
    np.testing.assert_allclose(np.abs((found.motion.root_quat * motion.root_quat).sum(axis=1)), 1, atol=1e-12)


def test_c1_bodies_in_no_known_order_are_refused_with_the_best_match() -> None:
    clip = as_clip(WALK["g1_29dof"], "isaac")
    assert clip.body_pos is not None
    shuffled = np.random.default_rng(0).permutation(clip.body_pos.shape[1])
    found = examine_robot(replace(clip, body_pos=clip.body_pos[:, shuffled]), NONE)
    decision = next(d for d in found.decisions if d.question == "body order")
    assert decision.answer is None
    assert decision.figure > 50
    assert "best match" in decision.text
    assert "--joint-order" in decision.text
    assert found.motion is None


def test_another_hardware_revision_is_noted_not_refused() -> None:
    """The joint centres of the older waist lie 9 and 10 mm elsewhere."""
    clip = as_clip(WALK["g1_29dof"])
    assert clip.body_pos is not None
    body_pos = clip.body_pos.copy()
    names = [link.name for link in get_profile("g1_29dof").links]
    body_pos[:, names.index("torso_link"), 2] += 0.010
    body_pos[:, names.index("waist_roll_link"), 2] -= 0.009
    found = examine_robot(replace(clip, body_pos=body_pos, body_lin_vel=None), NONE)
    assert answers(found)["joint order"] == "unitree29"
    assert found.motion is not None


def test_c6_a_clip_without_rate_is_refused_and_a_hint_given_by_gravity() -> None:
    clip = replace(said("g1_29dof"), fps=None)
    found = examine_robot(clip, NONE)
    decision = next(d for d in found.decisions if d.question == "fps")
    assert decision.answer is None
    assert decision.figure == pytest.approx(50, rel=0.02)
    assert "--fps" in decision.text
    assert found.motion is None
    settled = examine_robot(clip, Options(fps=50))
    assert settled.clean
    assert settled.motion is not None
    assert settled.motion.fps == 50


@pytest.mark.parametrize("fault", ["double_fps", "half_fps"])
@pytest.mark.parametrize("bodies", [True, False])
def test_c6_a_rate_off_by_two_is_named_with_the_right_one(fault: str, bodies: bool) -> None:
    clip = as_clip(WALK["g1_29dof"]) if bodies else said("g1_29dof")
    assert "wrong_fps" not in codes(examine_robot(clip, NONE))
    problem = next(p for p in examine_robot(rate_faults(clip)[fault], NONE).problems if p.code == "wrong_fps")
    suggested = float(problem.mend.rsplit(" ", 1)[1])
    assert suggested == pytest.approx(50, rel=0.02)


def test_c6_an_overruled_rate_is_said() -> None:
    found = examine_robot(said("g1_29dof"), Options(fps=60))
    assert "fps_overruled" in codes(found)


def test_c7_nameless_23_joints_are_refused_with_both_candidates() -> None:
    clip = replace(said("g1_23dof"), declared=Declared("wxyz", None, None, "z", "m", "rad", frame="world"))
    found = examine_robot(clip, NONE)
    assert found.motion is None
    text = next(d.text for d in found.decisions if d.question == "joint order")
    assert "asap23" in text
    assert "unitree23" in text
    assert "--dof-set" in text


@pytest.mark.parametrize("dof_set", ["asap23", "unitree23"])
def test_c7_the_dof_set_maps_each_column_by_name(dof_set: str) -> None:
    joints = G1_ORDERS[dof_set].joints
    constants = {name: 0.01 * (i + 1) for i, name in enumerate(get_profile("g1_29dof").joint_names)}
    count = 30
    clip = RobotClip(
        path=Path("c7"),
        name="c7",
        format="made",
        sha256="0" * 64,
        root_pos=np.tile([0.0, 0.0, 0.78], (count, 1)),
        root_quat=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
        joint_pos=np.tile([constants[name] for name in joints], (count, 1)),
        fps=30.0,
        declared=Declared("wxyz", None, None, "z", "m", "rad", frame="world"),
    )
    assert examine_robot(clip, NONE).motion is None
    motion = examine_robot(clip, Options(dof_set=dof_set)).motion
    assert motion is not None
    assert dict(zip(motion.joint_names, motion.joint_pos[7], strict=True)) == {n: constants[n] for n in joints}


def test_c7_the_robot_settles_the_set_but_not_the_order() -> None:
    clip = replace(said("g1_23dof"), declared=Declared("wxyz", None, None, "z", "m", "rad", frame="world"))
    assert answers(examine_robot(clip, Options(robot="g1_23dof")))["joint order"] == "asap23"
    assert answers(examine_robot(clip, Options(robot="g1_29dof")))["joint order"] is None
    isaac = replace(clip, joint_pos=robot_faults(said("g1_23dof"))["order_swapped"][1]().joint_pos)
    assert answers(examine_robot(isaac, Options(robot="g1_23dof")))["joint order"] == "asap23_isaac"


@pytest.mark.parametrize("order", ["mjcf", "isaac"])
def test_another_robot_is_understood_by_its_own_profile(order: str, tmp_path: Path) -> None:
    from humanoid_urdf import write_humanoid

    from asap_core.robots.importing.importer import import_model
    from asap_core.robots.profile_file import write_profile

    profile, _ = import_model(write_humanoid(tmp_path), "small")
    path = str(tmp_path / "small.json")
    write_profile(path, profile, [])
    times = np.arange(100) / 50
    joints = 0.1 + 0.1 * np.sin(times[:, None] * 3 + np.arange(profile.num_joints))
    root_pos = np.stack([0.1 * times, 0 * times, 0.7 + 0 * times], axis=1)
    quat = rotvec_to_quat(np.outer(0.3 + times, [0, 0, 1.0]))
    source = Source("made", "0" * 64, "tests")
    motion = RobotMotion("m", path, 50.0, root_pos, quat, profile.joint_names, joints, source)
    found = examine_robot(as_clip(motion, order), Options(robot=path))
    assert answers(found)["joint order"] == {"mjcf": "small", "isaac": "small_isaac"}[order]
    assert found.motion is not None
    assert found.motion.robot == path
    np.testing.assert_allclose(found.motion.joint_pos, joints, atol=1e-12)


def test_absurd_numbers_are_refused_by_name() -> None:
    clip = said("g1_29dof")
    with pytest.raises(InputFileError, match="root_pos: found 1e\\+12"):
        examine_robot(replace(clip, root_pos=np.where(clip.root_pos > 0.7, 1e12, clip.root_pos)), NONE)


def test_c16_a_first_frame_that_ends_the_episode_is_named() -> None:
    from asap_core.environments.doctor_preflight import with_preflight
    from asap_core.environments.terminations import TerminationSettings
    from asap_core.motions.doctor.examine import FileReport
    from asap_core.motions.doctor.weigh import least

    clip = said("g1_29dof")
    lying = rotvec_to_quat(np.tile([0.0, 1.2, 0.0], (len(clip.root_quat), 1)))
    bent = replace(clip, root_quat=np.where(np.arange(len(lying))[:, None] < 10, lying, clip.root_quat))
    form = least("format", {"made": 0.0}, "", "", "", 1.0, 0.0)
    for made, expected in ((clip, set()), (bent, {"terminates"})):
        report = with_preflight(FileReport(clip.path, form, (examine_robot(made, NONE),)), TerminationSettings())
        problems = {p.code: p for p in report.clips[0].problems if p.code == "terminates"}
        assert set(problems) == expected
    assert problems["terminates"].severity == "warning"
    assert "would end at step 0" in problems["terminates"].text
    assert "tilt 0.93 > 0.80" in problems["terminates"].text


def test_c7_bodies_prove_which_23_joints_they_are() -> None:
    found = examine_robot(as_clip(WALK["g1_23dof"]), NONE)
    assert answers(found)["joint order"] == "asap23"


def _spinning(com: bool, turned: bool, tmp_path: Path) -> Path:
    """A holosoma file of a clip whose base is yawed by 95° and spins, with the two faults of C8."""
    motion = swaying_motion("g1_29dof")
    times = np.arange(motion.num_frames) / motion.fps
    yaw = rotvec_to_quat(np.outer(np.radians(95) + 2.0 * times, [0.0, 0.0, 1.0]))
    motion = replace(motion, root_quat=quat_mul(yaw, motion.root_quat))
    derived = derive_motion(motion, get_profile(motion.robot))
    arrays = holosoma_arrays(motion, derived, with_object=False)
    bodies = len(get_profile(motion.robot).links)
    if com:
        arrays["body_lin_vel_w"][:, 1:] = derived.com_lin_vel[:, :bodies]
    if turned:
        arrays["body_ang_vel_w"][:, 1:] = rotate(derived.links.quat, derived.links.ang_vel)[:, :bodies]
    np.savez(tmp_path / "c8.npz", **arrays)
    return tmp_path / "c8.npz"


def test_c8_velocities_of_the_wrong_point_and_frame_are_both_flagged(tmp_path: Path) -> None:
    found = examine(_spinning(True, True, tmp_path), NONE).clips[0]
    problems = {problem.code: problem for problem in found.problems}
    assert "centre of mass" in problems["velocity_point"].text
    assert "R·w" in problems["angular_velocity_frame"].text
    assert all("--recompute-velocities" in problems[c].mend for c in ("velocity_point", "angular_velocity_frame"))


def test_c8_right_velocities_are_not_flagged(tmp_path: Path) -> None:
    found = examine(_spinning(False, False, tmp_path), NONE).clips[0]
    assert isinstance(found, RobotDiagnosis)
    assert answers(found)["velocity point"] == "link"
    assert answers(found)["angular velocity frame"] == "world"
    assert not codes(found) & {"velocity_point", "angular_velocity_frame"}


def test_velocities_that_fit_nothing_are_named() -> None:
    clip = as_clip(WALK["g1_29dof"])
    assert clip.body_lin_vel is not None
    noise = np.random.default_rng(0).normal(size=clip.body_lin_vel.shape)
    problems = {p.code: p for p in examine_robot(replace(clip, body_lin_vel=noise), NONE).problems}
    assert "does not fit" in problems["velocity_point"].text
    assert problems["velocity_point"].severity == "error"


@pytest.mark.parametrize("fault", ["com_velocity", "twice_rotated"])
def test_wrong_velocities_of_nameless_bodies_are_named(fault: str) -> None:
    links = tuple(link.name for link in get_profile("g1_29dof").links)
    clip = as_clip(WALK["g1_29dof"])
    assert not codes(examine_robot(clip, NONE))
    code, wrong = velocity_faults(clip, links, "g1_29dof")[fault]
    assert codes(examine_robot(wrong, NONE)) == {code}


FAULTS = sorted(robot_faults(said("g1_29dof")))


@pytest.mark.parametrize("robot", ["g1_29dof", "g1_23dof"])
@pytest.mark.parametrize("fault", FAULTS)
def test_c15_constructed_faults_are_named(robot: str, fault: str) -> None:
    """The slide among them is C15: a stance foot that goes 20 cm/s."""
    clip = said(robot)
    code, make = robot_faults(clip)[fault]
    assert code in codes(examine_robot(make(), NONE))


@pytest.mark.parametrize("quat", ["wxyz", "xyzw"])
@pytest.mark.parametrize("robot", ["g1_29dof", "g1_23dof"])
def test_a_clean_walk_raises_no_alarm(robot: str, quat: str) -> None:
    found = examine_robot(said(robot, quat), NONE)
    assert found.clean
    assert answers(found)["quaternion order"] == quat


def test_what_is_found_against_the_format_is_read_as_found() -> None:
    clip = said("g1_29dof")
    for fault in ("quat_order", "degrees", "centimetres", "y_up", "order_swapped"):
        motion = examine_robot(robot_faults(clip)[fault][1](), NONE).motion
        assert motion is not None
        np.testing.assert_allclose(motion.joint_pos, WALK["g1_29dof"].joint_pos, atol=1e-9)
        np.testing.assert_allclose(motion.root_pos, WALK["g1_29dof"].root_pos, atol=1e-9)


def test_slide_is_measured() -> None:
    clip = robot_faults(said("g1_29dof"))["slide"][1]()
    text = next(p.text for p in examine_robot(clip, NONE).problems if p.code == "foot_slide")
    assert float(text.split(" at ")[1].split(" cm/s")[0]) == pytest.approx(20, abs=3)


def test_joint_limits_and_speeds_are_named_with_joint_and_frame() -> None:
    clip = said("g1_29dof")
    joint_pos = clip.joint_pos.copy()
    joint_pos[100, 3] = 3.0
    found = {p.code: p for p in examine_robot(replace(clip, joint_pos=joint_pos), NONE).problems}
    assert "left_knee_joint 0.12 rad" in found["joint_limit"].text
    assert found["joint_limit"].frames == "100"
    assert "left_knee_joint" in found["joint_speed"].text


def test_every_format_is_clean_in_every_order(tmp_path: Path) -> None:
    paths = robot_fixtures(tmp_path)
    for key, path in paths.items():
        report = examine(path, Options(fps=RATELESS.get(key)))
        expected = key.split(".")[0]
        if expected == "unitree_rl_lab_npz":  # with 29 joints it is BeyondMimic's to the byte
            expected = "beyondmimic_npz"
        assert report.format.answer == expected, key
        assert report.clean, (key, [p.text for clip in report.clips for p in clip.problems])
        if key.endswith(".xyzw"):
            assert answers(report.clips[0])["quaternion order"] == "xyzw"  # type: ignore[arg-type]


def test_c6_csv_without_rate_asks_for_it(tmp_path: Path) -> None:
    report = examine(robot_fixtures(tmp_path)["lafan_csv"], NONE)
    assert [decision.question for decision in report.clips[0].open_questions] == ["fps"]


def test_unknown_joints_are_named_with_the_valid_ones() -> None:
    clip = replace(said("g1_29dof"), joint_names=tuple(f"j{i}" for i in range(29)))
    with pytest.raises(InputFileError, match=r"j0.*left_knee_joint.*--robot"):
        examine_robot(clip, NONE)
    with pytest.raises(InputFileError, match="found 12 without names"):
        examine_robot(replace(said("g1_29dof"), joint_pos=np.zeros((300, 12))), NONE)


def test_options_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="wxyz"):
        Options(quat_order="zyxw")
    with pytest.raises(UnknownNameError, match="unitree23"):
        Options(dof_set="asap24")
    with pytest.raises(UnknownNameError, match="Did you mean 'isaac29'"):
        Options(joint_order="isaac2")
    with pytest.raises(InputFileError, match="expected frames per second"):
        Options(fps=0)


def test_published_robot_clips_are_understood(shared_dir: Path) -> None:
    """Their only findings are true ones: standing feet hang in the air, a few slide or sink."""
    paths = sorted((shared_dir / "data" / "asap" / "g1").glob("*.pkl"))
    assert len(paths) == 39
    floating = 0
    for path in paths:
        report = examine(path, NONE)
        found = report.clips[0]
        assert isinstance(found, RobotDiagnosis)
        assert report.format.answer == "asap_pkl"
        wanted = {"joint order": "asap23", "quaternion order": "xyzw", "up axis": "z", "fps": "30", "length unit": "m"}
        assert answers(found) | wanted == answers(found)
        assert codes(found) <= {"floating", "foot_slide", "penetration"}
        floating += "floating" in codes(found)
    assert floating >= 15


def test_c19_an_action_of_another_length_is_refused_by_file_and_field(tmp_path: Path) -> None:
    content = asap_content(swaying_motion("g1_23dof"))
    count = len(content["dof"])
    for rows in (count, count - 3):
        path = tmp_path / f"{rows}.pkl"
        path.write_bytes(
            pickle.dumps({"clip": content | {"action": np.zeros((rows, 23), np.float32)}, "next": content})
        )
        if rows == count:
            assert [clip.clip.name for clip in examine(path, NONE).clips] == ["clip", "next"]
        else:
            with pytest.raises(InputFileError, match=rf"{rows}\.pkl.*action"):
                examine(path, NONE)
