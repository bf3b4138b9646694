"""Readers of robot logs kept as files: each layout gives back the numbers written, and says what it left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from log_fixtures import JOINT_NAMES, NUM_ROWS, RATE, START_UNIX, file_log_fixtures, make_run

from asap_core.errors import ConfigError, InputFileError
from asap_core.rollouts.ingest.readers import read_log, sniff, table_csv
from asap_core.rollouts.ingest.readers.column_map import ColumnMap
from asap_core.rollouts.ingest.streams import FIELDS, SCALARS, Kind, Log, Stream

RUN = make_run()
TIME = np.arange(NUM_ROWS) / RATE


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return file_log_fixtures(tmp_path_factory.mktemp("logs"))


def one(log: Log, kind: Kind) -> Stream:
    (stream,) = log.of_kind(kind)
    return stream


def test_every_layout_goes_to_its_reader_and_to_no_other(logs: dict[str, Path]) -> None:
    for name, path in logs.items():
        reader = sniff(path)
        assert reader is not None, name
        assert name.startswith(reader.id), (name, reader.id)
        log = read_log(path)
        assert log.format == reader.id
        assert len(log.sha256) == 64


def test_streams_use_the_names_of_the_record_and_equal_lengths(logs: dict[str, Path]) -> None:
    for name, path in logs.items():
        for stream in read_log(path).streams:
            assert set(stream.values) <= {*FIELDS[stream.kind], *SCALARS}, name
            clocks = [
                clock for clock in (stream.receive_time, stream.source_time, stream.sequence) if clock is not None
            ]
            assert clocks, name
            assert {len(values) for values in (*stream.values.values(), *clocks)} == {stream.num_samples}, name


def test_asap_npz(logs: dict[str, Path]) -> None:
    log = read_log(logs["asap_npz"])
    state, command, imu, base = (one(log, kind) for kind in ("joint_state", "joint_command", "imu", "odometry"))
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos)
    np.testing.assert_array_equal(state.values["joint_torque"], RUN.joint_torque)
    np.testing.assert_array_equal(command.values["joint_target"], RUN.joint_target)
    np.testing.assert_array_equal(command.values["kp"], 100.0)
    np.testing.assert_array_equal(imu.values["lin_acc"], RUN.acc)
    np.testing.assert_array_equal(base.values["pos"], RUN.root_pos)
    np.testing.assert_array_equal(state.receive_time, START_UNIX + TIME)
    assert state.declared["joint_order"] == "unitree29"
    assert imu.declared["quat_order"] == base.declared["quat_order"] == "wxyz"
    assert "twist_frame" not in base.declared


def test_asap_npz_without_mocap_keys(logs: dict[str, Path]) -> None:
    log = read_log(logs["asap_npz_no_mocap"])
    assert not log.of_kind("odometry")
    assert log.notes == ("has no pos, quat, lin_vel, ang_vel",)
    np.testing.assert_array_equal(one(log, "joint_command").values["joint_target"], RUN.joint_target)


def test_asap_npz_of_a_wrong_shape_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, time=TIME, joint_pos=RUN.joint_pos, joint_pos_cmd=RUN.joint_target[:-1])
    with pytest.raises(InputFileError, match=r"joint_pos_cmd: found shape \(59, 29\), expected \(60, 29\)"):
        read_log(path)


def test_asap_npz_with_a_damaged_array_header_is_refused(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("time", "joint_pos", "joint_pos_cmd"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"{'descr': (".ljust(16))
    with pytest.raises(InputFileError, match="not a readable npz"):
        read_log(path)


def test_asap_pkl_clips_follow_each_other_and_resets_are_marked(logs: dict[str, Path]) -> None:
    log = read_log(logs["asap_pkl"])
    state, command, base = (one(log, kind) for kind in ("joint_state", "joint_command", "odometry"))
    np.testing.assert_array_equal(command.values["action"], RUN.action[:, :23])
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:, :23])
    np.testing.assert_array_equal(base.values["quat"][:, [3, 0, 1, 2]], RUN.root_quat)
    assert base.declared["quat_order"] == "xyzw"
    assert command.declared["action_timing"] == "post_step"
    np.testing.assert_array_equal(state.values["episode"], np.repeat([0, 1], [20, 40]))
    np.testing.assert_array_equal(np.flatnonzero(state.values["valid"] == 0), [9, 19, 29, 59])
    assert state.source_time is not None
    np.testing.assert_array_equal(state.source_time, np.append(TIME[:20], TIME[:40]))
    assert log.metadata["episodes"] == ["motion0", "motion1"]


def test_a_motion_without_actions_is_not_a_log(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "motion.pkl"
    path.write_bytes(pickle.dumps({"actionless": {"dof": np.zeros((3, 23)), "fps": 30}}, protocol=3))
    with pytest.raises(InputFileError, match="no clip has `action`"):
        read_log(path)


def test_csv_of_an_fsm_deployment(logs: dict[str, Path]) -> None:
    log = read_log(logs["csv_deploy"])
    state, command, imu = (one(log, kind) for kind in ("joint_state", "joint_command", "imu"))
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:, :6])
    np.testing.assert_array_equal(state.values["joint_vel"], RUN.joint_vel[:, :6])
    np.testing.assert_array_equal(command.values["joint_target"], RUN.joint_target[:, :6])
    np.testing.assert_array_equal(imu.values["ang_vel"], RUN.gyro)
    assert state.receive_time is not None
    np.testing.assert_allclose(state.receive_time, TIME, rtol=0, atol=1e-12)
    assert state.declared["time_unit"] == "s"
    assert state.labels is None
    assert "gravity_ori_x, gravity_ori_y, gravity_ori_z" in log.notes[0]


def test_csv_of_unitree_cpp_deploy(logs: dict[str, Path]) -> None:
    log = read_log(logs["csv_cpp"])
    state, base = one(log, "joint_state"), one(log, "odometry")
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:, :6])
    np.testing.assert_array_equal(state.values["temperature"], 41.0)
    np.testing.assert_array_equal(base.values["pos"], RUN.root_pos)
    assert state.receive_time is not None
    np.testing.assert_array_equal(state.receive_time, TIME)
    assert "time_unit" not in state.declared
    assert "unix_time, wall_time" in log.notes[0]


def test_csv_with_decimal_commas_utf16_and_named_joints(logs: dict[str, Path]) -> None:
    log = read_log(logs["csv_comma"])
    state = one(log, "joint_state")
    assert state.labels == JOINT_NAMES
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:, :6])
    np.testing.assert_array_equal(one(log, "joint_command").values["joint_target"], RUN.joint_target[:, :6])


def test_csv_of_one_joint_and_of_desired_values(logs: dict[str, Path], tmp_path: Path) -> None:
    state = one(read_log(logs["csv_pendulum"]), "joint_state")
    np.testing.assert_array_equal(state.values["joint_torque"], RUN.joint_torque[:, :1])
    desired = tmp_path / "data_desired.csv"
    desired.write_bytes(logs["csv_pendulum"].read_bytes())
    command = one(read_log(desired), "joint_command")
    np.testing.assert_array_equal(command.values["joint_target"], RUN.joint_pos[:, :1])


def test_csv_joints_in_another_order_per_field_are_put_in_one(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,q_left_knee,q_right_knee,dq_right_knee,dq_left_knee\n0,1,2,20,10\n0.1,3,4,40,30\n")
    state = one(read_log(path), "joint_state")
    assert state.labels == ("left_knee", "right_knee")
    np.testing.assert_array_equal(state.values["joint_vel"], [[10, 20], [30, 40]])


def test_csv_with_missing_joint_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,q_0,q_1,q_3\n0,1,2,3\n")
    with pytest.raises(InputFileError, match=r"columns q: found the numbers 0, 1, 3, expected 0 to J-1"):
        read_log(path)


def test_csv_cut_in_a_line_keeps_the_rows_before_and_says_so(logs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    whole = logs["csv_deploy"].read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    log = read_log(path)
    state = one(log, "joint_state")
    rows = path.read_text().count("\n") - 1
    assert state.num_samples == rows
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:rows, :6])
    assert log.notes[0] == f"line {rows + 2} has no line end and may be cut; it is left out"


def test_csv_with_a_bad_cell_keeps_the_rows_before_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("time,q_0,q_1\n" + "".join(f"{i},{i},{i}\n" for i in range(9)) + "9,9,x9\n10,10,10\n")
    log = read_log(path)
    assert one(log, "joint_state").num_samples == 9
    assert log.notes[0] == "line 11, column 3: found 'x9', expected a number; the rows from there on are left out"


def test_csv_with_decimal_commas_between_commas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('time,q_0\n"0,1","1,5"\n')
    with pytest.raises(InputFileError, match="found '1,5', expected a number"):
        read_log(path)


def test_utf16_without_its_mark_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("time,q_0\n0,1\n".encode("utf-16-le"))
    with pytest.raises(InputFileError, match="UTF-16 with its mark"):
        table_csv.read(path)


def test_column_map_says_what_names_do_not(tmp_path: Path) -> None:
    table, words = tmp_path / "log.csv", tmp_path / "map.yaml"
    table.write_text("tick,motA_p,motB_p,w,x,y,z,q_0\n0,1,2,1,0,0,0,7\n20,3,4,0,1,0,0,8\n")
    words.write_text(
        "time: {column: tick, unit: ms}\njoint_state.joint_pos: mot*_p\njoint_names: [left_knee, right_knee]\n"
        "imu.quat: [w, x, y, z]\nquat_order: wxyz\n"
    )
    log = table_csv.read(table, ColumnMap.load(words))
    state = one(log, "joint_state")
    assert state.labels == ("left_knee", "right_knee")
    np.testing.assert_array_equal(state.values["joint_pos"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(state.receive_time, [0, 0.02])
    assert one(log, "imu").declared["quat_order"] == "wxyz"
    assert "q_0" in log.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("joint_state.joint_poss: mot*", "Did you mean 'joint_state.joint_pos'"),
        ("time: {column: t, unit: minutes}", "expected s, ms, us or ns"),
        ("imu.quat: 3", "expected a list of names or one pattern"),
        ("[1, 2]", "expected keys with column names"),
        ("a: [", "not a readable column map"),
    ],
)
def test_column_map_with_a_mistake_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        ColumnMap.load(path)


def test_column_map_with_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,q_0\n0,1\n")
    with pytest.raises(InputFileError, match=r"no column 'mot\*'; the table has time, q_0"):
        table_csv.read(path, ColumnMap(fields={("joint_state", "joint_pos"): "mot*"}))


def test_sage_leaves_the_time_unit_open(logs: dict[str, Path]) -> None:
    log = read_log(logs["sage"])
    state, command, event = (one(log, kind) for kind in ("joint_state", "joint_command", "event"))
    np.testing.assert_array_equal(state.values["joint_vel"], RUN.joint_vel[:, :6])
    np.testing.assert_array_equal(command.values["joint_target"], RUN.joint_target[:, :6])
    assert state.labels == command.labels == JOINT_NAMES
    assert state.receive_time is not None
    assert np.median(np.diff(state.receive_time)) == pytest.approx(2000)
    assert "time_unit" not in state.declared
    assert event.values["text"].tolist() == ["CONTROL_MODE_ENABLE", "MOTION_START"]


def test_pace_and_bam(logs: dict[str, Path]) -> None:
    pace, bam = read_log(logs["pace"]), read_log(logs["bam"])
    np.testing.assert_array_equal(one(pace, "joint_state").values["joint_pos"], RUN.joint_pos)
    np.testing.assert_array_equal(one(pace, "joint_command").values["joint_target"], RUN.joint_target)
    np.testing.assert_array_equal(one(bam, "joint_state").values["joint_pos"], RUN.joint_pos[:, :1])
    np.testing.assert_array_equal(one(bam, "joint_command").values["joint_target"], RUN.joint_target[:, :1])
    assert bam.metadata["motor"] == "mx64"


def test_pace_with_code_inside_is_refused(tmp_path: Path) -> None:
    import torch

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "owned",))  # type: ignore[return-value]

    path = tmp_path / "chirp.pt"
    torch.save({"time": Evil(), "dof_pos": torch.zeros(2, 1), "des_dof_pos": torch.zeros(2, 1)}, path)
    with pytest.raises(InputFileError, match="refused"):
        read_log(path)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("layout", ["lerobot_v21", "lerobot_v30"])
def test_lerobot(logs: dict[str, Path], layout: str) -> None:
    log = read_log(logs[layout])
    state, command = one(log, "joint_state"), one(log, "joint_command")
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos[:, :6].astype(np.float32))
    np.testing.assert_array_equal(command.values["joint_target"], RUN.joint_target[:, :6].astype(np.float32))
    assert state.labels == command.labels == JOINT_NAMES
    np.testing.assert_array_equal(state.values["episode"], np.repeat([0, 1], 30))
    assert state.source_time is not None
    np.testing.assert_array_equal(state.source_time[30:], state.source_time[:30])
    assert log.metadata["fps"] == 50


def test_lerobot_with_a_damaged_episode_keeps_the_others(logs: dict[str, Path], tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "set"
    shutil.copytree(logs["lerobot_v21"], folder)
    (folder / "data/chunk-000/episode_000001.parquet").write_bytes(b"PAR1 cut")
    log = read_log(folder)
    assert one(log, "joint_state").num_samples == 30
    assert log.notes[0].startswith("data/chunk-000/episode_000001.parquet left out: not readable Parquet")


def test_hdf5_by_names(logs: dict[str, Path]) -> None:
    log = read_log(logs["hdf5"])
    first, second = log.of_kind("joint_state")
    np.testing.assert_array_equal(
        np.append(first.values["joint_pos"], second.values["joint_pos"], 0), RUN.joint_pos[:, :6]
    )
    np.testing.assert_array_equal(second.receive_time, RUN.time[30:])
    assert first.labels == JOINT_NAMES
    assert (first.name, second.name) == ("episode_0/joint_state", "episode_1/joint_state")
    assert "episode_0/camera" in log.notes[0]


def test_hdf5_of_holomotion(logs: dict[str, Path]) -> None:
    log = read_log(logs["hdf5_holomotion"])
    base, state = one(log, "odometry"), one(log, "joint_state")
    np.testing.assert_array_equal(base.values["quat"], RUN.root_quat[:, [1, 2, 3, 0]])
    assert base.declared["quat_order"] == "xyzw"
    np.testing.assert_array_equal(state.source_time, TIME)


@pytest.mark.parametrize("layout", ["matlab_v73", "matlab_v5"])
def test_matlab_has_samples_as_rows(logs: dict[str, Path], layout: str) -> None:
    state = one(read_log(logs[layout]), "joint_state")
    np.testing.assert_array_equal(state.values["joint_pos"], RUN.joint_pos)
    np.testing.assert_array_equal(state.receive_time, RUN.time)
    if layout == "matlab_v5":
        np.testing.assert_array_equal(state.values["joint_torque"], RUN.joint_torque)


@pytest.mark.parametrize(("module", "layout"), [("h5py", "hdf5"), ("h5py", "matlab_v73"), ("ezc3d", "c3d")])
def test_a_missing_library_is_named_with_its_install_line(
    logs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, module: str, layout: str
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputFileError, match=rf"{module}, which is not installed: pip install 'asap\[robot\]'"):
        read_log(logs[layout])
