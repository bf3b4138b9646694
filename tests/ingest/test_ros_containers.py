"""The same recording in every container gives the same streams."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.writer import CompressionType
from mcap_protobuf.writer import Writer as ProtobufWriter
from ros_messages import (
    START_NS,
    robot_run,
    strip_definitions,
    write_bag,
    write_mcap,
    write_mcap_json,
    write_mcap_ros1,
    write_ros1_bag,
)
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.find import find_logs
from asap_core.rollouts.ingest.readers import READERS, read_log, sniff
from asap_core.rollouts.ingest.streams import Log

RUN = robot_run(crc=0)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """The recording as an MCAP of ROS 2 messages, whose fields other tests hold against the library's."""
    path = tmp_path_factory.mktemp("expected") / "log.mcap"
    write_mcap(path, RUN)
    return read_log(path)


def assert_same_streams(found: Log, expected: Log, *, sequence: bool = True) -> None:
    assert [(s.name, s.kind) for s in found.streams] == [(s.name, s.kind) for s in expected.streams]
    assert len(found.streams) == 4
    for one, other in zip(found.streams, expected.streams, strict=True):
        assert one.declared == other.declared
        assert set(one.values) == set(other.values)
        for field, values in other.values.items():
            np.testing.assert_array_equal(one.values[field], values, err_msg=f"{one.name} {field}")
        np.testing.assert_array_equal(one.receive_time, other.receive_time)
        np.testing.assert_array_equal(one.source_time, other.source_time)
        if sequence or other.sequence is not None:
            np.testing.assert_array_equal(one.sequence, other.sequence)


def test_the_recording_is_read_whole(expected: Log) -> None:
    names = {stream.name: stream.num_samples for stream in expected.streams}
    assert names == {"/lowstate": 200, "/lowstate.imu_state": 200, "/lowcmd": 20, "/mocap/pose": 40}
    assert expected.notes == ()
    state = expected.streams[0]
    np.testing.assert_array_equal(state.sequence, 2 * np.arange(200))
    assert state.receive_time is not None
    np.testing.assert_allclose(state.receive_time, START_NS * 1e-9 + 0.002 * np.arange(200), atol=1e-6)
    mocap = expected.streams[3]
    assert mocap.receive_time is not None
    assert mocap.source_time is not None
    np.testing.assert_allclose(mocap.receive_time - mocap.source_time, 0.0051, atol=1e-6)


@pytest.mark.parametrize("compression", list(CompressionType))
def test_mcap_with_each_compression(tmp_path: Path, expected: Log, compression: CompressionType) -> None:
    write_mcap(tmp_path / "log.mcap", RUN, compression=compression)
    assert_same_streams(read_log(tmp_path / "log.mcap"), expected)


def test_mcap_without_chunks(tmp_path: Path, expected: Log) -> None:
    write_mcap(tmp_path / "log.mcap", RUN, use_chunking=False)
    assert_same_streams(read_log(tmp_path / "log.mcap"), expected)


def test_mcap_without_definitions_falls_back_on_the_known_ones(tmp_path: Path, expected: Log) -> None:
    write_mcap(tmp_path / "log.mcap", RUN, definitions=False)
    assert_same_streams(read_log(tmp_path / "log.mcap"), expected)


def test_mcap_of_json(tmp_path: Path, expected: Log) -> None:
    write_mcap_json(tmp_path / "log.mcap", RUN)
    assert_same_streams(read_log(tmp_path / "log.mcap"), expected)


def test_mcap_of_ros1(tmp_path: Path, expected: Log) -> None:
    write_mcap_ros1(tmp_path / "log.mcap", RUN)
    found = read_log(tmp_path / "log.mcap")
    assert_same_streams(found, expected, sequence=False)
    np.testing.assert_array_equal(found.streams[3].sequence, np.full(40, 7))


@pytest.mark.parametrize("compression", [None, "bz2", "lz4"])
def test_ros1_bag(tmp_path: Path, expected: Log, compression: str | None) -> None:
    write_ros1_bag(tmp_path / "log.bag", RUN, compression)
    log = read_log(tmp_path / "log.bag")
    assert log.format == "ros1_bag"
    assert_same_streams(log, expected, sequence=False)


@pytest.mark.parametrize("plugin", list(StoragePlugin))
@pytest.mark.parametrize("layout", ["folder", "folder without metadata", "bare file"])
def test_ros2_bag(tmp_path: Path, expected: Log, plugin: StoragePlugin, layout: str) -> None:
    path = tmp_path / "bag"
    file = write_bag(path, RUN, plugin)
    if layout == "folder without metadata":
        (path / "metadata.yaml").unlink()
    log = read_log(file if layout == "bare file" else path)
    assert log.format == (file.suffix[1:] if layout == "bare file" else "ros2_bag")
    assert_same_streams(log, expected)
    assert [note for note in log.notes if "metadata" in note] == (
        ["no metadata.yaml; the files tell what they hold"] if layout == "folder without metadata" else []
    )


@pytest.mark.parametrize("plugin", list(StoragePlugin))
@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_ros2_bag(tmp_path: Path, expected: Log, plugin: StoragePlugin, mode: CompressionMode) -> None:
    file = write_bag(tmp_path / "bag", RUN, plugin, mode)
    assert (file.suffix == ".zstd") == (mode == CompressionMode.FILE)
    log = read_log(tmp_path / "bag")
    assert_same_streams(log, expected)
    assert log.notes == ()


def test_old_db3_without_definitions(tmp_path: Path, expected: Log) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    strip_definitions(file)
    assert_same_streams(read_log(tmp_path / "bag"), expected)


def test_rows_of_a_killed_recorder_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode=WAL")
    last = database.execute("SELECT topic_id, data FROM messages WHERE topic_id = 1").fetchone()
    row = (last[0], START_NS + 10**9, last[1])
    database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)", row)
    database.commit()
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "bag", killed)
    database.close()
    before = {item.name: item.read_bytes() for item in killed.iterdir()}
    assert read_log(killed).streams[0].num_samples == 201
    assert {item.name: item.read_bytes() for item in killed.iterdir()} == before


def test_files_of_a_split_bag_follow_each_other_by_number(tmp_path: Path, expected: Log) -> None:
    bag = tmp_path / "run"
    bag.mkdir()
    parts = np.array_split(np.arange(len(RUN)), 12)
    for number, part in enumerate(parts):
        write_mcap(bag / f"run_{number}.mcap", [RUN[k] for k in part])
    assert_same_streams(read_log(bag), expected)


def test_bags_and_other_logs_in_a_folder_are_logs_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write_mcap(folder / "run_1.mcap", RUN[:10])
    write_mcap(folder / "run_2.mcap", RUN[:10])
    assert [path.name for path in find_logs(folder)] == ["run_1.mcap", "run_2.mcap"]
    (folder / "run_2.mcap").unlink()
    (folder / "motion_0.npz").write_bytes(b"PK")
    assert [path.name for path in find_logs(folder)] == ["motion_0.npz", "run_1.mcap"]
    write_bag(folder / "bag", RUN[:10])
    assert [path.name for path in find_logs(folder)] == ["bag", "motion_0.npz", "run_1.mcap"]


def test_several_bags_under_one_metadata_are_refused(tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    bag.mkdir()
    write_mcap(bag / "morning.mcap", RUN[:10])
    write_mcap(bag / "evening.mcap", RUN[:10])
    (bag / "metadata.yaml").write_text("rosbag2_bagfile_information: {}")
    with pytest.raises(InputFileError, match=r"several bags .*evening, morning.* name one file"):
        read_log(bag)


def test_a_bag_with_fewer_messages_than_its_metadata_says_so(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    database = sqlite3.connect(file)
    database.execute("DELETE FROM messages WHERE id > 100")
    database.commit()
    database.close()
    assert "metadata.yaml says 260 messages, the files hold 100" in read_log(tmp_path / "bag").notes


def test_mcap_of_protobuf(tmp_path: Path) -> None:
    factory = _pose_in_frame()
    path = tmp_path / "log.mcap"
    rng = np.random.default_rng(0)
    poses = rng.normal(size=(9, 7))
    with open(path, "wb") as stream, ProtobufWriter(stream) as writer:
        for k, row in enumerate(poses):
            message = factory()
            message.timestamp.sec, message.timestamp.nsec = 100 + k, 500_000_000
            for axis, value in zip("xyz", row[:3], strict=True):
                setattr(message.pose.position, axis, value)
            for axis, value in zip("xyzw", row[3:], strict=True):
                setattr(message.pose.orientation, axis, value)
            writer.write_message("/pose", message, log_time=START_NS + k, publish_time=START_NS + k)
    (stream_read,) = read_log(path).streams
    np.testing.assert_array_equal(stream_read.values["pos"], poses[:, :3])
    np.testing.assert_array_equal(stream_read.values["quat"], poses[:, 3:])
    np.testing.assert_array_equal(stream_read.source_time, 100.5 + np.arange(9))


def _pose_in_frame() -> type:
    """foxglove.PoseInFrame, with a timestamp of its own."""
    file = descriptor_pb2.FileDescriptorProto(name="pose.proto", package="foxglove", syntax="proto3")
    kinds = {"i": descriptor_pb2.FieldDescriptorProto.TYPE_INT64, "d": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE}

    def add(name: str, **fields: str) -> None:
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), 1):
            one = message.field.add(name=field, number=number, label=1)
            if kind in kinds:
                one.type = kinds[kind]
            else:
                one.type, one.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, f".foxglove.{kind}"

    add("Stamp", sec="i", nsec="i")
    add("Vector3", x="d", y="d", z="d")
    add("Quaternion", x="d", y="d", z="d", w="d")
    add("Pose", position="Vector3", orientation="Quaternion")
    add("PoseInFrame", timestamp="Stamp", pose="Pose")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: type = message_factory.GetMessageClass(pool.FindMessageTypeByName("foxglove.PoseInFrame"))
    return found


def test_each_layout_is_known_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    write_mcap(tmp_path / "a.dat", RUN[:5])
    write_ros1_bag(tmp_path / "b.bag", RUN[:5])
    (tmp_path / "b.bag").rename(tmp_path / "b.mcap")
    file = write_bag(tmp_path / "bag", RUN[:5])
    for path, format_id in ((tmp_path / "a.dat", "mcap"), (tmp_path / "b.mcap", "ros1_bag"), (file, "db3")):
        reader = sniff(path)
        assert reader is not None
        assert reader.id == format_id
        assert READERS[format_id] is reader


def test_sender_clock_of_the_container_is_used_where_messages_have_none(tmp_path: Path) -> None:
    from mcap.writer import Writer

    from asap_core.rollouts.ingest.readers.definitions import definition_text, known_types

    name = "unitree_hg/msg/LowState"
    with open(tmp_path / "log.mcap", "wb") as stream:
        writer = Writer(stream)
        writer.start()
        channel = writer.register_channel(
            "/lowstate", "cdr", writer.register_schema(name, "ros2msg", definition_text(name).encode())
        )
        data = bytes(known_types().serialize_cdr(RUN[0].message, name))
        for k in range(3):
            writer.add_message(channel, 10**9 * (k + 10), data, 10**9 * k)
        writer.finish()
    state = read_log(tmp_path / "log.mcap").streams[0]
    np.testing.assert_array_equal(state.receive_time, [10, 11, 12])
    np.testing.assert_array_equal(state.source_time, [0, 1, 2])


def test_without_the_libraries_the_error_names_the_extra(tmp_path: Path) -> None:
    write_mcap(tmp_path / "log.mcap", RUN[:5])
    program = (
        "import sys; sys.modules['mcap'] = None\n"
        "from asap_core.errors import InputFileError\n"
        "from asap_core.rollouts.ingest.readers import read_log\n"
        "try:\n    read_log(sys.argv[1])\nexcept InputFileError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "log.mcap")], capture_output=True, text=True)
    assert "which is not installed: pip install 'asap[robot]'" in done.stdout, done.stderr


def test_shared_synthetic_recordings_agree(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "logs" / "synthetic_g1"
    logs = [read_log(folder / f"g1_synth_{kind}") for kind in ("db3", "mcap")]
    assert_same_streams(logs[0], logs[1])
    state = logs[0].streams[0]
    time = 0.002 * np.arange(1000)
    expected = 0.3 * np.sin(2 * np.pi * time[:, None] + np.arange(35))
    np.testing.assert_array_equal(state.values["joint_pos"], expected.astype(np.float32))
    np.testing.assert_array_equal(state.values["joint_torque"], np.tile(np.arange(35, dtype=np.float32), (1000, 1)))
    np.testing.assert_array_equal(state.sequence, 2 * np.arange(1000))
    mocap = logs[0].streams[3]
    assert mocap.receive_time is not None
    assert mocap.source_time is not None
    np.testing.assert_allclose(mocap.receive_time - mocap.source_time, 0.035, atol=1e-6)


@pytest.mark.parametrize("name", ["mcap_cdr_test", "sqlite_cdr_test"])
def test_shared_bags_of_rosbag2_open_and_name_what_they_hold(shared_dir: Path, name: str) -> None:
    log = read_log(shared_dir / "data" / "logs" / "ros2_rosbag2" / name)
    assert log.streams == ()
    assert len(log.notes) == 2
    assert any("/array_topic (test_msgs/msg/Arrays, cdr): 4 messages not read" in note for note in log.notes)
