"""Cut, damaged, empty and foreign recordings: the readable prefix and a note, or a clear error."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from ros_messages import START_NS, Recorded, make, robot_run, write_bag, write_mcap, write_mcap_json, write_ros1_bag
from rosbags.rosbag2 import CompressionMode

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.streams import Log, Stream

RUN = robot_run(0.4)
NUM_FUZZED = 600


def samples(log: Log) -> dict[str, int]:
    return {stream.name: stream.num_samples for stream in log.streams}


def assert_prefix(cut: Log, whole: Log) -> None:
    """Every stream of `cut` is the beginning of the same stream of `whole`."""
    streams = {stream.name: stream for stream in whole.streams}
    for stream in cut.streams:
        full = streams[stream.name]
        for field, values in stream.values.items():
            np.testing.assert_array_equal(values, full.values[field][: len(values)])
        assert stream.receive_time is not None
        assert full.receive_time is not None
        np.testing.assert_array_equal(stream.receive_time, full.receive_time[: len(stream.receive_time)])


def chunk_places(path: Path) -> list[tuple[int, int]]:
    """(offset, length) of each chunk record."""
    with open(path, "rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    return [(index.chunk_start_offset, index.chunk_length) for index in summary.chunk_indexes]


@pytest.mark.parametrize("compression", list(CompressionType))
@pytest.mark.parametrize("share", [0.25, 0.37, 0.6, 0.95])
def test_cut_mcap_gives_everything_before_the_cut(tmp_path: Path, compression: CompressionType, share: float) -> None:
    path, cut = tmp_path / "log.mcap", tmp_path / "cut.mcap"
    write_mcap(path, RUN, compression=compression, chunk_size=50_000)
    whole = read_log(path)
    data = path.read_bytes()
    at = int(len(data) * share)
    cut.write_bytes(data[:at])
    log = read_log(cut)
    assert_prefix(log, whole)
    assert any(note.startswith("file cut: the record at byte") for note in log.notes)
    complete = sum(offset + length <= at for offset, length in chunk_places(path))
    per_chunk = len(RUN) / len(chunk_places(path))
    read = sum(samples(log).values()) - samples(log)["/lowstate.imu_state"]
    # At least the chunks that are whole; of uncompressed ones, the messages of the last one too.
    assert read >= (complete - 1) * per_chunk
    assert read <= share * len(RUN) + per_chunk
    if compression == CompressionType.NONE:
        assert abs(read - share * len(RUN)) < 15


def test_cut_mcap_without_chunks_loses_only_the_cut_message(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    write_mcap(path, RUN[:20], use_chunking=False)
    whole = read_log(path)
    data = path.read_bytes()
    last = data.rfind(int(RUN[19].time_ns).to_bytes(8, "little"))
    first = data.find(int(RUN[19].time_ns).to_bytes(8, "little"))
    assert first <= last
    path.write_bytes(data[: first + 30])
    log = read_log(path)
    assert_prefix(log, whole)
    assert sum(samples(log).values()) - samples(log)["/lowstate.imu_state"] == 19


def test_a_damaged_chunk_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    write_mcap(path, RUN, compression=CompressionType.NONE, chunk_size=50_000)
    places = chunk_places(path)
    data = bytearray(path.read_bytes())
    offset, length = places[2]
    data[offset + length // 2] ^= 0xFF
    path.write_bytes(data)
    log = read_log(path)
    assert f"chunk at byte {offset:,} left out: its checksum does not match" in log.notes
    state = log.streams[0]
    assert state.sequence is not None
    gaps = np.flatnonzero(np.diff(state.sequence) != 2)
    assert len(gaps) == 1
    assert state.sequence[-1] == 398


def test_a_chunk_that_promises_too_much_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    write_mcap(path, RUN, chunk_size=50_000)
    data = bytearray(path.read_bytes())
    offset, _ = chunk_places(path)[1]
    data[offset + 9 + 16 : offset + 9 + 24] = (2**40).to_bytes(8, "little")
    path.write_bytes(data)
    log = read_log(path)
    assert any("says that it holds 1,099,511,627,776 bytes" in note for note in log.notes)
    assert 150 < log.streams[0].num_samples < 200


def test_cut_db3_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    whole = read_log(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * 0.7) // 4096 * 4096])
    log = read_log(tmp_path / "bag")
    assert_prefix(log, whole)
    assert 20 < samples(log)["/lowstate"] < 200
    assert any("damaged or cut after" in note for note in log.notes)
    assert any(note.startswith("metadata.yaml says 260 messages") for note in log.notes)


@pytest.mark.parametrize("compression", [None, "bz2", "lz4"])
def test_cut_ros1_bag_gives_everything_before_the_cut(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "log.bag"
    write_ros1_bag(path, RUN, compression)
    whole = read_log(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * 0.8)])
    log = read_log(path)
    assert_prefix(log, whole)
    assert samples(log)["/lowstate"] > 130
    assert any(note.startswith("file cut") for note in log.notes)


def test_messages_of_another_length_are_left_out_and_counted(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    database = sqlite3.connect(file)
    database.execute("UPDATE messages SET data = substr(data, 1, 100) WHERE topic_id = 1 AND id % 10 = 0")
    database.commit()
    database.close()
    log = read_log(file)
    (note,) = [note for note in log.notes if note.startswith("topic /lowstate")]
    lost = 200 - samples(log)["/lowstate"]
    assert lost > 10
    assert note == f"topic /lowstate: {lost} messages left out: 100 bytes long, expected 2092"


def test_an_encapsulation_that_is_not_plain_cdr_is_said(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN[:20])
    database = sqlite3.connect(file)
    rows = database.execute("SELECT id, data FROM messages WHERE topic_id = 1").fetchall()
    for key, data in rows:
        database.execute("UPDATE messages SET data = ? WHERE id = ?", (b"\0\3\0\0" + data[4:], key))
    database.commit()
    database.close()
    notes = read_log(file).notes
    assert any("encapsulation other than plain CDR" in note for note in notes)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x89MCAP0\r\n", b"SQLite format 3\0", b"#ROSBAG V2.0\n", bytes(5000)]
)
@pytest.mark.parametrize("suffix", [".mcap", ".db3", ".bag"])
def test_empty_and_foreign_files_are_refused_by_name(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputFileError) as error:
        read_log(path)
    assert str(path) in str(error.value)


def test_an_unknown_file_is_told_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    path.write_bytes(b"something else entirely")
    with pytest.raises(InputFileError, match=r"Readable: .*MCAP .*ROS 1 bag"):
        read_log(path)
    with pytest.raises(InputFileError, match="missing"):
        read_log(tmp_path / "nowhere.mcap")


def test_an_sqlite_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db3"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE recipes (id INTEGER PRIMARY KEY)")
    database.commit()
    database.close()
    with pytest.raises(InputFileError, match="no ROS 2 bag can be read from it: no such table: topics"):
        read_log(path)


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", RUN[:20])
    metadata = tmp_path / "bag" / "metadata.yaml"
    text = metadata.read_text()
    assert "compression_format: ''" in text
    metadata.write_text(text.replace("compression_format: ''", "compression_format: snappy"))
    with pytest.raises(InputFileError, match=r"compression_format: found 'snappy', expected none or 'zstd'"):
        read_log(tmp_path / "bag")


def test_a_cut_compressed_bag_gives_its_beginning(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN, compression=CompressionMode.FILE)
    whole = read_log(tmp_path / "bag")
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * 0.7)])
    log = read_log(tmp_path / "bag")
    assert_prefix(log, whole)
    assert 20 < samples(log)["/lowstate"] < 200
    assert any("damaged or cut after" in note for note in log.notes)


def test_a_compressed_message_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN, compression=CompressionMode.MESSAGE)
    database = sqlite3.connect(file)
    database.execute("UPDATE messages SET data = x'00' WHERE topic_id = 1 AND id < 50")
    database.commit()
    database.close()
    log = read_log(tmp_path / "bag")
    assert 100 < samples(log)["/lowstate"] < 200
    assert "topic /lowstate: messages left out that do not inflate" in log.notes


def test_damaged_metadata_is_done_without(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", RUN)
    (tmp_path / "bag" / "metadata.yaml").write_text("rosbag2_bagfile_information: [1, {2: ")
    log = read_log(tmp_path / "bag")
    assert samples(log)["/lowstate"] == 200
    assert any("metadata.yaml is damaged" in note for note in log.notes)


def test_a_definition_that_does_not_parse_is_replaced_by_the_known_one_or_said(tmp_path: Path) -> None:
    file = write_bag(tmp_path / "bag", RUN)
    database = sqlite3.connect(file)
    database.execute("UPDATE message_definitions SET encoded_message_definition = 'uint32 ['")
    database.commit()
    database.close()
    assert samples(read_log(file))["/lowstate"] == 200
    path = tmp_path / "log.mcap"
    message = make("std_msgs/msg/String", data="x")
    write_mcap(path, [Recorded("/x", "std_msgs/msg/String", START_NS, message)])
    assert read_log(path).streams == ()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """One way in which a file goes bad."""
    at = int(rng.integers(0, len(data)))
    size = int(rng.choice([1, 4, 8, 64, 600]))
    noise = rng.integers(0, 256, size, np.uint8).tobytes()
    return [
        lambda: data[:at],
        lambda: data[:at] + noise + data[at + size :],
        lambda: data[:at] + b"\xff" * size + data[at + size :],
        lambda: data[:at] + bytes(size) + data[at + size :],
        lambda: data[:at] + noise + data[at:],
        lambda: data[:at] + data[at + size :],
        lambda: data[:at] + data[max(0, at - size) :],
    ][int(rng.integers(0, 7))]()


def fuzz_bases(folder: Path) -> list[Path]:
    """Small recordings in every container."""
    run = RUN[:12]
    folder.mkdir()
    write_mcap(folder / "lz4.mcap", run, compression=CompressionType.LZ4, chunk_size=8_000)
    write_mcap(folder / "zstd.mcap", run, chunk_size=8_000)
    write_mcap(folder / "none.mcap", run, compression=CompressionType.NONE, chunk_size=8_000)
    write_mcap(folder / "plain.mcap", run, use_chunking=False)
    write_mcap_json(folder / "json.mcap", run)
    write_ros1_bag(folder / "ros1.bag", run)
    shutil.copy(write_bag(folder / "bag", run), folder / "bag.db3")
    shutil.rmtree(folder / "bag")
    return sorted(folder.iterdir())


def test_fuzzed_recordings_give_a_log_or_an_error_and_never_much_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(20)
    bases = fuzz_bases(tmp_path / "bases")
    whole = {base.name: read_log(base) for base in bases}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"same": 0, "said": 0, "refused": 0}
    for k in range(NUM_FUZZED):
        base = bases[k % len(bases)]
        path = tmp_path / f"fuzzed{base.suffix}"
        path.write_bytes(mutated(base.read_bytes(), rng))
        try:
            log = read_log(path)
        except InputFileError:
            outcomes["refused"] += 1
            continue
        for stream in log.streams:
            assert_consistent(stream)
        lost = sum(samples(log).values()) < sum(samples(whole[base.name]).values())
        if lost:
            assert log.notes, f"mutation {k} of {base.name} lost samples without a word"
        outcomes["said" if lost else "same"] += 1
    assert min(outcomes.values()) > NUM_FUZZED // 20, outcomes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def assert_consistent(stream: Stream) -> None:
    for values in stream.values.values():
        assert len(values) == stream.num_samples > 0
    for clock in (stream.receive_time, stream.source_time, stream.sequence):
        assert clock is None or len(clock) == stream.num_samples
