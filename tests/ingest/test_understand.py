"""What a log's numbers mean: a sound log raises nothing, and each injected fault is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from g1_log import SDK, base_motion, joint_motion, make_log, odometry_world_velocity

from asap_core.errors import InputFileError, UnknownNameError
from asap_core.motions.doctor.joint_orders import G1_ORDERS
from asap_core.rollouts.ingest.streams import Log
from asap_core.rollouts.ingest.understand import UnderstandOptions, Understood, understood

_ISAAC = [SDK.index(name) for name in G1_ORDERS["isaac29"].joints]


def _answers(result: Understood) -> dict[str, str | None]:
    return {decision.question: decision.answer for decision in result.decisions}


def _values(log: Log, name: str) -> dict[str, np.ndarray]:
    return dict(next(stream for stream in log.streams if stream.name == name).values)


def _change(name: str, **values: Any) -> Log:
    return make_log(**{name: {"values": values}})


def test_a_sound_log_is_understood_without_a_doubt() -> None:
    result = understood(make_log())
    assert result.contradictions == ()
    assert result.open == ()
    assert result.left_out == {}
    assert [stream.name for stream in result.log.streams] == ["state", "imu", "command", "mocap", "odometry"]
    state = result.log.of_kind("joint_state")[0]
    assert state.labels == SDK
    np.testing.assert_allclose(state.values["joint_pos"], joint_motion(np.arange(0.0, 8.0, 2e-3))[0], atol=1e-3)
    mocap = result.log.of_kind("pose")[0]
    np.testing.assert_allclose(mocap.values["quat"], base_motion(np.arange(0.0, 8.0, 1 / 120))[1], atol=1e-12)
    odometry = result.log.of_kind("odometry")[0]
    np.testing.assert_allclose(odometry.values["lin_vel"], odometry_world_velocity(), atol=1e-9)


def test_a_robot_that_stands_still_raises_no_doubt() -> None:
    rng = np.random.default_rng(5)
    count = len(_values(make_log(), "state")["joint_pos"])
    pose = joint_motion(np.zeros(1))[0]
    still = {
        "joint_pos": pose + rng.normal(0.0, 1e-4, (count, 29)),
        "joint_vel": rng.normal(0.0, 5e-3, (count, 29)),
        "joint_torque": rng.normal(0.0, 0.1, (count, 29)),
    }
    ticks = len(_values(make_log(), "command")["joint_target"])
    result = understood(
        make_log(state={"values": still}, command={"values": {"joint_target": np.tile(pose, (ticks, 1))}})
    )
    assert result.contradictions == ()
    assert result.open == ()


def test_an_undeclared_log_is_understood_by_evidence_alone() -> None:
    bare: dict[str, Any] = {name: {"declared": {}} for name in ("state", "imu", "command", "mocap", "odometry")}
    result = understood(make_log(**bare))
    assert result.open == ()
    answers = _answers(result)
    assert answers["joint order of state"] == "unitree29"
    assert answers["joint order of command"] == "unitree29"
    assert answers["quaternion order of imu"] == "wxyz"
    assert answers["quaternion order of mocap"] == "xyzw"
    assert answers["up axis of mocap"] == "z"
    assert answers["twist frame of odometry"] == "body"


def test_states_and_commands_in_isaac_order_are_recognised() -> None:
    log = make_log()
    state = {name: value[:, _ISAAC] for name, value in _values(log, "state").items()}
    command = {name: value[:, _ISAAC] for name, value in _values(log, "command").items()}
    swapped = make_log(state={"values": state, "declared": {}}, command={"values": command, "declared": {}})
    result = understood(swapped)
    assert _answers(result)["joint order of state"] == "isaac29"
    assert _answers(result)["joint order of command"] == "isaac29"
    found = result.log.of_kind("joint_state")[0]
    assert found.labels == SDK
    np.testing.assert_array_equal(found.values["joint_pos"], _values(log, "state")["joint_pos"])
    np.testing.assert_array_equal(result.log.of_kind("joint_command")[0].values["kp"], _values(log, "command")["kp"])


def test_isaac_order_where_the_format_says_sdk_is_a_contradiction() -> None:
    state = {name: value[:, _ISAAC] for name, value in _values(make_log(), "state").items()}
    result = understood(make_log(state={"values": state}))
    assert any("the data fit isaac29" in text for text in result.contradictions)
    assert [d.option for d in result.open if d.question == "joint order of state"] == ["--joint-order"]
    assert "state" in result.left_out


def test_a_command_in_another_order_than_the_state_is_a_contradiction() -> None:
    command = {name: value[:, _ISAAC] for name, value in _values(make_log(), "command").items()}
    result = understood(make_log(command={"values": command}))
    assert any("follows it as isaac29" in text for text in result.contradictions)


def test_velocities_in_another_order_than_positions_are_a_contradiction() -> None:
    vel = _values(make_log(), "state")["joint_vel"][:, _ISAAC]
    result = understood(_change("state", joint_vel=vel))
    assert any("joint velocities belong to joint positions of other columns" in t for t in result.contradictions)


def test_imu_quaternions_stored_xyzw_are_found_and_named() -> None:
    log = make_log()
    stored = np.roll(_values(log, "imu")["quat"], -1, axis=1)
    for rpy in (_values(log, "imu")["rpy"], None):
        result = understood(_change("imu", quat=stored, rpy=rpy))
        assert _answers(result)["quaternion order of imu"] == "xyzw"
        assert any("quaternion order of imu" in text for text in result.contradictions)
        np.testing.assert_allclose(result.log.of_kind("imu")[0].values["quat"], _values(log, "imu")["quat"])


def test_inverted_imu_quaternions_are_found_by_the_gyro() -> None:
    quat = _values(make_log(), "imu")["quat"] * np.array([1.0, -1.0, -1.0, -1.0])
    result = understood(_change("imu", quat=quat, rpy=None))
    assert _answers(result)["quaternion order of imu"] == "wxyz inverse"


def test_mocap_quaternions_stored_wxyz_are_found_by_the_gyro() -> None:
    quat = np.roll(_values(make_log(), "mocap")["quat"], 1, axis=1)
    result = understood(_change("mocap", quat=quat))
    assert _answers(result)["quaternion order of mocap"] == "wxyz"
    assert any("quaternion order of mocap" in text for text in result.contradictions)


@pytest.mark.parametrize(
    ("stream", "field", "factor", "question", "answer"),
    [
        ("imu", "ang_vel", np.degrees(1.0), "gyro unit of imu", "deg/s"),
        ("imu", "lin_acc", 1 / 9.80665, "accelerometer unit of imu", "g"),
        ("state", "joint_vel", np.degrees(1.0), "joint velocity unit of state", "deg"),
        ("mocap", "pos", 1000.0, "length unit of mocap", "mm"),
        ("mocap", "pos", 100.0, "length unit of mocap", "cm"),
    ],
)
def test_units_are_found(stream: str, field: str, factor: float, question: str, answer: str) -> None:
    truth = _values(understood(make_log()).log, stream)[field]
    changed = _values(make_log(), stream)[field] * factor
    result = understood(_change(stream, **{field: changed}))
    assert _answers(result)[question] == answer
    np.testing.assert_allclose(_values(result.log, stream)[field], truth, rtol=1e-12, atol=1e-12)
    assert bool(result.contradictions) == (answer != "g")


def test_degrees_throughout_are_found() -> None:
    log = make_log()
    state, command = _values(log, "state"), _values(log, "command")
    degrees = make_log(
        state={"values": {n: np.degrees(state[n]) for n in ("joint_pos", "joint_vel")}},
        command={"values": {"joint_target": np.degrees(command["joint_target"])}},
    )
    result = understood(degrees)
    assert _answers(result)["angle unit of state"] == "deg"
    assert _answers(result)["joint velocity unit of state"] == "deg"
    assert _answers(result)["angle unit of command"] == "deg"
    np.testing.assert_allclose(_values(result.log, "state")["joint_vel"], state["joint_vel"], atol=1e-12)
    assert any("angle unit of state" in text for text in result.contradictions)


@pytest.mark.parametrize(("factor", "answer"), [(0.1, "10 s"), (10.0, "0.1 s"), (1e6, "1e-06 s"), (1e5, "1e-05 s")])
def test_the_time_unit_is_found(factor: float, answer: str) -> None:
    log = make_log()
    streams = tuple(
        replace(
            s,
            declared={**s.declared, "time_unit": "s"},
            receive_time=None if s.receive_time is None else (s.receive_time - 1.7e9) * factor,
            source_time=None if s.source_time is None else (s.source_time - 1.7e9) * factor,
        )
        for s in log.streams
    )
    result = understood(replace(log, streams=streams))
    assert _answers(result)["time unit of the stamps"] == answer
    assert any("times what the format says" in text for text in result.contradictions)
    state = result.log.of_kind("joint_state")[0]
    assert state.receive_time is not None
    assert np.median(np.diff(state.receive_time)) == pytest.approx(2e-3, abs=3e-7)


def test_velocities_of_opposite_sign_are_named() -> None:
    result = understood(_change("state", joint_vel=-_values(make_log(), "state")["joint_vel"]))
    assert any("opposite sign" in text for text in result.contradictions)


def test_a_y_up_mocap_is_turned() -> None:
    log = make_log()
    pos, quat = _values(log, "mocap")["pos"], _values(log, "mocap")["quat"]
    # z-up (x, y, z) is y-up (x, z, -y).
    y_up = pos[:, [0, 2, 1]] * [1.0, 1.0, -1.0]
    y_quat = np.concatenate([quat[:, [0, 2, 1]] * [1.0, 1.0, -1.0], quat[:, 3:]], axis=1)
    result = understood(_change("mocap", pos=y_up, quat=y_quat))
    assert _answers(result)["up axis of mocap"] == "y"
    found = result.log.of_kind("pose")[0]
    np.testing.assert_allclose(found.values["pos"], pos, atol=1e-12)
    np.testing.assert_allclose(found.values["quat"], np.roll(quat, 1, axis=1), atol=1e-12)


def test_world_twists_are_kept_and_body_twists_turned() -> None:
    world = odometry_world_velocity()
    result = understood(_change("odometry", lin_vel=world))
    assert _answers(result)["twist frame of odometry"] == "world"
    np.testing.assert_allclose(result.log.of_kind("odometry")[0].values["lin_vel"], world)


def test_asap23_and_unitree23_are_told_apart_by_limits_and_gains() -> None:
    log = make_log()
    for order in ("asap23", "unitree23"):
        columns = [SDK.index(name) for name in G1_ORDERS[order].joints]
        state = {name: value[:, columns] for name, value in _values(log, "state").items()}
        command = {name: value[:, columns] for name, value in _values(log, "command").items()}
        result = understood(
            make_log(state={"values": state, "declared": {}}, command={"values": command, "declared": {}})
        )
        decision = next(d for d in result.decisions if d.question == "joint order of state")
        assert decision.answer in (order, None)
        said = understood(
            make_log(state={"values": state, "declared": {}}, command={"values": command, "declared": {}}),
            UnderstandOptions(joint_order=order),
        )
        assert said.log.of_kind("joint_state")[0].labels == G1_ORDERS[order].joints
        assert said.log.of_kind("joint_command")[0].labels == G1_ORDERS[order].joints


def test_named_joints_count_whatever_their_order() -> None:
    labels = tuple(name.removesuffix("_joint") for name in reversed(SDK))
    state = {name: value[:, ::-1] for name, value in _values(make_log(), "state").items()}
    result = understood(make_log(state={"values": state, "labels": labels, "declared": {}}))
    found = result.log.of_kind("joint_state")[0]
    assert found.labels == SDK
    np.testing.assert_array_equal(found.values["joint_pos"], _values(make_log(), "state")["joint_pos"])


def test_unused_motor_slots_go() -> None:
    padded = {name: np.pad(value, [(0, 0), (0, 6)]) for name, value in _values(make_log(), "state").items()}
    declared = {"joint_order": "unitree_hg", "angle_unit": "rad"}
    result = understood(make_log(state={"values": padded, "declared": declared}))
    assert result.log.of_kind("joint_state")[0].labels == SDK


def test_joints_of_an_unknown_number_stay_open_and_name_the_option() -> None:
    values = {name: value[:, :7] for name, value in _values(make_log(), "state").items()}
    result = understood(make_log(state={"values": values, "declared": {}}))
    decision = next(d for d in result.open if d.question == "joint order of state")
    assert decision.option == "--joint-order"
    assert result.left_out["state"] == "its joint order is open"


def test_options_decide_and_wrong_ones_are_refused() -> None:
    result = understood(make_log(), UnderstandOptions(imu_quat_order="xyzw"))
    assert _answers(result)["quaternion order of imu"] == "xyzw"
    with pytest.raises(UnknownNameError, match="unitree29"):
        understood(make_log(), UnderstandOptions(joint_order="unitre29"))
    with pytest.raises(InputFileError, match="29 joints"):
        understood(make_log(), UnderstandOptions(joint_order="asap23"))
